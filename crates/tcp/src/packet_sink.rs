//! The receiver of the packets that leave a host.

use crate::packet::Packet;

/// Takes packets that leave a host. It is a trait instead of a closure, so that implementations can ask to be inlined and
/// a packet is written only once.
pub trait PacketSink {
    /// Takes a packet that does not bear the time of sending yet.
    fn send(&mut self, packet: Packet);

    /// Takes a packet of `bytes` that bears the time of sending.
    #[inline(always)]
    fn send_stamped(&mut self, _bytes: u32, packet: &Packet) {
        self.send(*packet);
    }

    /// Takes a packet that does not bear the time of sending yet, and may write that into it.
    #[inline(always)]
    fn send_unstamped(&mut self, packet: &mut Packet) {
        self.send(*packet);
    }
}

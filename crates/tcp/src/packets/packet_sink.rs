//! The receiver of the packets that leave a host.

use pepscope_path::Nanoseconds;

use crate::packets::packet::Packet;

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

    /// Takes a packet that a machine hands over at `at`, which may be later than `now`; packets come in the order of these
    /// times. Returns `false` and does nothing if the packet is to come again then. No packet bears the time of sending
    /// yet.
    fn send_at(&mut self, now: Nanoseconds, at: Nanoseconds, packet: &Packet) -> bool;
}

//! Where packets that leave a host go.

use crate::packet::Packet;

/// Takes packets that leave a host. A trait of its own and no closure, so that implementations can ask to be inlined:
/// a packet is then written only once, where it goes.
pub trait Outlet {
    fn send(&mut self, packet: Packet);

    /// Takes a packet of `bytes` that bears the time of sending.
    #[inline(always)]
    fn send_stamped(&mut self, _bytes: u32, packet: &Packet) {
        self.send(*packet);
    }
}

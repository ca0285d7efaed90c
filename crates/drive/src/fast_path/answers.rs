//! What a host answers, on its way back into the links.
//!
//! A link keeps the order of packets, so that it does with each the same when it gets it early as at the time when that
//! enters. Where nothing between two links is recorded, a packet therefore enters the second one as soon as it is known
//! when it arrives there.

use pepscope_path::{Datagram, Nanoseconds, Passage};
use pepscope_tcp::{Packet, PacketSink};

use super::ends::End;
use super::{Bounds, Lines};
use crate::chain::{stamp, Observers};

/// Hands what leaves a host at `now` to the lines.
pub(super) struct Answers<'a, L, const LINKS: usize> {
    /// Packets, and the wake-ups that they would otherwise have needed.
    pub(super) events: u64,
    pub(super) end: &'a End,
    pub(super) now: Nanoseconds,
    /// No packet arrives at the host before.
    pub(super) next_ns: Nanoseconds,
    pub(super) bounds: &'a Bounds,
    pub(super) observers: &'a mut Observers,
    pub(super) lines: &'a mut Lines<L, LINKS>,
}

impl<L: Passage<Packet>, const LINKS: usize> Answers<'_, L, LINKS> {
    /// A packet of `bytes` enters the first line at `now`.
    #[inline(always)]
    fn enter(&mut self, mut now: Nanoseconds, bytes: u32, mut make: impl FnOnce() -> Packet) {
        let until = if LINKS > 1 { self.end.passes_until(self.now, self.bounds) } else { 0 };
        for line in &mut self.lines[..LINKS - 1] {
            match line.take_or_pass(now, bytes, until, make) {
                Some((arrives_ns, passed)) => (now, make) = (arrives_ns, passed),
                None => return,
            }
            self.events = self.events.wrapping_add(2);
        }
        self.lines[LINKS - 1].take_with(now, bytes, make);
    }
}

impl<L: Passage<Packet>, const LINKS: usize> PacketSink for Answers<'_, L, LINKS> {
    #[inline(always)]
    fn send(&mut self, mut packet: Packet) {
        stamp(self.now, &mut packet);
        self.send_stamped(packet.length_bytes(), &packet);
    }

    #[inline(always)]
    fn send_at(&mut self, now: Nanoseconds, at: Nanoseconds, packet: &Packet) -> bool {
        if at > now && at >= self.end.leaves_until(self.now, self.next_ns, self.bounds) {
            return false;
        }
        self.events = self.events.wrapping_add(1 + u64::from(at > now));
        // What was due before `now` leaves now.
        let at = at.max(now);
        self.observers.note_at(self.end.leaving, at, packet);
        self.enter(at, packet.length_bytes(), || {
            let mut packet = *packet;
            stamp(at, &mut packet);
            packet
        });
        true
    }

    #[inline(always)]
    fn send_stamped(&mut self, bytes: u32, packet: &Packet) {
        self.events = self.events.wrapping_add(1);
        self.observers.note_at(self.end.leaving, self.now, packet);
        self.enter(self.now, bytes, || *packet);
    }
}

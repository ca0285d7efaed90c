//! Packets between the network and the kernel of a machine that takes time, first in, first out.

use pepscope_path::{Nanoseconds, Ring, NEVER};

use crate::packets::packet::Packet;
use crate::packets::segment::Segment;

/// A packet with the time at which it gets there.
#[derive(Clone, Debug)]
struct Passing {
    at: Nanoseconds,
    packet: Packet,
}

impl Default for Passing {
    fn default() -> Self {
        Self { at: NEVER, packet: Packet::Tcp(Segment::default()) }
    }
}

/// Packets that pass in one direction; none overtakes another.
#[derive(Debug)]
pub struct PassingPackets {
    packets: Ring<Passing>,
    first: usize,
    first_ns: Nanoseconds,
}

impl PassingPackets {
    pub fn new() -> Self {
        Self { packets: Ring::new(), first: 0, first_ns: NEVER }
    }

    /// Adds a packet that gets there at `at`, no earlier than the one before it.
    #[inline(always)]
    pub fn push(&mut self, at: Nanoseconds, packet: &Packet) {
        if self.first == self.packets.end() {
            self.first_ns = at;
        }
        let slot = self.packets.push_slot(self.first);
        slot.at = at;
        slot.packet = *packet;
    }

    /// When the first packet gets there; [`NEVER`] if there is none.
    #[inline(always)]
    pub fn first_ns(&self) -> Nanoseconds {
        self.first_ns
    }

    /// The first packet, and when it gets there.
    #[inline(always)]
    pub fn first(&self) -> Option<(Nanoseconds, &Packet)> {
        if self.first == self.packets.end() {
            return None;
        }
        self.packets.at(self.first).map(|passing| (self.first_ns, &passing.packet))
    }

    /// When the packet behind the first one gets there.
    #[inline(always)]
    pub fn second_ns(&self) -> Nanoseconds {
        let second = self.first + 1;
        if second >= self.packets.end() {
            return NEVER;
        }
        self.packets.at(second).map_or(NEVER, |passing| passing.at)
    }

    /// Removes the first packet.
    #[inline(always)]
    pub fn drop_first(&mut self) {
        self.first_ns = self.second_ns();
        self.first += usize::from(self.first < self.packets.end());
    }

    /// Removes the first packet if it gets there by `now`.
    #[inline]
    pub fn pop(&mut self, now: Nanoseconds) -> Option<Packet> {
        let packet = self.first().filter(|(at, _)| *at <= now).map(|(_, packet)| *packet)?;
        self.drop_first();
        Some(packet)
    }

    #[cfg(test)]
    pub fn last_ns(&self) -> Nanoseconds {
        self.packets.at(self.packets.end() - 1).map_or(NEVER, |passing| passing.at)
    }
}

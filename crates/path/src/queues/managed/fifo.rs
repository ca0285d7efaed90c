//! Packets that wait, with the time at which each came.

use std::collections::VecDeque;

use crate::hop::{Datagram, Nanoseconds};

/// First in, first out.
#[derive(Clone, Debug)]
pub(super) struct Fifo<P> {
    packets: VecDeque<(Nanoseconds, P)>,
    bytes: u64,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Datagram> Fifo<P> {
    pub(super) fn push(&mut self, now: Nanoseconds, packet: P) {
        self.bytes += u64::from(packet.length_bytes());
        self.packets.push_back((now, packet));
    }

    /// The first packet and how long it waited until `now`.
    pub(super) fn pop(&mut self, now: Nanoseconds) -> Option<(Nanoseconds, P)> {
        let (came, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.length_bytes());
        Some((now.saturating_sub(came), packet))
    }

    pub(super) fn packets(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How long the first packet has waited until `now`; 0 where none waits.
    pub(super) fn delay_ns(&self, now: Nanoseconds) -> Nanoseconds {
        self.packets.front().map_or(0, |(came, _)| now.saturating_sub(*came))
    }
}

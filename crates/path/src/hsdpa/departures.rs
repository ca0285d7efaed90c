//! Packets that leave at known times, whatever the order in which those become known.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::{Nanoseconds, NEVER};

#[derive(Clone, Debug)]
struct Departure<P> {
    time: Nanoseconds,
    /// Packets of one time leave in the order in which they were added.
    order: u64,
    packet: P,
}

impl<P> PartialEq for Departure<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Departure<P> {}

impl<P> PartialOrd for Departure<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Departure<P> {
    /// The heap gives its greatest first, so that earlier is greater.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.order).cmp(&(self.time, self.order))
    }
}

/// A queue by time.
#[derive(Clone, Debug)]
pub(crate) struct Departures<P> {
    heap: BinaryHeap<Departure<P>>,
    added: u64,
}

impl<P> Default for Departures<P> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), added: 0 }
    }
}

impl<P> Departures<P> {
    pub(crate) fn add(&mut self, time: Nanoseconds, packet: P) {
        self.heap.push(Departure { time, order: self.added, packet });
        self.added += 1;
    }

    /// The next packet that leaves by `now`.
    pub(crate) fn pop(&mut self, now: Nanoseconds) -> Option<P> {
        if self.next_time() > now {
            return None;
        }
        self.heap.pop().map(|departure| departure.packet)
    }

    pub(crate) fn next_time(&self) -> Nanoseconds {
        self.heap.peek().map_or(NEVER, |departure| departure.time)
    }
}

#[cfg(test)]
mod tests {
    use super::Departures;
    use crate::NEVER;

    #[test]
    fn packets_leave_by_time_and_then_by_order() {
        let mut departures = Departures::default();
        for (time, packet) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            departures.add(time, packet);
        }
        assert_eq!(departures.pop(2), None);
        assert_eq!(departures.next_time(), 3);
        let left: String = std::iter::from_fn(|| departures.pop(5)).collect();
        assert_eq!(left, "abcd");
        assert_eq!(departures.next_time(), NEVER);
    }
}

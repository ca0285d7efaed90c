//! Packets that leave at given times, in whatever order these were given.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::hop::{Nanoseconds, NEVER};

/// Packets with the time at which each leaves; those of one time leave in the order in which they were added.
#[derive(Clone, Debug)]
pub struct Schedule<P> {
    times: BinaryHeap<Reverse<(Nanoseconds, u64)>>,
    packets: HashMap<u64, P>,
    added: u64,
}

impl<P> Default for Schedule<P> {
    fn default() -> Self {
        Self { times: BinaryHeap::new(), packets: HashMap::new(), added: 0 }
    }
}

impl<P> Schedule<P> {
    /// Adds a packet that leaves at `at`.
    pub fn add(&mut self, at: Nanoseconds, packet: P) {
        self.times.push(Reverse((at, self.added)));
        self.packets.insert(self.added, packet);
        self.added += 1;
    }

    /// When the first packet leaves; [`NEVER`] if there is none.
    #[must_use]
    pub fn next_time(&self) -> Nanoseconds {
        self.times.peek().map_or(NEVER, |Reverse((at, _))| *at)
    }

    /// Removes the first packet that leaves by `now`.
    pub fn pop(&mut self, now: Nanoseconds) -> Option<P> {
        if self.next_time() > now {
            return None;
        }
        let Reverse((_, number)) = self.times.pop()?;
        self.packets.remove(&number)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use crate::hop::NEVER;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn packets_leave_as_a_stable_sort_has_them(times in prop::collection::vec(0u64..20, 0..50)) {
            let mut schedule = Schedule::default();
            for (number, &at) in times.iter().enumerate() {
                schedule.add(at, number);
            }
            let mut expected: Vec<usize> = (0..times.len()).collect();
            expected.sort_by_key(|&number| times[number]);
            let mut left = Vec::new();
            while schedule.next_time() != NEVER {
                let now = schedule.next_time();
                prop_assert_eq!(schedule.clone().pop(now.saturating_sub(1)).is_some(), now == 0);
                left.extend(schedule.pop(now));
            }
            prop_assert_eq!(left, expected);
            prop_assert_eq!(schedule.len(), 0);
        }
    }
}

//! The earliest next event among many elements.

use crate::hop::{Nanoseconds, NEVER};

/// The wake-up of each of a number of elements, in a tournament: setting one costs a comparison a level, and the
/// earliest is at the root. Of equal times the element with the lower number comes first.
#[derive(Clone, Debug)]
pub struct NextTimes {
    /// Node 1 is the root, the children of node n are 2n and 2n + 1, and the leaves are the second half.
    nodes: Vec<Next>,
    /// The time of the root, which is asked for far more often than it changes.
    earliest_ns: Nanoseconds,
}

/// The earliest time below a node, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Next {
    time: Nanoseconds,
    element: usize,
}

impl Default for NextTimes {
    fn default() -> Self {
        Self { nodes: vec![Next { time: NEVER, element: 0 }; 2], earliest_ns: NEVER }
    }
}

impl NextTimes {
    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Makes room for `count` elements.
    pub fn reserve(&mut self, count: usize) {
        let leaves = self.leaves();
        if count <= leaves {
            return;
        }
        let times = self.nodes.split_off(leaves);
        let leaves = count.next_power_of_two();
        self.nodes = vec![Next { time: NEVER, element: 0 }; 2 * leaves];
        for (element, leaf) in self.nodes[leaves..].iter_mut().enumerate() {
            leaf.element = element;
        }
        for Next { element, time } in times {
            self.set(element, time);
        }
    }

    /// Sets the time of `element`'s next event; the table must have room for it.
    ///
    /// Which of two nodes comes first is as good as random, so that a branch on it is mispredicted every other time. A
    /// mask selects instead: compilers make branches of conditional moves in such a loop.
    #[inline(always)]
    pub fn set(&mut self, element: usize, time: Nanoseconds) {
        let mut node = self.leaves() + element;
        if self.nodes[node].time == time {
            return;
        }
        let mut first = Next { time, element };
        self.nodes[node] = first;
        while node > 1 {
            let other = self.nodes[node ^ 1];
            // The elements of a left node are below those of the right one.
            let is_right = node & 1;
            let precedes = usize::from(other.time < first.time) | (is_right & usize::from(other.time == first.time));
            let mask = precedes.wrapping_neg();
            first.time ^= (first.time ^ other.time) & mask as Nanoseconds;
            first.element ^= (first.element ^ other.element) & mask;
            node /= 2;
            self.nodes[node] = first;
        }
        self.earliest_ns = first.time;
    }

    /// The earliest time of all.
    #[must_use]
    #[inline]
    pub fn earliest(&self) -> Nanoseconds {
        self.earliest_ns
    }

    /// The element of the earliest time, and the earliest of the others; element 0 if nothing is to come.
    #[must_use]
    #[inline]
    pub fn first_and_second(&self) -> (usize, Nanoseconds) {
        let element = self.nodes[1].element;
        let (mut node, mut second) = (self.leaves() + element, NEVER);
        while node > 1 {
            second = second.min(self.nodes[node ^ 1].time);
            node /= 2;
        }
        (element, second)
    }

    /// The first element that is due at `now`.
    #[must_use]
    #[inline]
    pub fn due(&self, now: Nanoseconds) -> Option<usize> {
        let Next { time, element } = self.nodes[1];
        (time <= now).then_some(element)
    }
}

#[cfg(test)]
mod tests {
    use super::NextTimes;
    use crate::hop::NEVER;
    use proptest::prelude::{prop, proptest};

    #[test]
    fn one_element_is_at_the_root() {
        let mut times = NextTimes::default();
        assert_eq!(times.due(u64::MAX - 1), None);
        times.set(0, 7);
        assert_eq!((times.earliest(), times.due(6), times.due(7)), (7, None, Some(0)));
    }

    proptest! {
        #[test]
        fn it_agrees_with_looking_at_all(changes in prop::collection::vec((0usize..40, 0u64..20), 1..200)) {
            let mut times = NextTimes::default();
            let mut all = Vec::new();
            for (element, time) in changes {
                if element >= all.len() {
                    all.resize(element + 1, NEVER);
                    times.reserve(all.len());
                }
                all[element] = time;
                times.set(element, time);
                let earliest = all.iter().copied().min().unwrap_or(NEVER);
                assert_eq!(times.earliest(), earliest);
                if earliest < NEVER {
                    let (first, second) = times.first_and_second();
                    let others = all.iter().enumerate().filter(|(place, _)| *place != first);
                    assert_eq!(Some(first), times.due(earliest));
                    assert_eq!(second, others.map(|(_, time)| *time).min().unwrap_or(NEVER));
                }
                assert_eq!(times.due(earliest), all.iter().position(|time| *time == earliest));
            }
        }
    }
}

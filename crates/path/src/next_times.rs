//! The earliest next event among many elements.

use crate::hop::{Nanoseconds, NEVER};

/// The wake-up of each of a number of elements, in a tournament: setting one costs a comparison a level, and the
/// earliest is at the root. Of equal times the element with the lower number comes first.
#[derive(Clone, Debug)]
pub struct NextTimes {
    /// Node 1 is the root, the children of node n are 2n and 2n + 1, and the leaves are the second half.
    nodes: Vec<Nanoseconds>,
}

impl Default for NextTimes {
    fn default() -> Self {
        Self { nodes: vec![NEVER; 2] }
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
        self.nodes = vec![NEVER; 2 * count.next_power_of_two()];
        for (element, time) in times.into_iter().enumerate() {
            self.set(element, time);
        }
    }

    /// Sets the time of `element`'s next event; the table must have room for it.
    #[inline(always)]
    pub fn set(&mut self, element: usize, time: Nanoseconds) {
        let mut node = self.leaves() + element;
        if self.nodes[node] == time {
            return;
        }
        self.nodes[node] = time;
        while node > 1 {
            node /= 2;
            let earliest = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if self.nodes[node] == earliest {
                return;
            }
            self.nodes[node] = earliest;
        }
    }

    /// The earliest time of all.
    #[must_use]
    #[inline]
    pub fn earliest(&self) -> Nanoseconds {
        self.nodes[1]
    }

    /// The element of the earliest time, and the earliest of the others; element 0 if nothing is to come.
    #[must_use]
    #[inline]
    pub fn first_and_second(&self) -> (usize, Nanoseconds) {
        let (leaves, earliest) = (self.leaves(), self.earliest());
        let (mut node, mut second) = (1, NEVER);
        while node < leaves {
            let left = 2 * node;
            let next = left + usize::from(self.nodes[left] != earliest);
            second = second.min(self.nodes[next ^ 1]);
            node = next;
        }
        (node - leaves, second)
    }

    /// The first element that is due at `now`.
    #[must_use]
    #[inline]
    pub fn due(&self, now: Nanoseconds) -> Option<usize> {
        let earliest = self.earliest();
        if earliest > now {
            return None;
        }
        let leaves = self.leaves();
        let mut node = 1;
        while node < leaves {
            node = if self.nodes[2 * node] == earliest { 2 * node } else { 2 * node + 1 };
        }
        Some(node - leaves)
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

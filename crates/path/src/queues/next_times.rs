//! The earliest next event among many elements.

use crate::hop::{Nanoseconds, NEVER};

/// With so many leaves a key has room for times of 208 days, more than the longest run.
const MOST_LEAVES: usize = 1024;

/// The wake-up of each of a number of elements, in a tournament: setting one costs a comparison a level, and the
/// earliest is at the root. Of equal times the element with the lower number comes first.
///
/// A node is the earliest time below it and, in its lowest bits, whose that is: which of two nodes comes first is as good
/// as random, and the lesser of two numbers is found without a branch. Where there are more elements than leaves,
/// neighbours share one.
#[derive(Clone, Debug)]
pub struct NextTimes {
    /// By element, for as many as a power of two.
    times: Vec<Nanoseconds>,
    /// Of the number of elements that share a leaf.
    sharing_bits: u32,
    /// Node 1 is the root, the children of node n are 2n and 2n + 1, and the leaves are the second half.
    nodes: Vec<u64>,
    /// Of the number of leaves.
    leaf_bits: u32,
    /// The time of the root, which is asked for far more often than it changes.
    earliest_ns: Nanoseconds,
}

impl Default for NextTimes {
    fn default() -> Self {
        Self { times: vec![NEVER], sharing_bits: 0, nodes: vec![NEVER; 2], leaf_bits: 0, earliest_ns: NEVER }
    }
}

/// Calls a function of nodes whose number is a constant in it, so that it has no loop.
macro_rules! of_constant_size {
    ($function:ident, $leaf_bits:expr, $arguments:tt) => {
        of_constant_size!($function, $leaf_bits, $arguments, 0 1 2 3 4 5 6 7 8 9)
    };
    ($function:ident, $leaf_bits:expr, $arguments:tt, $($bits:literal)*) => {
        match $leaf_bits {
            $($bits => $function::<{ 2 << $bits }> $arguments,)*
            _ => $function::<{ 2 * MOST_LEAVES }> $arguments,
        }
    };
}

/// Lets `key` rise from its leaf as far as it is the least; the least of all then.
#[inline(always)]
fn rise<const NODES: usize>(nodes: &mut [u64], leaf: usize, mut key: u64) -> u64 {
    let Some(nodes) = nodes.first_chunk_mut::<NODES>() else { return NEVER };
    let mut node = (NODES / 2 + leaf) % NODES;
    nodes[node] = key;
    for _ in 1..NODES.ilog2() {
        key = key.min(nodes[node ^ 1]);
        node /= 2;
        nodes[node] = key;
    }
    key
}

/// The least key of all leaves but one.
#[inline(always)]
fn least_beside<const NODES: usize>(nodes: &[u64], leaf: usize) -> u64 {
    let Some(nodes) = nodes.first_chunk::<NODES>() else { return NEVER };
    let mut node = (NODES / 2 + leaf) % NODES;
    let mut least = NEVER;
    for _ in 1..NODES.ilog2() {
        least = least.min(nodes[node ^ 1]);
        node /= 2;
    }
    least
}

impl NextTimes {
    /// Makes room for `count` elements.
    pub fn reserve(&mut self, count: usize) {
        if count <= self.times.len() {
            return;
        }
        let elements = count.next_power_of_two();
        let leaves = elements.min(MOST_LEAVES);
        self.times.resize(elements, NEVER);
        (self.sharing_bits, self.leaf_bits) = ((elements / leaves).ilog2(), leaves.ilog2());
        self.nodes = vec![NEVER; 2 * leaves];
        for leaf in 0..leaves {
            self.nodes[leaves + leaf] = self.key(leaf);
        }
        for node in (1..leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }

    /// Sets the time of `element`'s next event; the table must have room for it.
    #[inline(always)]
    pub fn set(&mut self, element: usize, time: Nanoseconds) {
        if self.times[element] != time {
            self.times[element] = time;
            if self.leaf_bits == 0 {
                self.earliest_ns = time;
            } else {
                self.change(element >> self.sharing_bits);
            }
        }
    }

    #[inline(never)]
    fn change(&mut self, leaf: usize) {
        let key = self.key(leaf);
        let nodes = self.nodes.as_mut_slice();
        let least = of_constant_size!(rise, self.leaf_bits, (nodes, leaf, key));
        self.earliest_ns = self.time(least);
    }

    /// The earliest time of all.
    #[must_use]
    #[inline]
    pub fn earliest(&self) -> Nanoseconds {
        self.earliest_ns
    }

    /// The element of the earliest time, and the earliest of the others; element 0 if nothing is to come.
    #[must_use]
    #[inline(never)]
    pub fn first_and_second(&self) -> (usize, Nanoseconds) {
        let leaf = self.first_leaf();
        let nodes = self.nodes.as_slice();
        let least = of_constant_size!(least_beside, self.leaf_bits, (nodes, leaf));
        let beside_ns = self.time(least);
        if self.sharing_bits == 0 {
            return (leaf, beside_ns);
        }
        let (first, _) = self.first_of(leaf);
        let others = self.sharing(leaf).filter(|(element, _)| *element != first);
        (first, others.fold(beside_ns, |earliest_ns, (_, time)| earliest_ns.min(time)))
    }

    /// The first element that is due at `now`.
    #[must_use]
    #[inline]
    pub fn due(&self, now: Nanoseconds) -> Option<usize> {
        (self.earliest_ns <= now).then(|| match self.sharing_bits {
            0 => self.first_leaf(),
            _ => self.first_of(self.first_leaf()).0,
        })
    }

    #[inline(always)]
    fn first_leaf(&self) -> usize {
        self.nodes[1] as usize & ((1 << self.leaf_bits) - 1)
    }

    /// The elements that share a leaf, and their times.
    fn sharing(&self, leaf: usize) -> impl Iterator<Item = (usize, Nanoseconds)> + '_ {
        (leaf << self.sharing_bits..)
            .zip(self.times.iter().copied().skip(leaf << self.sharing_bits))
            .take(1 << self.sharing_bits)
    }

    /// The first of the elements that share a leaf.
    #[inline(never)]
    fn first_of(&self, leaf: usize) -> (usize, Nanoseconds) {
        self.sharing(leaf).min_by_key(|(_, time)| *time).unwrap_or((0, NEVER))
    }

    #[inline(always)]
    fn key(&self, leaf: usize) -> u64 {
        let time = if self.sharing_bits == 0 { self.times[leaf] } else { self.first_of(leaf).1 };
        time.min(NEVER >> self.leaf_bits) << self.leaf_bits | leaf as u64
    }

    #[inline(always)]
    fn time(&self, key: u64) -> Nanoseconds {
        let time = key >> self.leaf_bits;
        if time == NEVER >> self.leaf_bits {
            NEVER
        } else {
            time
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NextTimes;
    use crate::hop::NEVER;
    use proptest::prelude::{prop, proptest, Just};
    use proptest::prop_oneof;

    #[test]
    fn one_element_is_at_the_root() {
        let mut times = NextTimes::default();
        assert_eq!(times.due(u64::MAX - 1), None);
        times.set(0, 7);
        assert_eq!((times.earliest(), times.due(6), times.due(7)), (7, None, Some(0)));
    }

    proptest! {
        #[test]
        fn it_agrees_with_looking_at_all(
            changes in prop::collection::vec((0usize..40, prop_oneof![9 => 0u64..20, 1 => Just(NEVER)]), 1..100),
            apart in prop_oneof![Just(1), Just(50)], // growing beyond the leaves
            room in prop_oneof![2 => Just(1), 1 => Just(5_000)], // for neighbours that share a leaf
            unit_ns in prop_oneof![Just(1), Just(500_000_000_000_000u64)], // up to 115 days
        ) {
            let mut times = NextTimes::default();
            times.reserve(room);
            let mut all = Vec::new();
            for (element, time) in changes {
                let (element, time) = (element * apart, time.saturating_mul(unit_ns));
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

//! Sorted intervals of a stream that do not touch or overlap.

use std::collections::VecDeque;

/// Positions that the peer reported, as intervals [left, right).
#[derive(Clone, Debug, Default)]
pub(crate) struct Intervals {
    intervals: VecDeque<(u64, u64)>,
}

impl Intervals {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// The end of the last one.
    #[inline]
    pub fn highest(&self) -> Option<u64> {
        self.intervals.back().map(|interval| interval.1)
    }

    /// The intervals from the last one down.
    pub fn descending(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.intervals.iter().rev().copied()
    }

    /// Adds [left, right) and calls `gap` for each part of it that was not there. Gives the interval that holds it now.
    pub fn insert(&mut self, left: u64, right: u64, mut gap: impl FnMut(u64, u64)) -> (u64, u64) {
        let first = self.intervals.partition_point(|interval| interval.1 < left);
        let mut merged = (left, right);
        let mut covered = left;
        let mut index = first;
        while let Some(&(begin, end)) = self.intervals.get(index) {
            if begin > right {
                break;
            }
            if begin > covered {
                gap(covered, begin);
            }
            covered = covered.max(end);
            merged = (merged.0.min(begin), merged.1.max(end));
            index += 1;
        }
        if covered < right {
            gap(covered, right);
        }
        if index == first {
            self.intervals.insert(first, merged);
        } else {
            self.intervals[first] = merged;
            if index > first + 1 {
                self.intervals.drain(first + 1..index);
            }
        }
        merged
    }

    /// Removes intervals before `position`.
    #[inline]
    pub fn remove_below(&mut self, position: u64) {
        while let Some(front) = self.intervals.front_mut() {
            if front.1 > position {
                front.0 = front.0.max(position);
                return;
            }
            self.intervals.pop_front();
        }
    }

    pub fn clear(&mut self) {
        self.intervals.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn intervals_hold_what_a_plain_set_holds(
            parts in prop::collection::vec((0u64..120, 1u64..30), 1..40),
            cut in 0u64..150,
        ) {
            let mut intervals = Intervals::default();
            let mut plain = [false; 200];
            for (left, length) in parts {
                let right = left + length;
                let mut fresh = Vec::new();
                let merged = intervals.insert(left, right, |from, to| fresh.extend(from..to));
                let expected: Vec<u64> = (left..right).filter(|place| !plain[*place as usize]).collect();
                prop_assert_eq!(fresh, expected);
                (left..right).for_each(|place| plain[place as usize] = true);
                prop_assert!((merged.0..merged.1).all(|place| plain[place as usize]));
                prop_assert!(!plain[merged.1 as usize]);
            }
            intervals.remove_below(cut);
            let mut held: Vec<u64> = intervals.descending().flat_map(|(from, to)| from..to).collect();
            held.sort_unstable();
            let expected: Vec<u64> = (cut..200).filter(|place| plain[*place as usize]).collect();
            prop_assert_eq!(held, expected);
        }
    }
}

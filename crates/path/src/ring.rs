//! A queue that is cheap to add to and to take from, because it can do little else.

/// First in, first out, with a place for each value that stays the same until it is taken; its memory grows to what was
/// once needed and stays.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// As many as a power of two; those not in use hold the default, or what was there before.
    slots: Vec<T>,
    /// Place of the next value; places count up for ever, and their lowest bits are where the value is.
    end: usize,
}

impl<T: Default> Ring<T> {
    pub(crate) fn new() -> Self {
        let mut slots = Vec::new();
        slots.resize_with(16, T::default);
        Self { slots, end: 0 }
    }

    /// The place that the next value gets.
    #[inline(always)]
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Adds a value, to be written where it is, where the values from place `first` on are still needed.
    #[inline(always)]
    pub(crate) fn push_slot(&mut self, first: usize) -> &mut T {
        if self.end - first == self.slots.len() {
            self.grow();
        }
        let slot = self.end & (self.slots.len() - 1);
        self.end += 1;
        &mut self.slots[slot]
    }

    /// Every value is in use.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let length = self.slots.len();
        self.slots.resize_with(2 * length, T::default);
        // A place whose next bit is set belongs to the new half.
        for place in self.end - length..self.end {
            if place & length != 0 {
                self.slots.swap(place & (length - 1), place & (2 * length - 1));
            }
        }
    }

    /// The value at `place`, which was pushed and not taken.
    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> &T {
        &self.slots[place & (self.slots.len() - 1)]
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, place: usize) -> &mut T {
        let slot = place & (self.slots.len() - 1);
        &mut self.slots[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec((any::<bool>(), any::<u64>()), 0..500)) {
            let (mut ring, mut queue) = (Ring::new(), VecDeque::new());
            let mut first = ring.end();
            for (adds, value) in steps {
                if adds || value % 3 == 0 {
                    *ring.push_slot(first) = value;
                    queue.push_back(value);
                } else if let Some(taken) = queue.pop_front() {
                    prop_assert_eq!(*ring.at(first), taken);
                    first += 1;
                }
                prop_assert_eq!((first..ring.end()).map(|place| *ring.at(place)).collect::<VecDeque<_>>(), queue.clone());
            }
        }
    }
}

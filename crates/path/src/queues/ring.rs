//! A queue that is cheap to add to and to take from, because it can do little else. Its owner keeps the place where it
//! begins.

/// First in, first out, with a place for each value that stays the same until it is taken; its memory grows to what was
/// once needed and stays.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// As many as a power of two; those not in use hold the default, or what was there before.
    slots: Vec<T>,
    /// Place of the next value; places count up for ever, and their lowest bits are where the value is.
    end: usize,
    /// Up to there no slot is in use twice.
    free_until: usize,
}

impl<T: Default> Default for Ring<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Default> Ring<T> {
    /// An empty one, whose first value gets place 0.
    #[must_use]
    pub fn new() -> Self {
        let mut slots = Vec::new();
        slots.resize_with(16, T::default);
        Self { free_until: slots.len(), slots, end: 0 }
    }

    /// The place that the next value gets.
    #[inline(always)]
    #[must_use]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Adds a value, to be written where it is. `first` is the place from which on values are still needed.
    #[inline(always)]
    pub fn push_slot(&mut self, first: usize) -> &mut T {
        if self.seems_full() {
            self.make_room(first);
        }
        self.push_into_room()
    }

    /// Whether [`Ring::make_room`] is to be called before another value is added.
    #[inline(always)]
    #[must_use]
    pub fn seems_full(&self) -> bool {
        self.end == self.free_until
    }

    /// Adds a value where room was made; without room it may overwrite a value that is still needed.
    #[inline(always)]
    pub fn push_into_room(&mut self) -> &mut T {
        let slot = self.end & (self.slots.len() - 1);
        self.end += 1;
        &mut self.slots[slot]
    }

    /// Finds room for more values where those from `first` on are still needed.
    #[cold]
    #[inline(never)]
    pub fn make_room(&mut self, first: usize) {
        let length = self.slots.len();
        // Half of it free, or this would be asked for too often.
        if self.end - first > length / 2 {
            self.slots.resize_with(2 * length, T::default);
            // A place whose next bit is set belongs to the new half.
            for place in first..self.end {
                if place & length != 0 {
                    self.slots.swap(place & (length - 1), place & (2 * length - 1));
                }
            }
        }
        self.free_until = first + self.slots.len();
    }

    /// The value at `place`, if that was pushed and not taken; another one otherwise.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, place: usize) -> Option<&T> {
        self.slots.get(place & self.slots.len().wrapping_sub(1))
    }

    /// The value at a place, to be changed.
    #[inline(always)]
    #[must_use]
    pub fn at_mut(&mut self, place: usize) -> Option<&mut T> {
        let slot = place & self.slots.len().wrapping_sub(1);
        self.slots.get_mut(slot)
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
                    prop_assert_eq!(ring.at(first), Some(&taken));
                    first += 1;
                }
                prop_assert_eq!((first..ring.end()).map(|place| *ring.at(place).unwrap()).collect::<VecDeque<_>>(), queue.clone());
            }
        }
    }
}

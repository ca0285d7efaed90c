//! A queue that is cheap to add to and to take from, because it can do nothing else.

/// First in, first out; its memory grows to what was once needed and stays.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// As many as a power of two; those not in use hold the default.
    slots: Vec<T>,
    /// Counts up for ever; its lowest bits are the place of the first value.
    first: usize,
    length: usize,
}

impl<T: Default> Ring<T> {
    pub(crate) fn new() -> Self {
        let mut slots = Vec::new();
        slots.resize_with(16, T::default);
        Self { slots, first: 0, length: 0 }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        self.first.wrapping_add(index) & (self.slots.len() - 1)
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        *self.push_slot() = value;
    }

    /// Adds a value, to be written where it is: it holds the default, or what was there before.
    #[inline(always)]
    pub(crate) fn push_slot(&mut self) -> &mut T {
        if self.length == self.slots.len() {
            self.grow();
        }
        let place = self.place(self.length);
        self.length += 1;
        &mut self.slots[place]
    }

    #[cold]
    fn grow(&mut self) {
        let place = self.place(0);
        self.slots.rotate_left(place);
        self.slots.resize_with(2 * self.length, T::default);
        self.first = 0;
    }

    /// The value at `index`, counted from the first.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        (index < self.length).then(|| &self.slots[self.place(index)])
    }

    #[inline(always)]
    pub(crate) fn take_first(&mut self) -> Option<T> {
        if self.length == 0 {
            return None;
        }
        let place = self.place(0);
        self.first = self.first.wrapping_add(1);
        self.length -= 1;
        Some(core::mem::take(&mut self.slots[place]))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.length).filter_map(|index| self.get(index))
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
            for (adds, value) in steps {
                if adds || value % 3 == 0 {
                    ring.push(value);
                    queue.push_back(value);
                } else {
                    prop_assert_eq!(ring.take_first(), queue.pop_front());
                }
                prop_assert_eq!((ring.get(0), ring.get(1)), (queue.front(), queue.get(1)));
            }
            prop_assert_eq!(ring.iter().copied().collect::<Vec<_>>(), Vec::from(queue));
        }
    }
}

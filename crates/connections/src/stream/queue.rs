//! A queue in one stretch of memory.

/// Items that are added behind and let go of in front.
///
/// Unlike those of a `VecDeque`, which takes items by reference, additions are written where they stay: the processor
/// waits for an item that was just written in parts to be read as a whole, longer than all else takes that a packet
/// needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue<T> {
    /// Those before `first` were let go of.
    items: Vec<T>,
    first: usize,
}

impl<T> Queue<T> {
    #[inline(always)]
    pub(super) fn push(&mut self, item: T) {
        if self.items.len() == self.items.capacity() {
            self.make_room();
        }
        self.items.push(item);
    }

    /// Lets go of the first one.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.first = (self.first + 1).min(self.items.len());
        if self.first == self.items.len() {
            self.items.clear();
            self.first = 0;
        }
    }

    pub(super) fn as_slice(&self) -> &[T] {
        self.items.get(self.first..).unwrap_or_default()
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        self.items.get_mut(self.first..).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.first
    }

    /// Gives memory for more than so many items back, where none is left.
    pub(super) fn shrink_to(&mut self, least: usize) {
        if self.items.is_empty() {
            self.items.shrink_to(least);
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.items.capacity()
    }

    /// Takes the place of those that were let go of, where it is a quarter: each item is moved three times at most for
    /// each that leaves. Otherwise the vector grows.
    #[cold]
    fn make_room(&mut self) {
        if self.first > 0 && self.first >= self.items.len() / 4 {
            self.items.drain(..self.first);
            self.first = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn items_leave_in_the_order_in_which_they_came(
            acts in proptest::collection::vec(proptest::option::weighted(0.6, any::<u16>()), 0..300),
        ) {
            let (mut queue, mut expected) = (Queue::default(), VecDeque::new());
            for act in acts {
                match act {
                    Some(item) => {
                        queue.push(item);
                        expected.push_back(item);
                    }
                    None => {
                        queue.pop();
                        expected.pop_front();
                    }
                }
                prop_assert_eq!(queue.as_slice(), expected.make_contiguous());
                prop_assert_eq!(queue.len(), expected.len());
            }
        }
    }

    #[test]
    fn a_queue_of_steady_length_does_not_grow() {
        let mut queue = Queue::default();
        (0..10).for_each(|item| queue.push(item));
        for item in 10..10_000 {
            queue.push(item);
            queue.pop();
        }
        assert_eq!(queue.as_slice(), (9_990..10_000).collect::<Vec<_>>());
        assert!(queue.capacity() <= 32);
        (0..10).for_each(|_| queue.pop());
        queue.shrink_to(4);
        assert_eq!((queue.len(), queue.capacity()), (0, 4));
    }
}

//! One block of memory for what many connections leave, each of which has little: a block of its own for each would
//! take twice as much, with what it had room for and what the allocator adds.

use std::ops::Range;

/// More elements than these stay where they are: moving them costs more than is saved.
const MOST_MOVED: usize = 1 << 14;

/// What was given to a [`Pool`].
#[derive(Clone, Debug)]
pub(crate) enum Kept<T> {
    Apart(Vec<T>),
    Pooled(Range<usize>),
}

impl<T> Kept<T> {
    /// Bytes that it takes outside of the pool.
    pub(crate) fn bytes_apart(&self) -> usize {
        match self {
            Kept::Apart(elements) => elements.capacity() * size_of::<T>(),
            Kept::Pooled(_) => 0,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pool<T>(Vec<T>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool(Vec::new())
    }
}

impl<T: Copy> Pool<T> {
    pub(crate) fn keep(&mut self, elements: Vec<T>) -> Kept<T> {
        if elements.len() > MOST_MOVED {
            return Kept::Apart(elements);
        }
        let begin = self.0.len();
        self.0.extend_from_slice(&elements);
        Kept::Pooled(begin..self.0.len())
    }

    /// The elements of what this pool was given.
    pub(crate) fn of<'a>(&'a self, kept: &'a Kept<T>) -> &'a [T] {
        match kept {
            Kept::Apart(elements) => elements,
            Kept::Pooled(range) => &self.0[range.clone()],
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn elements_come_back_as_they_went_in(
            lengths in prop::collection::vec(prop_oneof![0..40_usize, MOST_MOVED - 1..MOST_MOVED + 2], 0..12),
        ) {
            let given: Vec<Vec<u32>> = lengths
                .iter()
                .enumerate()
                .map(|(number, &length)| (0..length as u32).map(|place| place * 31 + number as u32).collect())
                .collect();
            let mut pool = Pool::default();
            let kept: Vec<Kept<u32>> = given.iter().map(|elements| pool.keep(elements.clone())).collect();
            for (elements, kept) in given.iter().zip(&kept) {
                prop_assert_eq!(pool.of(kept), elements.as_slice());
                prop_assert_eq!(kept.bytes_apart() > 0, elements.len() > MOST_MOVED);
            }
        }
    }
}

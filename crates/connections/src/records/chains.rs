//! What many connections leave, each of which has little: linked blocks of one vector. A vector of its own for each
//! connection would take two to three times as much, with what it has room for, what the allocator adds, and what
//! growing leaves behind; and memory that is touched for the first time costs most where a capture is read.

use std::marker::PhantomData;

/// Blocks begin where numbers of 32 bits count so many elements. No more are written at once.
const GRAIN: usize = 16;
/// Elements of the first block of a chain. Those behind it have a quarter of what the chain has, within bounds.
const FIRST_BLOCK: usize = 64;
const SMALLEST_BLOCK: usize = 32;
const LARGEST_BLOCK: usize = 1024;
const NONE: u32 = u32::MAX;

/// Where elements begin, how many they are, and the block that goes on with them.
#[derive(Clone, Copy, Debug)]
struct Block {
    grain: u32,
    used: u32,
    next: u32,
}

/// What one connection has of a [`Chains`]; its last block may have grown since that was noted there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain<T> {
    first: u32,
    last: u32,
    /// Of the last block, as in [`Block`].
    grain: u32,
    used: u32,
    room: u32,
    /// Room of all blocks in grains.
    grains: u32,
    elements: PhantomData<T>,
}

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Chain { first: NONE, last: NONE, grain: 0, used: 0, room: 0, grains: 0, elements: PhantomData }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Chains<T> {
    elements: Vec<T>,
    blocks: Vec<Block>,
}

impl<T> Default for Chains<T> {
    fn default() -> Self {
        Chains { elements: Vec::new(), blocks: Vec::new() }
    }
}

/// Elements of a block and what stands behind them, and how many they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a, T> {
    pub(crate) elements: &'a [T],
    pub(crate) used: usize,
}

impl<'a, T> Part<'a, T> {
    pub(crate) fn in_use(self) -> &'a [T] {
        &self.elements[..self.used]
    }
}

impl<T: Copy + Default> Chains<T> {
    /// Appends what `write` writes, all in one block; it gives how many elements.
    #[inline]
    pub(crate) fn push(&mut self, chain: &mut Chain<T>, write: impl FnOnce(&mut [T; GRAIN]) -> usize) {
        let at = chain.grain as usize * GRAIN + chain.used as usize;
        let has_room = chain.used + GRAIN as u32 <= chain.room;
        let mut apart = [T::default(); GRAIN];
        // Where there is room for any number it is written where it stays: what was just written in parts is not ready
        // to be copied as a whole.
        let room = self.elements.get_mut(at..).and_then(<[T]>::first_chunk_mut).filter(|_| has_room);
        let count = write(room.unwrap_or(&mut apart)).min(GRAIN);
        if !has_room {
            self.push_apart(chain, &apart[..count]);
        }
        chain.used += count as u32;
    }

    /// Copies elements that `chain.used` does not count yet.
    #[cold]
    fn push_apart(&mut self, chain: &mut Chain<T>, elements: &[T]) {
        if chain.room < chain.used + elements.len() as u32 {
            self.link(chain);
        }
        let at = chain.grain as usize * GRAIN + chain.used as usize;
        self.elements[at..at + elements.len()].copy_from_slice(elements);
    }

    fn link(&mut self, chain: &mut Chain<T>) {
        let quarter = chain.grains as usize * GRAIN / 4;
        let least = if chain.grains == 0 { FIRST_BLOCK } else { SMALLEST_BLOCK };
        let room = quarter.clamp(least, LARGEST_BLOCK).next_multiple_of(GRAIN);
        let (number, grain) = (self.blocks.len() as u32, (self.elements.len() / GRAIN) as u32);
        self.elements.resize(self.elements.len() + room, T::default());
        self.blocks.push(Block { grain, used: 0, next: NONE });
        match self.blocks.get_mut(chain.last as usize) {
            Some(last) => (last.used, last.next) = (chain.used, number),
            None => chain.first = number,
        }
        (chain.last, chain.grain, chain.used, chain.room) = (number, grain, 0, room as u32);
        chain.grains += (room / GRAIN) as u32;
    }

    /// The elements of a chain block by block.
    pub(crate) fn parts<'a>(&'a self, chain: &Chain<T>) -> impl Iterator<Item = Part<'a, T>> + use<'a, T> {
        let (last, used_of_last) = (chain.last, chain.used);
        let mut next = chain.first;
        std::iter::from_fn(move || {
            let block = self.blocks.get(next as usize)?;
            let used = if next == last { used_of_last } else { block.used };
            next = block.next;
            Some(Part { elements: &self.elements[block.grain as usize * GRAIN..], used: used as usize })
        })
    }

    /// How many elements a chain has.
    pub(crate) fn count(&self, chain: &Chain<T>) -> usize {
        self.parts(chain).map(|part| part.used).sum()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(self.elements.as_slice()) + size_of_val(self.blocks.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn elements_come_back_as_they_went_in(
            pushed in prop::collection::vec((0..5_usize, any::<[u8; GRAIN]>(), 0..=GRAIN), 0..600),
        ) {
            let mut chains = Chains::default();
            let mut given: [(Chain<u8>, Vec<u8>); 5] = Default::default();
            for (of, run, count) in &pushed {
                let (chain, wanted) = &mut given[*of];
                chains.push(chain, |room| {
                    room[..*count].copy_from_slice(&run[..*count]);
                    *count
                });
                wanted.extend(&run[..*count]);
            }
            for (chain, wanted) in &given {
                let found: Vec<u8> = chains.parts(chain).flat_map(|part| part.in_use().to_vec()).collect();
                prop_assert_eq!(chains.count(chain), wanted.len());
                prop_assert_eq!(&found, wanted);
            }
        }
    }
}

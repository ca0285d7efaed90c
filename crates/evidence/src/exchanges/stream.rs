//! Captured bytes of one direction by stream offset.

/// Pieces by ascending offset; they may overlap and leave gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream<'a> {
    pieces: Vec<(i64, &'a [u8])>,
}

/// A piece may lie within an earlier one that reaches further; of so many before it one is looked for.
const OVERLAPS_AT_MOST: usize = 4;

impl<'a> Stream<'a> {
    pub(super) fn of(pieces: impl Iterator<Item = (i64, &'a [u8])>) -> Self {
        let mut pieces: Vec<_> = pieces.collect();
        if !pieces.is_sorted_by_key(|&(offset, _)| offset) {
            pieces.sort_by_key(|&(offset, _)| offset);
        }
        Stream { pieces }
    }

    pub(super) fn pieces(&self) -> &[(i64, &'a [u8])] {
        &self.pieces
    }

    /// The captured bytes from this offset to the end of their piece; empty where there are none.
    pub(super) fn bytes_at(&self, offset: i64) -> &'a [u8] {
        let after = self.pieces.partition_point(|&(start, _)| start <= offset);
        let near = self.pieces[..after].iter().rev().take(OVERLAPS_AT_MOST);
        let held = near.filter_map(|&(start, bytes)| bytes.get(usize::try_from(offset.checked_sub(start)?).ok()?..));
        held.reduce(|longest, bytes| if bytes.len() > longest.len() { bytes } else { longest }).unwrap_or(&[])
    }

    /// The bytes at this offset, of neighbouring pieces too.
    pub(super) fn read<const N: usize>(&self, offset: i64) -> Option<[u8; N]> {
        let bytes = self.bytes_at(offset);
        if let Some(found) = bytes.first_chunk() {
            return Some(*found);
        }
        if bytes.is_empty() {
            return None;
        }
        let mut found = [0; N];
        for (place, byte) in found.iter_mut().enumerate() {
            *byte = *self.bytes_at(offset.checked_add(place as i64)?).first()?;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::sample::PayloadSample;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_read_across_pieces() {
        let sample: PayloadSample = [(10, &b"lo wor"[..]), (7, &b"hel"[..]), (20, &b"x"[..])].into_iter().collect();
        let stream = Stream::of(sample.pieces());
        assert_eq!(stream.read(7), Some(*b"hello w"));
        assert_eq!(stream.read::<2>(15), None);
        assert_eq!(stream.read::<1>(6), None);
        assert_eq!((stream.bytes_at(12), stream.bytes_at(19)), (&b" wor"[..], &b""[..]));
    }

    proptest! {
        #[test]
        fn any_offset_is_asked_for(
            pieces in prop::collection::vec((any::<i64>(), prop::collection::vec(any::<u8>(), 0..9)), 0..9),
            offset in any::<i64>(),
        ) {
            let sample: PayloadSample = pieces.iter().map(|(offset, piece)| (*offset, piece.as_slice())).collect();
            let stream = Stream::of(sample.pieces());
            let _ = stream.read::<5>(offset);
            for (start, bytes) in pieces {
                prop_assert!(stream.bytes_at(start).len() >= bytes.len() || pieces_overlap(&stream, start));
            }
        }
    }

    fn pieces_overlap(stream: &Stream<'_>, start: i64) -> bool {
        stream.pieces().iter().filter(|&&(offset, _)| offset <= start).count() > OVERLAPS_AT_MOST
    }
}

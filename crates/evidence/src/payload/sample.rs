//! Captured payload of one direction of a connection: pieces of its stream.

use std::ops::Range;
use std::sync::Arc;

/// Pieces of several streams, one stream behind the other.
#[derive(Clone, Debug, Default)]
pub struct PayloadStore {
    offsets: Vec<i64>,
    /// Where each piece ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl PayloadStore {
    /// Adds the pieces of one stream and returns which of all these are.
    pub fn add<'a>(&mut self, pieces: impl Iterator<Item = (i64, &'a [u8])> + Clone) -> Range<usize> {
        let begin = self.offsets.len();
        let (count, bytes) = pieces.clone().fold((0, 0), |(count, bytes), (_, piece)| (count + 1, bytes + piece.len()));
        self.offsets.reserve(count);
        self.ends.reserve(count);
        self.bytes.reserve(bytes);
        for (offset, piece) in pieces {
            self.offsets.push(offset);
            self.bytes.extend_from_slice(piece);
            self.ends.push(self.bytes.len());
        }
        begin..self.offsets.len()
    }

    /// Where a piece begins in `bytes`, and behind the last one where all end.
    fn begin(&self, piece: usize) -> usize {
        piece.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

/// Pieces in order of capture, each with its stream offset; they may overlap.
#[derive(Clone, Debug, Default)]
pub struct PayloadSample {
    store: Arc<PayloadStore>,
    chosen: Range<usize>,
}

impl<'a> FromIterator<(i64, &'a [u8])> for PayloadSample {
    fn from_iter<I: IntoIterator<Item = (i64, &'a [u8])>>(pieces: I) -> Self {
        Self::of(pieces.into_iter().collect::<Vec<_>>().into_iter())
    }
}

impl PayloadSample {
    /// The sample of one stream alone, in memory that is just large enough.
    pub fn of<'a>(pieces: impl Iterator<Item = (i64, &'a [u8])> + Clone) -> Self {
        let mut store = PayloadStore::default();
        let chosen = store.add(pieces);
        Self { store: Arc::new(store), chosen }
    }

    /// Those of a store that `PayloadStore::add` said are of one stream.
    pub fn of_store(store: &Arc<PayloadStore>, chosen: Range<usize>) -> Self {
        Self { store: store.clone(), chosen }
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.chosen.len()
    }

    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// Stream offset of each piece.
    pub fn offsets(&self) -> &[i64] {
        &self.store.offsets[self.chosen.clone()]
    }

    /// All pieces, one behind the other.
    pub fn bytes(&self) -> &[u8] {
        &self.store.bytes[self.store.begin(self.chosen.start)..self.store.begin(self.chosen.end)]
    }

    /// The bytes of one piece.
    pub fn piece(&self, place: usize) -> &[u8] {
        let piece = self.chosen.start + place;
        &self.store.bytes[self.store.begin(piece)..self.store.ends[piece]]
    }

    /// Stream offset and bytes of each piece.
    pub fn pieces(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.offsets().iter().enumerate().map(|(place, &offset)| (offset, self.piece(place)))
    }

    /// The longest piece at the stream's first byte, of equally long ones the first.
    pub fn opening(&self) -> Option<&[u8]> {
        let at_start = self.pieces().filter(|&(offset, _)| offset == 0).map(|(_, piece)| piece);
        at_start.reduce(|longest, piece| if piece.len() > longest.len() { piece } else { longest })
    }

    /// Whether no two bytes differ.
    pub fn is_one_byte_repeated(&self) -> bool {
        let bytes = self.bytes();
        bytes.iter().all(|byte| Some(byte) == bytes.first())
    }

    /// Different bytes in the piece that has most.
    pub fn most_distinct_bytes(&self) -> usize {
        self.pieces().map(|(_, piece)| distinct_bytes(piece)).max().unwrap_or(0)
    }
}

/// How many different bytes there are.
pub(crate) fn distinct_bytes(bytes: &[u8]) -> usize {
    let mut seen = [0_u64; 4];
    for &byte in bytes {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|word| word.count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pieces: &[(i64, &'static [u8])]) -> PayloadSample {
        pieces.iter().copied().collect()
    }

    #[test]
    fn the_longest_piece_at_the_first_byte_opens_the_stream() {
        assert_eq!(sample(&[(3, b"later")]).opening(), None);
        assert_eq!(sample(&[(0, b"GE"), (0, b"GET"), (0, b"PUT"), (3, b"longer")]).opening(), Some(&b"GET"[..]));
    }

    #[test]
    fn pieces_of_one_byte_tell_nothing() {
        assert!(sample(&[]).is_one_byte_repeated());
        assert!(sample(&[(0, b"xx"), (9, b""), (2, b"x")]).is_one_byte_repeated());
        assert!(!sample(&[(0, b"xx"), (2, b"y")]).is_one_byte_repeated());
        assert_eq!(sample(&[(0, b"aabb"), (4, b"abc"), (7, b"")]).most_distinct_bytes(), 3);
    }
}

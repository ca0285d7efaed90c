//! Captured payload of one direction of a connection: pieces of its stream.

/// Pieces in order of capture, each with its stream offset; they may overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PayloadSample {
    offsets: Vec<i64>,
    /// Where each piece ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl<'a> FromIterator<(i64, &'a [u8])> for PayloadSample {
    fn from_iter<I: IntoIterator<Item = (i64, &'a [u8])>>(pieces: I) -> Self {
        let mut sample = Self::default();
        sample.refill(pieces.into_iter());
        sample
    }
}

impl PayloadSample {
    /// The same in memory that is just large enough.
    pub fn of<'a>(pieces: impl Iterator<Item = (i64, &'a [u8])> + Clone) -> Self {
        let (count, bytes) = pieces.clone().fold((0, 0), |(count, bytes), (_, piece)| (count + 1, bytes + piece.len()));
        let mut sample = Self {
            offsets: Vec::with_capacity(count),
            ends: Vec::with_capacity(count),
            bytes: Vec::with_capacity(bytes),
        };
        sample.refill(pieces);
        sample
    }

    /// Hold these pieces instead, in the memory that there is.
    pub fn refill<'a>(&mut self, pieces: impl Iterator<Item = (i64, &'a [u8])>) {
        self.offsets.clear();
        self.ends.clear();
        self.bytes.clear();
        for (offset, piece) in pieces {
            self.push(offset, piece);
        }
    }

    fn push(&mut self, offset: i64, piece: &[u8]) {
        self.offsets.push(offset);
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len());
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Stream offset of each piece.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// All pieces, one behind the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of one piece.
    pub fn piece(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.bytes[start..self.ends[place]]
    }

    /// Stream offset and bytes of each piece.
    pub fn pieces(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.offsets.iter().enumerate().map(|(place, &offset)| (offset, self.piece(place)))
    }

    /// The longest piece at the stream's first byte, of equally long ones the first.
    pub fn opening(&self) -> Option<&[u8]> {
        let at_start = self.pieces().filter(|&(offset, _)| offset == 0).map(|(_, piece)| piece);
        at_start.reduce(|longest, piece| if piece.len() > longest.len() { piece } else { longest })
    }

    /// Whether no two bytes differ.
    pub fn is_one_byte_repeated(&self) -> bool {
        self.bytes.iter().all(|byte| Some(byte) == self.bytes.first())
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

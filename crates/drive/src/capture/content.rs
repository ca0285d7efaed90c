//! The bytes that payloads are cut from, made so that checksums over any length cost next to nothing.
//!
//! Content is a text head (a request line, say), if it has one, and then blocks of eight bytes at offsets that are
//! multiples of eight: four pseudo-random bytes and their complement. Each 16-bit word and its complement add up to
//! 0xffff, which is zero in ones' complement arithmetic (RFC 1071), so a checksum needs only the pieces at the ends.

use pepscope_tcp::{ContentId, Streams};

const BLOCK_BYTES: u64 = 8;

/// What captures usually keep of a payload.
pub(super) const BEGINNING_BYTES: usize = 16;

/// The text heads of contents, by identifier, and the streams that protocols write.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    heads: Vec<Box<[u8]>>,
    streams: Streams,
}

impl Contents {
    /// Sets `head` as the beginning of `content`. Identifiers should be small numbers: memory is taken up to the
    /// largest.
    pub fn register(&mut self, content: ContentId, head: &[u8]) {
        let index = content.0 as usize;
        if self.heads.len() <= index {
            self.heads.resize(index + 1, Box::default());
        }
        self.heads[index] = head.into();
    }

    /// With the streams that a run's protocols write.
    #[must_use]
    pub fn with_streams(mut self, streams: Streams) -> Self {
        self.streams = streams;
        self
    }

    #[inline]
    fn head(&self, content: ContentId) -> &[u8] {
        self.heads.get(content.0 as usize).map_or(&[], |head| head)
    }

    /// The offset of `content` from which on there is no text, nor what else is not made of blocks alone.
    #[must_use]
    pub fn text_end(&self, content: ContentId) -> u64 {
        match Streams::has(content) {
            true => u64::MAX,
            false => self.head(content).len() as u64,
        }
    }

    /// Writes the bytes of `content` from `offset` on, as many as `out` takes. Gives the sum, modulo 0xffff, of the
    /// big-endian 16-bit words of all `bytes` from `offset` on, the first byte standing at an even place of the packet.
    #[inline(never)]
    pub fn put(&self, content: ContentId, offset: u64, bytes: u64, out: &mut [u8]) -> u64 {
        if Streams::has(content) {
            return self.put_stream(content, offset, bytes, out);
        }
        let text = self.head(content).get(offset as usize..).unwrap_or_default();
        let text = &text[..text.len().min(bytes as usize)];
        let (place_of_text, place_of_blocks) = out.split_at_mut(text.len().min(out.len()));
        place_of_text.copy_from_slice(&text[..place_of_text.len()]);
        let text_bytes = text.len() as u64;
        let sum = put_blocks(content, offset + text_bytes, bytes - text_bytes, place_of_blocks);
        words_sum(text) + placed(sum, text_bytes)
    }

    /// As [`Contents::put`], of a stream: literal bytes, and blocks where it has filler.
    fn put_stream(&self, content: ContentId, offset: u64, bytes: u64, mut out: &mut [u8]) -> u64 {
        let (mut sum, mut done) = (0, 0);
        self.streams.visit(content, offset, bytes, |piece| {
            let length = match piece {
                Ok(literal) => literal.len() as u64,
                Err((_, length)) => length,
            };
            let kept = out.len().min(length as usize);
            let (place, rest) = std::mem::take(&mut out).split_at_mut(kept);
            let part = match piece {
                Ok(literal) => {
                    place.copy_from_slice(&literal[..kept]);
                    words_sum(literal)
                }
                Err((start, length)) => put_blocks(content, start, length, place),
            };
            sum += placed(part, done);
            (out, done) = (rest, done + length);
        });
        sum
    }
}

/// The sum of what stands `before` bytes behind an even place: at an odd place it has its bytes exchanged (RFC 1071,
/// section 2).
fn placed(sum: u64, before: u64) -> u64 {
    if before % 2 == 0 {
        sum
    } else {
        fold(sum).swap_bytes().into()
    }
}

/// As [`Contents::put`], where there is no text.
#[inline(never)]
pub(super) fn put_blocks(content: ContentId, offset: u64, bytes: u64, out: &mut [u8]) -> u64 {
    put_blocks_of(ContentKey::of(content), offset, bytes, out)
}

/// The first bytes of a payload without text, as two numbers, and the sum of all of its `bytes`.
#[inline(always)]
pub(super) fn beginning(key: ContentKey, offset: u64, bytes: u64) -> ([u64; 2], u64) {
    let end = offset.wrapping_add(bytes);
    if (offset | end) % 4 != 0 {
        return unaligned_beginning(key, offset, bytes);
    }
    // Halves of blocks: a random one, its complement, and so on.
    let number = offset / BLOCK_BYTES;
    let (first, second) = (random_half(key, number), random_half(key, number.wrapping_add(1)));
    let (upper, lower, mut sum) = match offset % BLOCK_BYTES {
        0 => ([first, !first], [second, !second], 0),
        _ => ([!first, second], [!second, random_half(key, number.wrapping_add(2))], u64::from(!first)),
    };
    // A half at an end adds to the sum; halves in between have their complements beside them.
    if end % BLOCK_BYTES != 0 {
        sum += u64::from(random_half(key, end / BLOCK_BYTES));
    }
    ([upper, lower].map(|[left, right]| u64::from(left) << 32 | u64::from(right)), sum)
}

#[inline(never)]
fn unaligned_beginning(key: ContentKey, offset: u64, bytes: u64) -> ([u64; 2], u64) {
    let mut beginning = [0; BEGINNING_BYTES];
    let sum = put_blocks_of(key, offset, bytes, &mut beginning);
    let both = u128::from_be_bytes(beginning);
    ([(both >> 64) as u64, both as u64], sum)
}

#[inline(always)]
fn put_blocks_of(key: ContentKey, offset: u64, bytes: u64, out: &mut [u8]) -> u64 {
    let end = offset.wrapping_add(bytes);
    let (first_number, last_number) = (offset / BLOCK_BYTES, end / BLOCK_BYTES);
    let (from, to) = (8 * (offset % BLOCK_BYTES) as u32, 8 * (end % BLOCK_BYTES) as u32);
    let first = words(key, first_number);
    // Separate loops, each with a constant shift where segments are multiples of four bytes long.
    match from {
        0 => fill(key, first_number, first, 0, out),
        32 => fill(key, first_number, first, 32, out),
        shift => fill_unaligned(key, first_number, first, shift, out),
    }
    // Whole blocks add up to nothing, so that only the ends of two have to be summed: the first one's from the offset
    // on, and instead of the last one's up to the end, what lacks to nothing behind it.
    let mut sum = halves_sum(first & u64::MAX.wrapping_shr(from));
    if to != 0 {
        sum = sum.wrapping_add(halves_sum(!(words(key, last_number) & u64::MAX.wrapping_shr(to))));
    }
    // Words were summed at their places in the content; where those are odd in the packet, the sum has its bytes
    // exchanged.
    if offset % 2 == 0 {
        sum
    } else {
        fold(sum).swap_bytes().into()
    }
}

/// Out of the way of the usual cases.
#[inline(never)]
fn fill_unaligned(key: ContentKey, number: u64, first: u64, shift: u32, out: &mut [u8]) {
    fill(key, number, first, shift, out);
}

/// Writes blocks from the one at `number`, which is `current`, without their first `shift` bits.
#[inline(always)]
fn fill(key: ContentKey, mut number: u64, mut current: u64, shift: u32, mut out: &mut [u8]) {
    const BYTES: usize = BLOCK_BYTES as usize;
    while !out.is_empty() {
        number = number.wrapping_add(1);
        // The end of one block and the beginning of the next.
        let next = words(key, number);
        let bytes = (current.wrapping_shl(shift) | (next >> 1).wrapping_shr(63 - shift)).to_be_bytes();
        current = next;
        if out.len() < BYTES {
            return out.copy_from_slice(&bytes[..out.len()]);
        }
        let (place, rest) = std::mem::take(&mut out).split_at_mut(BYTES);
        place.copy_from_slice(&bytes);
        out = rest;
    }
}

/// The upper and the lower half of `word` added: the same sum, modulo 0xffff, as that of its four words.
#[inline(always)]
fn halves_sum(word: u64) -> u64 {
    (word >> 32) + (word & 0xffff_ffff)
}

/// Sum of the big-endian 16-bit words of `bytes`, a last odd one being the upper half of its word.
pub(super) fn words_sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low))).sum()
}

/// A sum of words in ones' complement, as 16 bits.
#[inline(always)]
#[must_use]
pub fn fold(sum: u64) -> u16 {
    // Adding what is the same with its halves exchanged leaves the sum of both, carry included, in the upper half.
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// What makes the blocks of one content differ from another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentKey(u64);

impl ContentKey {
    pub(super) const fn of(content: ContentId) -> Self {
        Self((content.0 as u64).wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03))
    }
}

/// The block at `number` times eight bytes, the first byte in the highest place: a hash and its complement. It is both
/// halves of a product of 64 bits by 64, added without carry: one multiplication mixes all bits.
#[inline(always)]
fn words(key: ContentKey, number: u64) -> u64 {
    let random = mixed(key, number) & 0xffff_ffff_0000_0000;
    random | (!random >> 32)
}

/// The first half of [`words`], whose complement is the second one.
#[inline(always)]
fn random_half(key: ContentKey, number: u64) -> u32 {
    (mixed(key, number) >> 32) as u32
}

#[inline(always)]
fn mixed(key: ContentKey, number: u64) -> u64 {
    let product = u128::from(number ^ key.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::{beginning, fold, put_blocks, words_sum, ContentKey, Contents, BEGINNING_BYTES};
    use pepscope_tcp::{ContentId, Piece, Write};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_short_sum_is_the_sum_of_the_bytes(
            id in 0u32..5, offset in 0u64..300, length in 0usize..3000, head in 0usize..200
        ) {
            let mut contents = Contents::default();
            contents.register(ContentId(3), &vec![b'h'; head]);
            let mut bytes = vec![0; length];
            let short = fold(contents.put(ContentId(id), offset, length as u64, &mut bytes));
            prop_assert_eq!(short % 0xffff, fold(words_sum(&bytes)) % 0xffff);
            let mut cut = vec![0; length / 3];
            prop_assert_eq!(fold(contents.put(ContentId(id), offset, length as u64, &mut cut)), short);
            prop_assert_eq!(&cut, &bytes[..length / 3]);
        }

        #[test]
        fn a_beginning_is_the_beginning(
            id in any::<u32>(), offset in 0u64..300, more in 0u64..3000, whole in any::<bool>()
        ) {
            let (unit, content) = (if whole { 4 } else { 1 }, ContentId(id));
            let (offset, bytes) = (offset * unit, BEGINNING_BYTES as u64 + more * unit);
            let mut expected = [0; BEGINNING_BYTES];
            let sum = put_blocks(content, offset, bytes, &mut expected);
            let (numbers, short) = beginning(ContentKey::of(content), offset, bytes);
            prop_assert_eq!(numbers.map(u64::to_be_bytes).concat(), expected);
            prop_assert_eq!(short % 0xffff, sum % 0xffff);
        }

        #[test]
        fn pieces_are_cut_from_one_content(offset in 0u64..100, split in 0usize..200) {
            let mut contents = Contents::default();
            contents.register(ContentId(1), b"GET / HTTP/1.1\r\n\r\n");
            let (mut whole, mut pieces) = ([0; 200], [0; 200]);
            contents.put(ContentId(1), offset, 200, &mut whole);
            let (left, right) = pieces.split_at_mut(split);
            contents.put(ContentId(1), offset, split as u64, left);
            contents.put(ContentId(1), offset + split as u64, 200 - split as u64, right);
            prop_assert_eq!(whole, pieces);
        }
    }

    proptest! {
        #[test]
        fn streams_are_summed_as_they_are_shown(
            pieces in prop::collection::vec((0usize..40, any::<bool>()), 1..12),
            cut in (0usize..300, 0usize..300),
        ) {
            let contents = Contents::default();
            let stream = contents.streams.open();
            let made = pieces.iter().map(|&(bytes, is_literal)| match is_literal {
                true => Piece::Literal((0..bytes).map(|byte| byte as u8 ^ 0x5a).collect()),
                false => Piece::Filler(bytes as u64),
            });
            contents.streams.append(0, stream, Write { pieces: made.collect(), message: None });
            let total: usize = pieces.iter().map(|(bytes, _)| bytes).sum();
            let mut whole = vec![0; total];
            contents.put(stream, 0, total as u64, &mut whole);
            let (start, length) = (cut.0.min(total), cut.1.min(total - cut.0.min(total)));
            let mut part = vec![0; length];
            let sum = contents.put(stream, start as u64, length as u64, &mut part);
            prop_assert_eq!(&part, &whole[start..start + length]);
            prop_assert_eq!(fold(sum) % 0xffff, fold(words_sum(&part)) % 0xffff);
        }
    }

    #[test]
    fn contents_differ_and_begin_with_their_heads() {
        let mut contents = Contents::default();
        contents.register(ContentId(1), b"220 ready\r\n");
        let (mut first, mut second) = ([0; 64], [0; 64]);
        contents.put(ContentId(1), 0, 64, &mut first);
        contents.put(ContentId(2), 0, 64, &mut second);
        assert_eq!(&first[..11], b"220 ready\r\n");
        assert_ne!(first[11..], second[11..]);
    }
}

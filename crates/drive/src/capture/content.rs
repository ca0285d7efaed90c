//! The bytes that payloads are cut from, made so that checksums over any length cost next to nothing.
//!
//! Content is a text head (a request line, say), if it has one, and then blocks of eight bytes at offsets that are
//! multiples of eight: four pseudo-random bytes and their complement. Each 16-bit word and its complement add up to
//! 0xffff, which is zero in ones' complement arithmetic (RFC 1071), so a checksum needs only the pieces at the ends.

use pepscope_tcp::ContentId;

const BLOCK_BYTES: u64 = 8;

/// The text heads of contents, by identifier.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    heads: Vec<Box<[u8]>>,
}

impl Contents {
    /// Lets `content` begin with `head`. Identifiers should be small numbers: memory is taken up to the largest.
    pub fn register(&mut self, content: ContentId, head: &[u8]) {
        let index = content.0 as usize;
        if self.heads.len() <= index {
            self.heads.resize(index + 1, Box::default());
        }
        self.heads[index] = head.into();
    }

    #[inline]
    fn head(&self, content: ContentId) -> &[u8] {
        self.heads.get(content.0 as usize).map_or(&[], |head| head)
    }

    /// Writes the bytes of `content` from `offset` on.
    #[inline]
    pub fn fill(&self, content: ContentId, mut offset: u64, mut out: &mut [u8]) {
        let head = self.head(content);
        if (offset as usize) < head.len() {
            let count = out.len().min(head.len() - offset as usize);
            out[..count].copy_from_slice(&head[offset as usize..offset as usize + count]);
            out = &mut out[count..];
            offset += count as u64;
        }
        // Each eight bytes are the end of one block and the beginning of the next.
        let key = key(content);
        let shift = 8 * (offset % BLOCK_BYTES) as u32;
        let mut number = offset / BLOCK_BYTES;
        let mut current = words(key, number);
        let mut next_bytes = || {
            number = number.wrapping_add(1);
            let next = words(key, number);
            let bytes = (current << shift | (next >> 1) >> (63 - shift)).to_be_bytes();
            current = next;
            bytes
        };
        let mut whole = out.chunks_exact_mut(8);
        for chunk in &mut whole {
            chunk.copy_from_slice(&next_bytes());
        }
        let rest = whole.into_remainder();
        if !rest.is_empty() {
            let count = rest.len();
            rest.copy_from_slice(&next_bytes()[..count]);
        }
    }

    /// Sum of the big-endian 16-bit words of `content` over `offset` .. `offset + bytes`, modulo 0xffff, where the first
    /// byte stands at an even place of the packet.
    #[inline]
    #[must_use]
    pub fn checksum_sum(&self, content: ContentId, offset: u64, bytes: u64) -> u64 {
        let end = offset + bytes;
        let head = self.head(content);
        if offset >= head.len() as u64 {
            return edges_sum(content, offset, end, 0);
        }
        let head_end = end.min(head.len() as u64);
        let text = &head[offset as usize..head_end as usize];
        let sum = text.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low)));
        sum.sum::<u64>() + edges_sum(content, head_end, end, head_end - offset)
    }
}

/// Sum over `start` .. `end` of the blocks, the byte at `start` being byte number `place` of the payload.
#[inline]
fn edges_sum(content: ContentId, start: u64, end: u64, place: u64) -> u64 {
    if start >= end {
        return 0;
    }
    let (first, last) = (start / BLOCK_BYTES, end / BLOCK_BYTES);
    // Words are summed at their places in the content; where those are odd in the packet, the sum has its bytes swapped.
    let sum = if first == last {
        masked_sum(content, first, start % BLOCK_BYTES, end % BLOCK_BYTES)
    } else {
        let head = if start % BLOCK_BYTES == 0 { 0 } else { masked_sum(content, first, start % BLOCK_BYTES, 8) };
        let tail = if end % BLOCK_BYTES == 0 { 0 } else { masked_sum(content, last, 0, end % BLOCK_BYTES) };
        head + tail
    };
    if (start + place) % 2 == 0 {
        sum
    } else {
        u64::from(fold(sum).swap_bytes())
    }
}

/// Sum of the words of one block with the bytes outside `from` .. `to` as zeros.
#[inline]
fn masked_sum(content: ContentId, number: u64, from: u64, to: u64) -> u64 {
    let kept = (u64::MAX >> (8 * from)) & !(u64::MAX.checked_shr(8 * to as u32).unwrap_or(0));
    let word = words(key(content), number) & kept;
    (word >> 32) + (word & 0xffff_ffff)
}

/// A sum of words in ones' complement, as 16 bits.
#[inline]
#[must_use]
pub fn fold(mut sum: u64) -> u16 {
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// What makes the blocks of one content differ from another's.
#[inline]
fn key(content: ContentId) -> u64 {
    u64::from(content.0).wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03)
}

/// The block at `number` times eight bytes, the first byte in the highest place: a hash and its complement. It is both
/// halves of a product of 64 bits by 64, added without carry: one multiplication mixes all bits.
#[inline]
fn words(key: u64, number: u64) -> u64 {
    let product = u128::from(number ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let random = ((product >> 64) as u64 ^ product as u64) & 0xffff_ffff_0000_0000;
    random | (!random >> 32)
}

#[cfg(test)]
mod tests {
    use super::{fold, Contents};
    use pepscope_tcp::ContentId;
    use proptest::prelude::*;

    fn plain_sum(bytes: &[u8]) -> u64 {
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low))).sum()
    }

    proptest! {
        #[test]
        fn the_short_sum_is_the_sum_of_the_bytes(
            id in 0u32..5, offset in 0u64..300, length in 0usize..3000, head in 0usize..200
        ) {
            let mut contents = Contents::default();
            contents.register(ContentId(3), &vec![b'h'; head]);
            let mut bytes = vec![0; length];
            contents.fill(ContentId(id), offset, &mut bytes);
            let short = fold(contents.checksum_sum(ContentId(id), offset, length as u64));
            prop_assert_eq!(short % 0xffff, fold(plain_sum(&bytes)) % 0xffff);
        }

        #[test]
        fn pieces_are_cut_from_one_content(offset in 0u64..100, split in 0usize..200) {
            let mut contents = Contents::default();
            contents.register(ContentId(1), b"GET / HTTP/1.1\r\n\r\n");
            let (mut whole, mut pieces) = ([0; 200], [0; 200]);
            contents.fill(ContentId(1), offset, &mut whole);
            let (left, right) = pieces.split_at_mut(split);
            contents.fill(ContentId(1), offset, left);
            contents.fill(ContentId(1), offset + split as u64, right);
            prop_assert_eq!(whole, pieces);
        }
    }

    #[test]
    fn contents_differ_and_begin_with_their_heads() {
        let mut contents = Contents::default();
        contents.register(ContentId(1), b"220 ready\r\n");
        let (mut first, mut second) = ([0; 64], [0; 64]);
        contents.fill(ContentId(1), 0, &mut first);
        contents.fill(ContentId(2), 0, &mut second);
        assert_eq!(&first[..11], b"220 ready\r\n");
        assert_ne!(first[11..], second[11..]);
    }
}

//! Fingerprints of payload: windows of a stream that two captures choose alike, whatever its segmentation and offsets.
//!
//! A fingerprint is a window of 16 captured bytes whose hash falls into one of sixteen classes, so that the choice
//! depends on the content alone.

use crate::payload::sample::{distinct_bytes, PayloadSample};

/// Length of a window.
const WINDOW_BYTES: usize = 16;
/// One window in so many, by the low bits of its hash, is a fingerprint.
const CLASSES: u64 = 16;

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX_HIGH: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// Fingerprints of many streams as columns of one length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fingerprints<'a> {
    pub hash: &'a [u64],
    /// Number of the stream.
    pub stream: &'a [i64],
    pub offset: &'a [i64],
}

/// Streams of two sides with fingerprints in common, by stream numbers and shift.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    pub left: Vec<i64>,
    pub right: Vec<i64>,
    /// Left offset less right offset.
    pub shift: Vec<i64>,
    pub count: Vec<i64>,
    /// Parts of the left stream, of equal length, in which they lie.
    pub places: Vec<i64>,
}

/// Hash and stream offset of all fingerprints with at least so many different bytes, in the order of the pieces.
pub fn fingerprints(sample: &PayloadSample, least_distinct: usize) -> Vec<(u64, i64)> {
    let mut found = Vec::new();
    for (offset, piece) in sample.pieces() {
        for (place, window) in piece.windows(WINDOW_BYTES).enumerate() {
            let hash = hash(window);
            if hash % CLASSES == 0 && distinct_bytes(window) >= least_distinct {
                found.push((hash, offset.wrapping_add(place as i64)));
            }
        }
    }
    found
}

/// The fingerprints with the `most` least hashes, ascending. Retransmissions count once, repetitive content not at all.
pub fn sketch(sample: &PayloadSample, least_distinct: usize, most: usize) -> Vec<(u64, i64)> {
    let mut found = fingerprints(sample, least_distinct);
    found.sort_unstable();
    found.dedup();
    let alone = found.chunk_by(|one, two| one.0 == two.0).filter(|copies| copies.len() == 1);
    alone.map(|copies| copies[0]).take(most).collect()
}

/// Counts the fingerprints that pairs of streams have in common, by their shift.
///
/// A hash that occurs in more than `common_pairs` pairs distinguishes none and is left out. `spread_bytes`, at least 1,
/// is the length of the parts that count as places.
pub fn vote(left: Fingerprints<'_>, right: Fingerprints<'_>, common_pairs: usize, spread_bytes: i64) -> Votes {
    let spread_bytes = spread_bytes.max(1);
    let by_hash = |hashes: &[u64]| {
        let mut rows: Vec<(u64, usize)> = hashes.iter().copied().zip(0..).collect();
        rows.sort_unstable();
        rows
    };
    let (ones, others) = (by_hash(left.hash), by_hash(right.hash));
    let mut rest = others.as_slice();
    let mut shared = Vec::new();
    for alike in ones.chunk_by(|one, two| one.0 == two.0) {
        let hash = alike[0].0;
        rest = &rest[rest.partition_point(|other| other.0 < hash)..];
        let partners = &rest[..rest.partition_point(|other| other.0 == hash)];
        if partners.len().saturating_mul(alike.len()) > common_pairs {
            continue;
        }
        for &(_, row) in alike {
            let (stream, offset) = (left.stream[row], left.offset[row]);
            shared.extend(partners.iter().map(|&(_, other)| {
                let shift = offset.wrapping_sub(right.offset[other]);
                (stream, right.stream[other], shift, offset.div_euclid(spread_bytes))
            }));
        }
    }
    shared.sort_unstable();
    let mut votes = Votes::default();
    for group in shared.chunk_by(|one, two| (one.0, one.1, one.2) == (two.0, two.1, two.2)) {
        let (one, two, shift, _) = group[0];
        votes.left.push(one);
        votes.right.push(two);
        votes.shift.push(shift);
        votes.count.push(group.len() as i64);
        votes.places.push(group.chunk_by(|one, two| one.3 == two.3).count() as i64);
    }
    votes
}

/// The `most` right offsets less left offsets on which most fingerprints of two streams agree; of equals, the greatest.
pub fn voted_shifts(left: &[(u64, i64)], right: &[(u64, i64)], common_pairs: usize, most: usize) -> Vec<i64> {
    let columns = |found: &[(u64, i64)]| -> (Vec<u64>, Vec<i64>) { found.iter().copied().unzip() };
    let ((hash, offset), (other_hash, other_offset)) = (columns(left), columns(right));
    let alone = vec![0; left.len().max(right.len())];
    let votes = vote(
        Fingerprints { hash: &hash, stream: &alone[..left.len()], offset: &offset },
        Fingerprints { hash: &other_hash, stream: &alone[..right.len()], offset: &other_offset },
        common_pairs,
        1,
    );
    let mut order: Vec<usize> = (0..votes.shift.len()).collect();
    order.sort_by_key(|&row| std::cmp::Reverse(votes.count[row]));
    order.iter().take(most).map(|&row| votes.shift[row].wrapping_neg()).collect()
}

fn hash(window: &[u8]) -> u64 {
    let word =
        |from: usize| window.get(from..).and_then(|bytes| bytes.first_chunk()).map_or(0, |&w| u64::from_le_bytes(w));
    let mut hash = word(0).wrapping_mul(MIX) ^ word(8).wrapping_mul(MIX_HIGH);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(MIX);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(stream: &[u8], segment: usize, from: i64) -> PayloadSample {
        stream.chunks(segment).enumerate().map(|(number, piece)| (from + (number * segment) as i64, piece)).collect()
    }

    /// Bytes without a pattern.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let states = std::iter::successors(Some(seed), |state| Some(state.wrapping_add(MIX)));
        states.take(length).map(|state| hash(&[state.to_le_bytes(), state.to_be_bytes()].concat()) as u8).collect()
    }

    proptest! {
        #[test]
        fn a_stream_cut_otherwise_has_fingerprints_in_common(seed in any::<u64>(), shift in -5000_i64..5000) {
            let stream = noise(seed, 20_000);
            let (left, right) = (cut(&stream, 200, 0), cut(&stream, 256, shift));
            let (one, two) = (sketch(&left, 6, 256), sketch(&right, 6, 256));
            prop_assert!(one.is_sorted() && one.len() <= 256);
            let voted = voted_shifts(&one, &two, 4096, 4);
            prop_assert_eq!(voted.first(), Some(&shift));
        }
    }

    #[test]
    fn monotonous_windows_are_none() {
        assert_eq!(fingerprints(&cut(&[7; 4000], 250, 0), 2), []);
        assert!(!fingerprints(&cut(&noise(1, 4000), 250, 0), 6).is_empty());
    }
}

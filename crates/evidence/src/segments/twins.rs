//! Packets with data that two captures hold, known by a number of the header and their length.

use crate::packets::{mark, Packets};

/// Packets with a twin, the shift of the offsets that most of them have, and how many have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twins {
    /// Offset on the right less offset on the left; of equally common ones the least.
    pub shift: i64,
    pub count: usize,
    pub agreeing: usize,
}

/// The number that distinguishes packets of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identifier {
    Tsval,
    IpId,
}

/// The twins among the data packets of `direction`; `None` without any. What occurs at two offsets of a stream is left
/// out, and a packet recorded twice is one.
pub fn twins(left: &Packets<'_>, right: &Packets<'_>, direction: u8, by: Identifier) -> Option<Twins> {
    let (left, right) = (left.identified(direction, by), right.identified(direction, by));
    let mut shifts: Vec<i64> = Vec::new();
    let mut rest = right.as_slice();
    for &(key, offset) in &left {
        rest = &rest[rest.partition_point(|other| other.0 < key)..];
        shifts.extend(rest.first().filter(|other| other.0 == key).map(|other| other.1.wrapping_sub(offset)));
    }
    shifts.sort_unstable();
    let most_common =
        shifts
            .chunk_by(|one, two| one == two)
            .reduce(|best, next| if next.len() > best.len() { next } else { best })?;
    Some(Twins { shift: most_common[0], count: shifts.len(), agreeing: most_common.len() })
}

impl Packets<'_> {
    /// Number with length, and offset, of the data packets that have these at one offset only; ascending.
    fn identified(&self, direction: u8, by: Identifier) -> Vec<((u32, u32), i64)> {
        /// Lengths count modulo this.
        const LENGTHS: u32 = 1 << 24;
        let mut found = Vec::new();
        for (place, &payload_bytes) in self.payload_bytes.iter().enumerate() {
            if payload_bytes == 0 || self.direction[place] != direction {
                continue;
            }
            let number = match by {
                Identifier::Tsval if self.marks[place] & mark::HAS_TIMESTAMPS == 0 => continue,
                Identifier::Tsval => self.tsval[place],
                Identifier::IpId => u32::from(self.ip_id[place]),
            };
            found.push(((number, payload_bytes % LENGTHS), self.sequence_offset[place]));
        }
        found.sort_unstable();
        found.dedup();
        found.chunk_by(|one, two| one.0 == two.0).filter(|same| same.len() == 1).map(|same| same[0]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets<'a>(offset: &'a [i64], tsval: &'a [u32], payload_bytes: &'a [u32], marks: &'a [u16]) -> Packets<'a> {
        const DIRECTION: [u8; 8] = [1; 8];
        const IP_ID: [u16; 8] = [9; 8];
        Packets {
            direction: &DIRECTION[..offset.len()],
            sequence_offset: offset,
            tsval,
            payload_bytes,
            marks,
            ip_id: &IP_ID[..offset.len()],
            ..Packets::default()
        }
    }

    #[test]
    fn most_twins_tell_the_shift() {
        let marked = [mark::HAS_TIMESTAMPS; 6];
        let left =
            packets(&[0, 100, 200, 200, 300, 500], &[1, 2, 3, 3, 4, 4], &[100, 100, 100, 100, 200, 200], &marked);
        let right = packets(&[50, 150, 260, 350], &[1, 2, 3, 4], &[100, 100, 100, 200], &marked[..4]);
        // Of one stamp and length two packets lie at different offsets, so neither has a twin.
        let found = Twins { shift: 50, count: 3, agreeing: 2 };
        assert_eq!(twins(&left, &right, 1, Identifier::Tsval), Some(found));
        assert_eq!(twins(&left, &right, 0, Identifier::Tsval), None);
        assert_eq!(twins(&left, &right, 1, Identifier::IpId), None);
    }
}

//! SYN (or SYN-ACK) of one direction in two captures, as it left and as it arrived.

use crate::flows::ends::{Few, SynCopies};

/// Whether two sets of numbers have one in common: equal, other, or unknown where a side has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Common {
    #[default]
    Unknown,
    Equal,
    Other,
    /// One side has nothing but 0.
    Zeroed,
}

/// What all copies of an opening segment together show in two captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Copies in the emitter's capture and in the other one; 0 where it holds none.
    pub copies: [usize; 2],
    /// Hop limits of the first copies, and the least windows.
    pub ttl: [u8; 2],
    pub window: [u32; 2],
    pub windows: Common,
    pub tsvals: Common,
    /// Unknown too where both sides leave it 0.
    pub ip_ids: Common,
    /// Whether any copies have the same ECN flags, and the greatest ones of either side.
    pub ecn: Common,
    pub most_ecn: [u16; 2],
}

/// Compares an opening segment at its emitter with the same one in the other capture.
pub fn passed(left: &SynCopies, came: &SynCopies) -> Passed {
    let sides = [left, came];
    Passed {
        copies: sides.map(|side| side.count),
        ttl: sides.map(|side| side.ttl),
        window: sides.map(|side| side.windows.iter().min().unwrap_or(0)),
        windows: common(&left.windows, &came.windows),
        tsvals: common(&left.tsvals, &came.tsvals),
        ip_ids: ip_ids(&left.ip_ids, &came.ip_ids),
        ecn: common(&left.ecn, &came.ecn),
        most_ecn: sides.map(|side| side.ecn.iter().max().unwrap_or(0)),
    }
}

fn common<T: Copy + PartialEq>(left: &Few<T>, came: &Few<T>) -> Common {
    if left.is_empty() || came.is_empty() {
        Common::Unknown
    } else if left.iter().any(|number| came.iter().any(|other| other == number)) {
        Common::Equal
    } else {
        Common::Other
    }
}

fn ip_ids(left: &Few<u16>, came: &Few<u16>) -> Common {
    let [left_is_zero, came_is_zero] = [left, came].map(|ids| ids.iter().all(|id| id == 0));
    match (left_is_zero, came_is_zero) {
        _ if left.is_empty() || came.is_empty() => Common::Unknown,
        (true, true) => Common::Unknown,
        (true, false) | (false, true) => Common::Zeroed,
        (false, false) if left.iter().any(|id| id != 0 && came.iter().any(|other| other == id)) => Common::Equal,
        (false, false) => Common::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(ids: &[u16], windows: &[u32]) -> SynCopies {
        let (ip_ids, windows) = (ids.iter().copied().collect(), windows.iter().copied().collect());
        SynCopies { count: 1, ip_ids, windows, ..SynCopies::default() }
    }

    #[test]
    fn identifications_that_both_leave_out_say_nothing() {
        let ids = |left: &[u16], came: &[u16]| passed(&opening(left, &[1]), &opening(came, &[1])).ip_ids;
        assert_eq!(ids(&[0], &[0]), Common::Unknown);
        assert_eq!(ids(&[7], &[0]), Common::Zeroed);
        assert_eq!(ids(&[0, 7], &[0, 8]), Common::Other);
        assert_eq!(ids(&[7, 8], &[9, 8]), Common::Equal);
        assert_eq!(ids(&[], &[8]), Common::Unknown);
    }

    #[test]
    fn any_copy_that_agrees_will_do() {
        let found = passed(&opening(&[1], &[600, 512]), &opening(&[1], &[512]));
        assert_eq!((found.windows, found.window), (Common::Equal, [512, 512]));
        assert_eq!(passed(&opening(&[1], &[600]), &opening(&[1], &[512])).windows, Common::Other);
        assert_eq!(passed(&opening(&[1], &[600]), &SynCopies::default()).windows, Common::Unknown);
    }
}

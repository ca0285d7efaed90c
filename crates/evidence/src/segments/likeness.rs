//! Whether arrived data may be emitted segments at all, before their fields are compared one by one.

use crate::segments::columns::Segment;

/// Counts over arrived data with candidates: bounds of what comparing them would count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Likeness {
    /// Segments that bear timestamps, as all of their candidates do; and those that bear the timestamps of one.
    stamped: usize,
    stamps_equal: usize,
    /// Segments of which all candidates have the extent; and those with the IP ID of a candidate of their extent.
    whole: usize,
    ip_ids_equal: usize,
}

impl Likeness {
    pub(super) fn add<'a>(&mut self, came: &Segment, candidates: impl Iterator<Item = &'a Segment> + Clone) {
        if candidates.clone().next().is_none() {
            return;
        }
        let is_whole = |left: &Segment| left.start == came.start && left.length == came.length;
        if came.has_timestamps {
            let is_stamp = |left: &Segment| (left.tsval, left.tsecr) == (came.tsval, came.tsecr);
            self.stamped += usize::from(candidates.clone().all(|left| left.has_timestamps));
            self.stamps_equal += usize::from(candidates.clone().any(|left| left.has_timestamps && is_stamp(left)));
        }
        self.whole += usize::from(candidates.clone().all(is_whole));
        self.ip_ids_equal += usize::from(candidates.clone().any(|left| is_whole(left) && left.ip_id == came.ip_id));
    }

    /// Whether in one of the two fields, both unshifted, more than this share of the segments may be equal that lie
    /// between two places, of which these are the counts up to them.
    pub(super) fn exceeds(before: Self, after: Self, share: f64) -> bool {
        let is_more = |equal: usize, of: usize| equal as f64 > share * of as f64;
        is_more(after.stamps_equal - before.stamps_equal, after.stamped - before.stamped)
            || is_more(after.ip_ids_equal - before.ip_ids_equal, after.whole - before.whole)
    }
}

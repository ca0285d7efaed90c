//! The references that are kept: of each host and kind at most 256, spread evenly over all that there were.
//!
//! Where a host has more, every second one goes, and from then on every second one is taken in: after k such halvings
//! the kept ones are those whose rank is a multiple of 2^k. A choice by rank does not depend on the values, so
//! quantiles stay unbiased; a minimum is one over a part of them. Where all hosts together have more than fit, the
//! most of each falls in the same way.

use std::collections::HashMap;

use super::{Reference, ReferenceKind};

const MOST_OF_GROUP: usize = 256;
/// What that falls to where there are very many hosts.
const FEWEST_OF_GROUP: usize = 4;
/// Some 25 MB.
const MOST_IN_ALL: usize = 1 << 18;

/// References of one host and kind.
#[derive(Debug, Default)]
struct Group {
    seen: u64,
    /// Ranks that are multiples of 2 to this power are kept.
    halvings: u32,
    rows: Vec<Reference>,
}

impl Group {
    /// Leaves at most so many; gives by how many they became fewer.
    fn thin(&mut self, most: usize) -> usize {
        let before = self.rows.len();
        while self.rows.len() > most {
            let mut rank = 0_usize;
            self.rows.retain(|_| {
                rank += 1;
                rank % 2 == 1
            });
            self.halvings += 1;
        }
        before - self.rows.len()
    }
}

#[derive(Debug)]
pub(super) struct KeptReferences {
    groups: HashMap<([u8; 16], ReferenceKind), Group>,
    count: usize,
    most_of_group: usize,
    most_in_all: usize,
    left_out: u64,
}

impl Default for KeptReferences {
    fn default() -> Self {
        Self::within(MOST_IN_ALL)
    }
}

impl KeptReferences {
    pub(super) fn within(most_in_all: usize) -> Self {
        KeptReferences { groups: HashMap::new(), count: 0, most_of_group: MOST_OF_GROUP, most_in_all, left_out: 0 }
    }

    pub(super) fn push(&mut self, found: Reference) {
        let key = (found.host, found.kind);
        if self.count >= self.most_in_all && !self.make_room() && !self.groups.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let group = self.groups.entry(key).or_default();
        let rank = group.seen;
        group.seen += 1;
        if rank % (1 << group.halvings.min(63)) != 0 {
            return;
        }
        group.rows.push(found);
        self.count += 1;
        self.count -= group.thin(self.most_of_group);
    }

    /// Halves the most of each group until a quarter is free; false where that is not to be had.
    fn make_room(&mut self) -> bool {
        while self.count > self.most_in_all / 4 * 3 && self.most_of_group > FEWEST_OF_GROUP {
            self.most_of_group /= 2;
            self.count -= self.groups.values_mut().map(|group| group.thin(self.most_of_group)).sum::<usize>();
        }
        self.count < self.most_in_all
    }

    /// References of hosts for which there was no room.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(super) fn finish(self) -> Vec<Reference> {
        let mut rows: Vec<Reference> = self.groups.into_values().flat_map(|group| group.rows).collect();
        rows.sort_by_key(|row| (row.asked_ns, row.host, row.kind, row.round_trip_ns, row.host_port));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(host: u8, asked_ns: i64) -> Reference {
        Reference {
            host: [host; 16],
            host_port: 0,
            asker: [0; 16],
            ip_version: 4,
            kind: ReferenceKind::IcmpEcho,
            asked_ns,
            asked_frame: 0,
            answered_frame: 1,
            round_trip_ns: 1,
            repeated_ns: 0,
            request_bytes: 0,
            answer_bytes: 0,
            is_first: false,
        }
    }

    #[test]
    fn what_is_kept_is_spread_evenly() {
        let mut kept = KeptReferences::default();
        (0..1000).for_each(|time_ns| kept.push(reference(1, time_ns)));
        let times: Vec<i64> = kept.finish().iter().map(|row| row.asked_ns).collect();
        assert_eq!(times, (0..250).map(|rank| rank * 4).collect::<Vec<i64>>());
    }

    #[test]
    fn many_hosts_share_what_there_is() {
        let mut kept = KeptReferences::within(100);
        (0..4000).for_each(|time_ns| kept.push(reference((time_ns % 10) as u8, time_ns)));
        assert_eq!(kept.left_out(), 0);
        let rows = kept.finish();
        assert!(rows.len() <= 101, "{}", rows.len());
        for host in 0..10 {
            let of_host = rows.iter().filter(|row| row.host == [host; 16]).count();
            assert!(of_host >= FEWEST_OF_GROUP / 2, "{of_host} of host {host}");
        }
    }

    #[test]
    fn hosts_beyond_all_room_are_counted() {
        let mut kept = KeptReferences::within(16);
        (0..100).for_each(|host| kept.push(reference(host, i64::from(host))));
        assert_eq!(kept.left_out(), 84);
        assert_eq!(kept.finish().len(), 16);
    }
}

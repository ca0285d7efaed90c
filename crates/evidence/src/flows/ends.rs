//! Where a flow begins and ends in a capture: the copies of its SYN (or SYN-ACK), and its FIN.

use crate::packets::{bearing, flag, mark, Packets};

/// Numbers of which there is mostly one: no memory is taken for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, others: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Few<T> {
    /// In the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.first.iter().chain(&self.others).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds a number that is not the last one.
    fn add(&mut self, number: T) {
        match self.others.last().or(self.first.as_ref()) {
            None => self.first = Some(number),
            Some(last) if *last != number => self.others.push(number),
            Some(_) => {}
        }
    }
}

impl<T: Copy + PartialEq> FromIterator<T> for Few<T> {
    /// Runs of equal ones once.
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> Self {
        let mut few = Self::default();
        numbers.into_iter().for_each(|number| few.add(number));
        few
    }
}

/// What the copies of a flow's SYN hold, and where its FIN stands; numbers in order of capture, runs of equal ones once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowEnds {
    /// Copies of the SYN.
    pub syn_copies: usize,
    /// As in the column: unscaled in a SYN.
    pub syn_windows: Few<u32>,
    pub syn_ip_ids: Few<u16>,
    /// Of the copies with timestamps.
    pub syn_tsvals: Few<u32>,
    /// ECE, CWR and AE.
    pub syn_ecn: Few<u16>,
    /// Hop limit of the first copy, 0 without any.
    pub syn_ttl: u8,
    /// Greatest stream offset at which a FIN stands, behind the payload that it carries.
    pub fin_offset: Option<i64>,
}

impl Packets<'_> {
    /// The two ends of the flow of `direction`.
    pub fn flow_ends(&self, direction: u8) -> FlowEnds {
        const ECN: u16 = flag::ECE | flag::CWR | flag::AE;
        let mut found = FlowEnds::default();
        let ends = bearing(self.flags, flag::SYN | flag::FIN);
        for place in ends.filter(|&place| self.direction[place] == direction) {
            let flags = self.flags[place];
            if flags & flag::FIN != 0 {
                found.fin_offset = found.fin_offset.max(Some(self.end_offset(place)));
            }
            if flags & flag::SYN != 0 {
                if found.syn_copies == 0 {
                    found.syn_ttl = self.ttl[place];
                }
                found.syn_copies += 1;
                found.syn_windows.add(self.window_bytes[place]);
                found.syn_ip_ids.add(self.ip_id[place]);
                found.syn_ecn.add(flags & ECN);
                if self.marks[place] & mark::HAS_TIMESTAMPS != 0 {
                    found.syn_tsvals.add(self.tsval[place]);
                }
            }
        }
        found
    }

    /// The end of the flow of `direction` alone, as its `fin_offset` has it.
    pub fn fin_offset(&self, direction: u8) -> Option<i64> {
        let own = bearing(self.flags, flag::FIN).filter(|&place| self.direction[place] == direction);
        own.map(|place| self.end_offset(place)).max()
    }

    fn end_offset(&self, place: usize) -> i64 {
        self.sequence_offset[place].wrapping_add(i64::from(self.payload_bytes[place]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_the_syn_count_together_and_the_farthest_fin_ends_the_flow() {
        let packets = Packets {
            time_ns: &[0, 1, 2, 3, 4],
            direction: &[0, 1, 0, 0, 0],
            sequence_offset: &[-1, -1, -1, 90, 100],
            payload_bytes: &[0, 0, 0, 10, 0],
            window_bytes: &[512, 600, 512, 1, 1],
            flags: &[flag::SYN | flag::ECE, flag::SYN | flag::ACK, flag::SYN, flag::FIN, flag::FIN],
            tsval: &[7, 0, 8, 9, 9],
            ip_id: &[1, 0, 2, 3, 4],
            ttl: &[64, 60, 63, 64, 64],
            marks: &[mark::HAS_TIMESTAMPS, 0, 0, 0, 0],
            ..Packets::default()
        };
        let up = FlowEnds {
            syn_copies: 2,
            syn_windows: [512].into_iter().collect(),
            syn_ip_ids: [1, 2].into_iter().collect(),
            syn_tsvals: [7].into_iter().collect(),
            syn_ecn: [flag::ECE, 0].into_iter().collect(),
            syn_ttl: 64,
            fin_offset: Some(100),
        };
        assert_eq!(packets.flow_ends(0), up);
        assert_eq!((packets.flow_ends(1).syn_copies, packets.flow_ends(1).fin_offset), (1, None));
        assert_eq!([packets.fin_offset(0), packets.fin_offset(1)], [Some(100), None]);
    }
}

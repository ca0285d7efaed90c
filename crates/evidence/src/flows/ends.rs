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

/// What the copies of a flow's SYN (or SYN-ACK) hold; numbers in order of capture, runs of equal ones once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SynCopies {
    pub count: usize,
    /// As in the column: unscaled in a SYN.
    pub windows: Few<u32>,
    pub ip_ids: Few<u16>,
    /// Of the copies with timestamps.
    pub tsvals: Few<u32>,
    /// ECE, CWR and AE.
    pub ecn: Few<u16>,
    /// Hop limit of the first copy, 0 without any.
    pub ttl: u8,
}

impl Packets<'_> {
    /// The copies of the SYN of the flow of `direction`.
    pub fn syn_copies(&self, direction: u8) -> SynCopies {
        const ECN: u16 = flag::ECE | flag::CWR | flag::AE;
        let mut found = SynCopies::default();
        for place in bearing(self.flags, flag::SYN).filter(|&place| self.direction[place] == direction) {
            if found.count == 0 {
                found.ttl = self.ttl[place];
            }
            found.count += 1;
            found.windows.add(self.window_bytes[place]);
            found.ip_ids.add(self.ip_id[place]);
            found.ecn.add(self.flags[place] & ECN);
            if self.marks[place] & mark::HAS_TIMESTAMPS != 0 {
                found.tsvals.add(self.tsval[place]);
            }
        }
        found
    }

    /// Greatest stream offset at which a FIN of `direction` stands, behind the payload that it carries.
    pub fn fin_offset(&self, direction: u8) -> Option<i64> {
        let own = bearing(self.flags, flag::FIN).filter(|&place| self.direction[place] == direction);
        own.map(|place| self.sequence_offset[place].wrapping_add(i64::from(self.payload_bytes[place]))).max()
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
        let up = SynCopies {
            count: 2,
            windows: [512].into_iter().collect(),
            ip_ids: [1, 2].into_iter().collect(),
            tsvals: [7].into_iter().collect(),
            ecn: [flag::ECE, 0].into_iter().collect(),
            ttl: 64,
        };
        assert_eq!((packets.syn_copies(0), packets.syn_copies(1).count), (up, 1));
        assert_eq!([packets.fin_offset(0), packets.fin_offset(1)], [Some(100), None]);
    }
}

//! Where a flow begins and ends in a capture: the copies of its SYN (or SYN-ACK), and its FIN.

use crate::packets::{bearing, flag, mark, Packets};

/// What the copies of a flow's SYN hold, and where its FIN stands; numbers in order of capture, runs of equal ones once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowEnds {
    /// Copies of the SYN.
    pub syn_copies: usize,
    /// As in the column: unscaled in a SYN.
    pub syn_windows: Vec<u32>,
    pub syn_ip_ids: Vec<u16>,
    /// Of the copies with timestamps.
    pub syn_tsvals: Vec<u32>,
    /// ECE, CWR and AE.
    pub syn_ecn: Vec<u16>,
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
                add(&mut found.syn_windows, self.window_bytes[place]);
                add(&mut found.syn_ip_ids, self.ip_id[place]);
                add(&mut found.syn_ecn, flags & ECN);
                if self.marks[place] & mark::HAS_TIMESTAMPS != 0 {
                    add(&mut found.syn_tsvals, self.tsval[place]);
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

fn add<T: PartialEq>(numbers: &mut Vec<T>, number: T) {
    if numbers.last() != Some(&number) {
        numbers.push(number);
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
            syn_windows: vec![512],
            syn_ip_ids: vec![1, 2],
            syn_tsvals: vec![7],
            syn_ecn: vec![flag::ECE, 0],
            syn_ttl: 64,
            fin_offset: Some(100),
        };
        assert_eq!(packets.flow_ends(0), up);
        assert_eq!((packets.flow_ends(1).syn_copies, packets.flow_ends(1).fin_offset), (1, None));
        assert_eq!([packets.fin_offset(0), packets.fin_offset(1)], [Some(100), None]);
    }
}

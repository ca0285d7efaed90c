//! Staircases of one flow from its packet columns: how far its data and its acknowledgements had got, and when.
//!
//! One pass over a connection's rows, in capture order; offsets and times are those of the columns.

use crate::packets::{flag, Packets, NO_ACKNOWLEDGEMENT};

/// Byte ranges `start..end` of a stream, each with the time of the packet that carried it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteRanges {
    pub start: Vec<i64>,
    pub end: Vec<i64>,
    pub time_ns: Vec<i64>,
}

impl ByteRanges {
    fn with_capacity(count: usize) -> Self {
        ByteRanges {
            start: Vec::with_capacity(count),
            end: Vec::with_capacity(count),
            time_ns: Vec::with_capacity(count),
        }
    }

    pub(crate) fn push(&mut self, start: i64, end: i64, time_ns: i64) {
        self.start.push(start);
        self.end.push(end);
        self.time_ns.push(time_ns);
    }
}

/// Cumulative acknowledgements: strictly ascending values, when each was first reached, and whether by a packet that
/// carried no payload, SYN, FIN or RST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcknowledgementSteps {
    pub value: Vec<i64>,
    pub time_ns: Vec<i64>,
    pub plain: Vec<bool>,
}

impl Packets<'_> {
    /// The data of `direction`: what lies beyond everything sent before, as ascending disjoint ranges, and the segments
    /// that begin below that, whole.
    pub fn data_ranges(&self, direction: u8) -> (ByteRanges, ByteRanges) {
        let carries = |way: u8, payload_bytes: u32| way == direction && payload_bytes > 0;
        let kinds = self.direction.iter().zip(self.payload_bytes);
        let count = kinds.clone().filter(|&(&way, &payload_bytes)| carries(way, payload_bytes)).count();
        if count == 0 {
            return Default::default();
        }
        let mut beyond = ByteRanges::with_capacity(count);
        let mut below = ByteRanges::default();
        let mut reached = None;
        for ((&time_ns, &start), (&way, &payload_bytes)) in self.time_ns.iter().zip(self.sequence_offset).zip(kinds) {
            if !carries(way, payload_bytes) {
                continue;
            }
            let end = start.saturating_add(i64::from(payload_bytes));
            let before = reached.unwrap_or(start);
            if end > before {
                beyond.push(start.max(before), end, time_ns);
                reached = Some(end);
            }
            if start < before {
                below.push(start, end, time_ns);
            }
        }
        (beyond, below)
    }

    /// The acknowledgements of `direction`'s data, reduced to those that advance. Resets do not count.
    pub fn acknowledgement_steps(&self, direction: u8) -> AcknowledgementSteps {
        const SPECIAL: u16 = flag::SYN | flag::FIN | flag::RST;
        let mut steps = AcknowledgementSteps::default();
        let mut reached = NO_ACKNOWLEDGEMENT;
        let numbers = self.acknowledgement_offset.iter().zip(self.time_ns);
        let kinds = self.direction.iter().zip(self.payload_bytes).zip(self.flags);
        for ((&value, &time_ns), ((&way, &payload_bytes), &flags)) in numbers.zip(kinds) {
            if value <= reached || way == direction || flags & flag::RST != 0 {
                continue;
            }
            reached = value;
            steps.value.push(value);
            steps.time_ns.push(time_ns);
            steps.plain.push(payload_bytes == 0 && flags & SPECIAL == 0);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_distinguished_from_new_data() {
        let packets = Packets {
            time_ns: &[0, 1, 2, 3, 4],
            direction: &[1, 0, 1, 1, 1],
            sequence_offset: &[10, 0, 30, 15, 35],
            payload_bytes: &[10, 99, 10, 5, 10],
            ..Packets::default()
        };
        let (beyond, below) = packets.data_ranges(1);
        assert_eq!((beyond.start, beyond.end), (vec![10, 30, 40], vec![20, 40, 45]));
        assert_eq!(beyond.time_ns, [0, 2, 4]);
        assert_eq!((below.start, below.end, below.time_ns), (vec![15, 35], vec![20, 45], vec![3, 4]));
    }

    #[test]
    fn only_acknowledgements_that_advance_count() {
        let ack = flag::ACK;
        let packets = Packets {
            time_ns: &[0, 1, 2, 3, 4, 5, 6, 7],
            direction: &[0, 0, 0, 0, 0, 1, 0, 0],
            acknowledgement_offset: &[NO_ACKNOWLEDGEMENT, -1, 20, 10, 90, 95, 21, 30],
            payload_bytes: &[0, 0, 7, 0, 0, 0, 0, 0],
            flags: &[flag::SYN, ack, ack, ack, ack | flag::RST, ack, ack | flag::FIN, ack],
            ..Packets::default()
        };
        let steps = packets.acknowledgement_steps(1);
        assert_eq!(steps.value, [-1, 20, 21, 30]);
        assert_eq!(steps.time_ns, [1, 2, 6, 7]);
        assert_eq!(steps.plain, [true, false, false, true]);
    }
}

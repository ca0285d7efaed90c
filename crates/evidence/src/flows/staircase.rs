//! Staircases of one flow from its packet columns: how far its data and its acknowledgements had got, and when.
//!
//! One pass over a connection's rows, in capture order; offsets and times are those of the columns.

use crate::packets::{flag, Packets, DOWN, NO_ACKNOWLEDGEMENT};

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

    #[inline]
    pub(crate) fn push(&mut self, start: i64, end: i64, time_ns: i64) {
        self.start.push(start);
        self.end.push(end);
        self.time_ns.push(time_ns);
    }
}

/// Data of a flow: what lies beyond everything sent before, as ascending disjoint ranges, and the segments that begin
/// below that, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataRanges {
    pub beyond: ByteRanges,
    pub below: ByteRanges,
}

/// Cumulative acknowledgements: strictly ascending values, when each was first reached, and whether by a packet that
/// carried no payload, SYN, FIN or RST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcknowledgementSteps {
    pub value: Vec<i64>,
    pub time_ns: Vec<i64>,
    pub plain: Vec<bool>,
}

impl DataRanges {
    #[inline]
    fn add(&mut self, start: i64, payload_bytes: u32, time_ns: i64) {
        let end = start.saturating_add(i64::from(payload_bytes));
        let before = self.beyond.end.last().copied().unwrap_or(start);
        if end > before {
            self.beyond.push(start.max(before), end, time_ns);
        }
        if start < before {
            self.below.push(start, end, time_ns);
        }
    }
}

impl AcknowledgementSteps {
    fn with_capacity(count: usize) -> Self {
        AcknowledgementSteps {
            value: Vec::with_capacity(count),
            time_ns: Vec::with_capacity(count),
            plain: Vec::with_capacity(count),
        }
    }

    #[inline]
    fn add(&mut self, value: i64, time_ns: i64, is_plain: bool) {
        if value > self.value.last().copied().unwrap_or(NO_ACKNOWLEDGEMENT) {
            self.value.push(value);
            self.time_ns.push(time_ns);
            self.plain.push(is_plain);
        }
    }
}

impl Packets<'_> {
    /// Data up and down, and what advances of the acknowledgements of these data. Resets acknowledge nothing.
    pub(crate) fn read_staircases(&self) -> [(DataRanges, AcknowledgementSteps); 2] {
        const SPECIAL: u16 = flag::SYN | flag::FIN | flag::RST;
        let kinds = self.direction.iter().zip(self.payload_bytes);
        let (mut carrying, mut all) = ([0; 2], [0; 2]);
        for (&way, &payload_bytes) in kinds.clone() {
            carrying[usize::from(way == DOWN)] += usize::from(payload_bytes > 0);
            all[usize::from(way == DOWN)] += 1;
        }
        let [mut up, mut down] = [0, 1].map(|way| {
            let beyond = ByteRanges::with_capacity(carrying[way]);
            let steps = AcknowledgementSteps::with_capacity(all[1 - way]);
            (DataRanges { beyond, below: ByteRanges::default() }, steps)
        });
        let numbers = self.sequence_offset.iter().zip(self.acknowledgement_offset);
        let kinds = kinds.zip(self.flags);
        for ((&time_ns, (&start, &value)), ((&way, &payload_bytes), &flags)) in
            self.time_ns.iter().zip(numbers).zip(kinds)
        {
            let (own, other) = if way == DOWN { (&mut down, &mut up) } else { (&mut up, &mut down) };
            if payload_bytes > 0 {
                own.0.add(start, payload_bytes, time_ns);
            }
            if flags & flag::RST == 0 {
                other.1.add(value, time_ns, payload_bytes == 0 && flags & SPECIAL == 0);
            }
        }
        [up, down]
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
            acknowledgement_offset: &[0; 5],
            payload_bytes: &[10, 99, 10, 5, 10],
            flags: &[flag::ACK; 5],
            ..Packets::default()
        };
        let [_, (DataRanges { beyond, below }, _)] = packets.read_staircases();
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
            sequence_offset: &[0; 8],
            acknowledgement_offset: &[NO_ACKNOWLEDGEMENT, -1, 20, 10, 90, 95, 21, 30],
            payload_bytes: &[0, 0, 7, 0, 0, 0, 0, 0],
            flags: &[flag::SYN, ack, ack, ack, ack | flag::RST, ack, ack | flag::FIN, ack],
            ..Packets::default()
        };
        let [_, (_, steps)] = packets.read_staircases();
        assert_eq!(steps.value, [-1, 20, 21, 30]);
        assert_eq!(steps.time_ns, [1, 2, 6, 7]);
        assert_eq!(steps.plain, [true, false, false, true]);
    }
}

//! How far the acknowledgements of data that left back to back lie apart: what the slowest link between the sender and
//! the host or split point that acknowledges lets through.
//!
//! Segments of a *train* leave within microseconds of each other, pass the slowest link one after the other, and are
//! acknowledged as they arrive (packet pairs and trains: Keshav, SIGCOMM 1991; Paxson, SIGCOMM 1997). The time between
//! the first and the last acknowledgement, less what the sender let pass between these segments, is what the bytes
//! between them took on that link. Radio links and cable modems bundle acknowledgements, so that short trains may look
//! faster than their link; sums over trains do less.

use std::collections::VecDeque;

use crate::packets::{flag, Packets, NO_ACKNOWLEDGEMENT};

/// Data that leave later than this after the data before them begin a train of their own.
const BACK_TO_BACK_NS: i64 = 100_000;
/// The payload of a full segment on Ethernet without options: an acknowledgement of no more may have been delayed.
const FULL_SEGMENT_BYTES: i64 = 1460;
/// Fewer bytes between the first and the last acknowledgement say nothing.
const FEWEST_BYTES: i64 = 1000;
/// Slower than 2 ms a full segment, trains count as if they took so long: something held them up.
const MOST_NS_PER_FULL_SEGMENT: i64 = 2_000_000;
/// Segments in flight that are remembered; of more, the oldest are forgotten.
const MOST_IN_FLIGHT: usize = 1 << 12;

/// Sums over the trains of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trains {
    /// Bytes between the first and the last acknowledgement of each train.
    pub bytes: i64,
    /// What they took beyond the time that passed between their segments' leaving.
    pub spread_ns: i64,
}

/// A segment in flight.
struct Sent {
    end: i64,
    time_ns: i64,
    train: u64,
}

/// An acknowledgement, and when the last segment that it covers had left.
#[derive(Clone, Copy)]
struct Point {
    offset: i64,
    time_ns: i64,
    sent_ns: i64,
}

/// The train that is being acknowledged.
struct Open {
    train: u64,
    first: Point,
    last: Point,
}

#[derive(Default)]
struct Course {
    in_flight: VecDeque<Sent>,
    train: u64,
    open: Option<Open>,
    /// What was sent again, up to here, may be acknowledged late for that.
    spoilt_to: Option<i64>,
    sums: Trains,
}

impl Course {
    fn send(&mut self, end: i64, time_ns: i64) {
        let follows = self.in_flight.back().is_some_and(|sent| time_ns.saturating_sub(sent.time_ns) <= BACK_TO_BACK_NS);
        self.train += u64::from(!follows);
        if self.in_flight.len() >= MOST_IN_FLIGHT {
            self.in_flight.pop_front();
        }
        self.in_flight.push_back(Sent { end, time_ns, train: self.train });
    }

    fn spoil(&mut self, highest: i64) {
        self.open = None;
        self.spoilt_to = Some(highest);
    }

    fn acknowledge(&mut self, offset: i64, time_ns: i64, is_plain: bool) {
        let mut covered = None;
        while let Some(sent) = self.in_flight.front().filter(|sent| sent.end <= offset) {
            covered = Some((sent.time_ns, sent.train));
            self.in_flight.pop_front();
        }
        let next = self.in_flight.front();
        // An acknowledgement may end inside a segment that was captured before it was cut (segmentation offload).
        let Some((sent_ns, train)) = covered.or_else(|| next.map(|sent| (sent.time_ns, sent.train))) else {
            return;
        };
        if !is_plain || self.spoilt_to.is_some_and(|spoilt_to| offset <= spoilt_to) {
            return;
        }
        let point = Point { offset, time_ns, sent_ns };
        let is_tail = next.is_none_or(|sent| sent.train != train);
        match &mut self.open {
            Some(open) if open.train == train => {
                let fresh = offset.saturating_sub(open.last.offset);
                if fresh > 0 && !(is_tail && fresh <= FULL_SEGMENT_BYTES) {
                    open.last = point;
                }
            }
            _ => {
                self.close();
                self.open = Some(Open { train, first: point, last: point });
            }
        }
    }

    fn close(&mut self) {
        let Some(Open { first, last, .. }) = self.open.take() else {
            return;
        };
        let bytes = last.offset.saturating_sub(first.offset);
        if bytes < FEWEST_BYTES {
            return;
        }
        let took_ns = last.time_ns.saturating_sub(first.time_ns);
        let left_ns = last.sent_ns.saturating_sub(first.sent_ns);
        let most_ns = bytes.saturating_mul(MOST_NS_PER_FULL_SEGMENT) / FULL_SEGMENT_BYTES;
        self.sums.bytes = self.sums.bytes.saturating_add(bytes);
        let spread_ns = took_ns.saturating_sub(left_ns).clamp(0, most_ns);
        self.sums.spread_ns = self.sums.spread_ns.saturating_add(spread_ns);
    }
}

impl Packets<'_> {
    /// The trains of data that `direction`'s receiver acknowledged.
    pub fn trains(&self, direction: u8) -> Trains {
        let mut course = Course::default();
        let mut highest = None::<i64>;
        for place in 0..self.len() {
            let flags = self.flags[place];
            if flags & (flag::RST | flag::SYN) != 0 {
                continue;
            }
            let bytes = i64::from(self.payload_bytes[place]);
            if self.direction[place] == direction {
                let end = self.sequence_offset[place].saturating_add(bytes);
                match highest {
                    _ if bytes == 0 => {}
                    Some(highest) if end <= highest => course.spoil(highest),
                    _ => {
                        highest = Some(end);
                        course.send(end, self.time_ns[place]);
                    }
                }
            } else {
                let offset = self.acknowledgement_offset[place];
                if offset != NO_ACKNOWLEDGEMENT {
                    course.acknowledge(offset, self.time_ns[place], bytes == 0 && flags & flag::FIN == 0);
                }
            }
        }
        course.close();
        course.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: i64 = 1448;

    /// So many segments that leave together, acknowledged by twos, each pair so much later than the one before it.
    fn trains(segments: i64, step_ns: i64, tail_ns: i64) -> Trains {
        let mut rows: Vec<(i64, u8, i64, u32, i64)> = Vec::new();
        for number in 0..segments {
            rows.push((number * 12_000, 0, number * SEGMENT, SEGMENT as u32, 0));
        }
        for pair in 1..=segments / 2 {
            rows.push((20_000_000 + pair * step_ns, 1, 0, 0, 2 * pair * SEGMENT));
        }
        if segments % 2 == 1 {
            rows.push((20_000_000 + segments / 2 * step_ns + tail_ns, 1, 0, 0, segments * SEGMENT));
        }
        of(&rows)
    }

    fn of(rows: &[(i64, u8, i64, u32, i64)]) -> Trains {
        Packets {
            time_ns: &rows.iter().map(|row| row.0).collect::<Vec<_>>(),
            direction: &rows.iter().map(|row| row.1).collect::<Vec<_>>(),
            sequence_offset: &rows.iter().map(|row| row.2).collect::<Vec<_>>(),
            payload_bytes: &rows.iter().map(|row| row.3).collect::<Vec<_>>(),
            acknowledgement_offset: &rows.iter().map(|row| row.4).collect::<Vec<_>>(),
            flags: &vec![flag::ACK; rows.len()],
            ..Packets::default()
        }
        .trains(0)
    }

    #[test]
    fn a_slow_link_spreads_a_train_by_its_rate() {
        let found = trains(10, 1_224_000, 0);
        assert_eq!(found.bytes, 8 * SEGMENT);
        assert_eq!(found.spread_ns, 4 * 1_224_000 - 8 * 12_000, "less what passed between the segments' leaving");
    }

    #[test]
    fn a_wire_does_not() {
        assert_eq!(trains(10, 24_000, 0), Trains { bytes: 8 * SEGMENT, spread_ns: 0 });
    }

    #[test]
    fn a_last_segment_that_is_acknowledged_alone_may_have_waited() {
        assert_eq!(trains(9, 24_000, 40_000_000), Trains { bytes: 6 * SEGMENT, spread_ns: 0 });
    }

    #[test]
    fn what_held_a_train_up_counts_as_the_slowest_link() {
        let most_ns = 8 * SEGMENT * MOST_NS_PER_FULL_SEGMENT / FULL_SEGMENT_BYTES;
        assert_eq!(trains(10, 900_000_000, 0).spread_ns, most_ns);
    }

    #[test]
    fn trains_that_leave_apart_are_apart() {
        let rows = [
            (0, 0, 0, 1448, 0),
            (12_000, 0, 1448, 1448, 0),
            (20_000_000, 1, 0, 0, 2896),
            (20_010_000, 0, 2896, 1448, 0),
            (20_022_000, 0, 4344, 1448, 0),
            (40_000_000, 1, 0, 0, 5792),
        ];
        assert_eq!(of(&rows), Trains::default());
    }

    #[test]
    fn segments_that_were_captured_whole_are_trains_as_well() {
        let rows = [
            (0, 0, 0, 14_480, 0),
            (20_000_000, 1, 0, 0, 2896),
            (21_000_000, 1, 0, 0, 5792),
            (22_000_000, 1, 0, 0, 8688),
        ];
        assert_eq!(of(&rows), Trains { bytes: 5792, spread_ns: 2_000_000 });
    }

    #[test]
    fn what_was_sent_again_is_left_out() {
        let mut rows = vec![(0, 0, 0, 1448, 0), (12_000, 0, 1448, 1448, 0), (24_000, 0, 2896, 2896, 0)];
        rows.extend([(20_000_000, 1, 0, 0, 1448), (21_000_000, 0, 1448, 1448, 0), (41_000_000, 1, 0, 0, 5792)]);
        assert_eq!(of(&rows), Trains::default());
    }
}

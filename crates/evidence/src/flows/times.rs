//! When the data and the acknowledgements of one flow left, and when they arrived, by the captures at its two ends.

use crate::flows::byte_times::{missed_packets, AckTimes, Coverage, NEVER};
use crate::flows::staircase::ByteRanges;
use crate::packets::{bearing, mark, Packets, UP};

/// One flow of a connection in the captures at its sender and at its receiver.
#[derive(Clone, Copy, Debug)]
pub struct FlowCaptures<'a> {
    pub direction: u8,
    pub sender: Packets<'a>,
    pub receiver: Packets<'a>,
    /// What is added to an offset in the receiver's capture to have the sender's.
    pub shift: i64,
    /// Whether the captures hold the beginning of the stream.
    pub sender_began: bool,
    pub receiver_began: bool,
}

/// Times (ns) of one flow, each by the capture where it was taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowTimes {
    /// Whether the client sends the data.
    pub is_up: bool,
    pub data: Vec<TimedDatum>,
    pub acks: Vec<TimedAck>,
    /// Data packets lost by the capture, and held.
    pub sender_missed: (f64, usize),
    pub receiver_missed: (f64, usize),
}

/// When the first copy of data left, and when it first arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimedDatum {
    pub sent_ns: i64,
    pub arrived_ns: i64,
}

/// An acknowledgement that reached the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimedAck {
    /// The sender-side offset.
    pub value: i64,
    /// When it reached the sender, and when the receiver first sent one as high (`NEVER` where unknown).
    pub seen_ns: i64,
    pub sent_ns: i64,
    /// When the last byte that it covers had arrived; `NEVER` where unknown, as where it may have come before the
    /// receiver's capture began.
    pub arrival_ns: i64,
    /// At the sender, first copy of the last byte to its acknowledgement; `NEVER` where unknown (Karn).
    pub round_trip_ns: i64,
    /// Whether a plain one of exactly that value stands at both ends.
    pub is_own: bool,
}

impl TimedAck {
    /// A robust lower bound of when the receiver can have acknowledged; `NEVER` where its capture lacks the byte.
    pub fn earliest_ns(&self) -> i64 {
        if self.arrival_ns == NEVER {
            NEVER
        } else {
            self.arrival_ns.min(self.sent_ns)
        }
    }
}

impl FlowCaptures<'_> {
    /// The times of at most `points_limit` data and as many acknowledgements, of more every k-th; `None` where the
    /// sender's capture holds no data.
    ///
    /// A copy within `same_copy_ns` of the first is the capture's own, taken twice.
    pub fn times(&self, points_limit: usize, same_copy_ns: i64) -> Option<FlowTimes> {
        let data = self.sender.data_ranges(self.direction);
        let (sent, repeats) = (&data.beyond, &data.below);
        if sent.start.is_empty() {
            return None;
        }
        let arrived = self.receiver.first_arrivals(self.direction);
        let seen = self.sender.acknowledgement_times(self.direction);
        let returned = self.receiver.acknowledgement_times(self.direction);
        let mut times = FlowTimes {
            is_up: self.direction == UP,
            sender_missed: missed_packets(sent, &seen, self.sender_began),
            receiver_missed: missed_packets(&arrived, &returned, self.receiver_began),
            ..FlowTimes::default()
        };
        let left_again = Coverage::of(repeats.start.iter().copied().zip(repeats.end.iter().copied()));
        self.add_data(&mut times, sent, &left_again, &arrived, points_limit);
        let again = SentAgain::of(sent, repeats, same_copy_ns);
        let first = seen.steps.value.partition_point(|&value| value <= seen.floor.max(0));
        times.acks.reserve_exact((seen.steps.value.len() - first).min(points_limit.saturating_add(1)));
        let (mut sent_times, mut arrival_times) = (sent.times(), arrived.times());
        let mut returned_times = returned.times();
        // Values that were reached before the sender's capture began are late there, which is harmless.
        for place in evenly(seen.steps.value.len() - first, points_limit).map(|place| first + place) {
            let (value, seen_ns) = (seen.steps.value[place], seen.steps.time_ns[place]);
            let last_byte = value.wrapping_sub(1);
            let there = value.wrapping_sub(self.shift);
            let sent_ns = sent_times.at(last_byte);
            let measured = sent_ns != NEVER && !again.before(last_byte, seen_ns);
            let arrival_ns = arrival_times.at(last_byte.wrapping_sub(self.shift));
            let came_before = self.may_have_come_before(there, arrival_ns, &returned, || left_again.holds(last_byte));
            times.acks.push(TimedAck {
                value,
                seen_ns,
                sent_ns: returned_times.reaching(there),
                arrival_ns: if came_before { NEVER } else { arrival_ns },
                round_trip_ns: if measured { seen_ns.wrapping_sub(sent_ns) } else { NEVER },
                is_own: seen.steps.plain[place] && returned_times.has_plain(there),
            });
        }
        Some(times)
    }

    /// Whether a byte that a capture of the receiver shows at `arrival_ns` may have come before that capture began, so
    /// that it is a copy: the receiver acknowledges `there`, behind that byte, in the first acknowledgement that the
    /// capture holds, and had done so before the byte came, or the sender `sent_again` that byte.
    fn may_have_come_before(
        &self,
        there: i64,
        arrival_ns: i64,
        returned: &AckTimes,
        sent_again: impl FnOnce() -> bool,
    ) -> bool {
        let is_reached_later = !returned.steps.value.is_empty() && there > returned.floor;
        if self.receiver_began || is_reached_later {
            return false;
        }
        returned.steps.time_ns.first().is_some_and(|&first_ns| first_ns < arrival_ns) || sent_again()
    }

    /// First copies and their arrivals, but no data of which more copies arrived than the sender's capture holds: it
    /// missed one, perhaps the first, as where it began within a recovery.
    fn add_data(
        &self,
        times: &mut FlowTimes,
        sent: &ByteRanges,
        left_again: &Coverage,
        arrived: &ByteRanges,
        points_limit: usize,
    ) {
        let came_again = self.receiver.copies(self.direction);
        let mut arrival_times = arrived.times();
        times.data.reserve_exact(sent.start.len().min(points_limit.saturating_add(1)));
        for place in evenly(sent.start.len(), points_limit) {
            let start = sent.start[place];
            let there = start.wrapping_sub(self.shift);
            let arrived_ns = arrival_times.at(there);
            if arrived_ns != NEVER && (left_again.holds(start) || !came_again.holds(there)) {
                times.data.push(TimedDatum { sent_ns: sent.time_ns[place], arrived_ns });
            }
        }
    }
}

impl Packets<'_> {
    /// Data that the capture shows to have been sent again; what was only reordered, or captured again, was not.
    fn copies(&self, direction: u8) -> Coverage {
        let copied = bearing(self.marks, mark::RETRANSMISSION).filter(|&row| {
            let is_data = self.direction[row] == direction && self.payload_bytes[row] > 0;
            is_data && self.marks[row] & (mark::DUPLICATE | mark::REORDERED) == 0
        });
        Coverage::of(copied.map(|row| {
            let start = self.sequence_offset[row];
            (start, start.saturating_add(i64::from(self.payload_bytes[row])))
        }))
    }
}

/// Data that the sender sent again, for Karn's rule.
///
/// One early repeat anywhere in a row of overlapping ranges is enough: a sample less is no loss.
struct SentAgain {
    start: Vec<i64>,
    reach: Vec<i64>,
    earliest_ns: Vec<i64>,
}

impl SentAgain {
    fn of(sent: &ByteRanges, repeats: &ByteRanges, same_copy_ns: i64) -> Self {
        let mut sent_times = sent.times();
        let mut is_later = |start, time_ns: i64| time_ns.wrapping_sub(sent_times.at(start)) > same_copy_ns;
        let mut rows: Vec<(i64, i64, i64)> =
            repeats.rows().filter(|&(start, _, time_ns)| is_later(start, time_ns)).collect();
        rows.sort_by_key(|&(start, _, _)| start);
        let mut again = SentAgain { start: Vec::new(), reach: Vec::new(), earliest_ns: Vec::new() };
        let (mut reached, mut earliest_ns) = (i64::MIN, i64::MAX);
        for (start, end, time_ns) in rows {
            (reached, earliest_ns) = (reached.max(end), earliest_ns.min(time_ns));
            again.start.push(start);
            again.reach.push(reached);
            again.earliest_ns.push(earliest_ns);
        }
        again
    }

    /// Whether a byte was sent again by a time.
    fn before(&self, byte: i64, time_ns: i64) -> bool {
        let place = self.start.partition_point(|&start| start <= byte).checked_sub(1);
        place.is_some_and(|place| self.reach[place] > byte && self.earliest_ns[place] <= time_ns)
    }
}

/// Places of at most `limit` of `count`, and the last one, evenly spread.
fn evenly(count: usize, limit: usize) -> impl Iterator<Item = usize> {
    let step = count.div_ceil(limit.max(1)).max(1);
    (0..count.saturating_sub(1)).step_by(step).chain(count.checked_sub(1))
}

/// A bound on the clock difference: a time by one of the clocks, and the server's clock minus the client's (ns).
pub type Difference = (i64, i64);

impl FlowTimes {
    /// Differences of data, at the client's time or at the server's.
    pub fn data_differences(&self, server_clock: bool) -> impl Iterator<Item = Difference> + '_ {
        self.differences(self.data.iter().map(|datum| (datum.sent_ns, datum.arrived_ns)), server_clock)
    }

    /// Differences of acknowledgements, each from the earliest time at which the receiver can have sent it.
    pub fn ack_differences(&self, server_clock: bool) -> impl Iterator<Item = Difference> + '_ {
        let times = self.acks.iter().map(|ack| (ack.seen_ns, ack.earliest_ns()));
        self.differences(times.filter(|&(_, made_ns)| made_ns != NEVER), server_clock)
    }

    /// Differences of acknowledgements whose value the receiver's capture holds as well, from the time at which it did.
    pub fn own_ack_differences(&self) -> impl Iterator<Item = Difference> + '_ {
        let known = self.acks.iter().filter(|ack| ack.is_own && ack.sent_ns != NEVER);
        self.differences(known.map(|ack| (ack.seen_ns, ack.sent_ns)), false)
    }

    fn differences<'a>(
        &self,
        times: impl Iterator<Item = (i64, i64)> + 'a,
        server_clock: bool,
    ) -> impl Iterator<Item = Difference> + 'a {
        let is_up = self.is_up;
        times.map(move |(sender_ns, receiver_ns)| {
            let (client_ns, server_ns) = if is_up { (sender_ns, receiver_ns) } else { (receiver_ns, sender_ns) };
            (if server_clock { server_ns } else { client_ns }, server_ns.wrapping_sub(client_ns))
        })
    }

    /// Receiver's minus sender's times of data.
    pub fn delays_ns(&self) -> impl Iterator<Item = i64> + '_ {
        self.data.iter().map(|datum| datum.arrived_ns.wrapping_sub(datum.sent_ns))
    }

    /// Acknowledgement round trips at the sender.
    pub fn round_trips_ns(&self) -> impl Iterator<Item = i64> + '_ {
        self.acks.iter().map(|ack| ack.round_trip_ns).filter(|&time_ns| time_ns != NEVER)
    }

    /// For how long the receiver held its acknowledgements back.
    pub fn holds_ns(&self) -> impl Iterator<Item = i64> + '_ {
        let known = self.acks.iter().filter(|ack| ack.arrival_ns != NEVER && ack.sent_ns != NEVER);
        known.map(|ack| ack.sent_ns.wrapping_sub(ack.arrival_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::flag;

    #[test]
    fn places_are_evenly_spread_and_hold_the_last() {
        let taken = |count, limit| evenly(count, limit).collect::<Vec<_>>();
        assert_eq!(taken(0, 4), [0; 0]);
        assert_eq!(taken(3, 4), [0, 1, 2]);
        assert_eq!(taken(10, 4), [0, 3, 6, 9]);
        assert_eq!(taken(9, 4), [0, 3, 6, 8]);
    }

    #[test]
    fn data_that_were_captured_twice_arrived_once() {
        let sender = Packets {
            time_ns: &[0, 1],
            direction: &[UP; 2],
            sequence_offset: &[0, 100],
            acknowledgement_offset: &[0; 2],
            payload_bytes: &[100; 2],
            flags: &[flag::ACK; 2],
            marks: &[0; 2],
            ..Packets::default()
        };
        let arrived = |marks| {
            let receiver = Packets {
                time_ns: &[10, 11, 12],
                direction: &[UP; 3],
                sequence_offset: &[0, 100, 100],
                acknowledgement_offset: &[0; 3],
                payload_bytes: &[100; 3],
                flags: &[flag::ACK; 3],
                marks,
                ..Packets::default()
            };
            let (direction, shift, sender_began, receiver_began) = (UP, 0, true, true);
            let flow = FlowCaptures { direction, sender, receiver, shift, sender_began, receiver_began };
            let found = flow.times(9, 1).unwrap_or_default();
            found.data.iter().map(|datum| datum.arrived_ns).collect::<Vec<_>>()
        };
        assert_eq!(arrived(&[0, 0, mark::DUPLICATE]), [10, 11]);
        assert_eq!(
            arrived(&[0, 0, mark::RETRANSMISSION]),
            [10],
            "the sender's capture lacks a copy, perhaps the first"
        );
    }

    #[test]
    fn a_copy_in_a_receivers_capture_that_began_late_is_no_first_arrival() {
        // Sent at 0 to 3, acknowledged as far as 300 at 20, and the second hundred sent again at 30.
        let sender = Packets {
            time_ns: &[0, 1, 2, 3, 20, 30, 60],
            direction: &[0, 0, 0, 0, 1, 0, 1],
            sequence_offset: &[0, 100, 200, 300, 0, 100, 0],
            acknowledgement_offset: &[0, 0, 0, 0, 300, 0, 400],
            payload_bytes: &[100, 100, 100, 100, 0, 100, 0],
            flags: &[flag::ACK | flag::SYN; 7],
            ..Packets::default()
        };
        let sequence_offset = [200, 0, 100, 300, 0];
        let receiver = Packets {
            time_ns: &[13, 14, 40, 41, 42],
            direction: &[0, 1, 0, 0, 1],
            sequence_offset: &sequence_offset,
            acknowledgement_offset: &[0, 300, 0, 0, 400],
            payload_bytes: &[100, 0, 100, 100, 0],
            marks: &[0; 5],
            flags: &[flag::ACK; 5],
            ..Packets::default()
        };
        let arrivals = |sender, receiver, receiver_began| {
            let (direction, shift, sender_began) = (UP, 0, true);
            let flow = FlowCaptures { direction, sender, receiver, shift, sender_began, receiver_began };
            let found = flow.times(9, 1).unwrap_or_default();
            found.acks.iter().map(|ack| ack.arrival_ns).collect::<Vec<_>>()
        };
        // The third hundred was sent once, so that it came first where the capture shows it.
        assert_eq!(arrivals(sender, receiver, false), [13, 41]);
        let only_copy = Packets { sequence_offset: &[100, 0, 200, 300, 0], ..receiver };
        assert_eq!(arrivals(sender, only_copy, false), [NEVER, 41]);
        assert_eq!(arrivals(sender, only_copy, true), [40, 41]);
        // Where no acknowledgement shows what had come, the sender's copies do.
        let silent = Packets { direction: &[0; 5], payload_bytes: &[100, 0, 100, 100, 0], ..only_copy };
        assert_eq!(arrivals(sender, silent, false), [40, 41]);
        let sent_again = Packets { sequence_offset: &[0, 100, 200, 300, 0, 200, 0], ..sender };
        assert_eq!(arrivals(sent_again, silent, false), [NEVER, 41]);
    }

    #[test]
    fn a_byte_sent_again_before_its_acknowledgement_has_no_round_trip() {
        let sender = Packets {
            time_ns: &[0, 10, 5_000_000, 5_000_030, 5_000_040],
            direction: &[0, 0, 0, 1, 1],
            sequence_offset: &[0, 100, 100, 0, 0],
            acknowledgement_offset: &[0, 0, 0, 100, 200],
            payload_bytes: &[100, 100, 100, 0, 0],
            flags: &[flag::ACK; 5],
            ..Packets::default()
        };
        let receiver = Packets {
            time_ns: &[7, 17],
            direction: &[0, 0],
            sequence_offset: &[0, 100],
            acknowledgement_offset: &[0, 0],
            payload_bytes: &[100, 100],
            marks: &[0, 0],
            flags: &[flag::ACK; 2],
            ..Packets::default()
        };
        let (direction, shift, sender_began, receiver_began) = (UP, 0, true, true);
        let flow = FlowCaptures { direction, sender, receiver, shift, sender_began, receiver_began };
        // Without a SYN the first value is a floor.
        let times = flow.times(9, 1_000_000).unwrap_or_default();
        assert!(matches!(times.acks[..], [TimedAck { value: 200, round_trip_ns: NEVER, arrival_ns: 17, .. }]));
        assert_eq!(times.delays_ns().collect::<Vec<_>>(), [7, 7]);
    }
}

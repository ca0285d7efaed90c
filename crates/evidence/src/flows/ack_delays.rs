//! How long plain acknowledgements (without payload, SYN, FIN and RST) took: at the receiver from the arrival of the last
//! byte that each covers, at the sender from its first copy.

use crate::flows::byte_times::{AckTimes, Coverage, NEVER};
use crate::packets::Packets;

/// Delays at the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckDelays {
    pub count: usize,
    pub least_ns: Option<i64>,
}

/// Round trips at the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrips {
    pub count: usize,
    pub least_s: f64,
    /// Those shorter than was asked for.
    pub short: usize,
    /// Most of the short ones that ended within the time of the longest round trip.
    pub short_at_once: usize,
}

impl Packets<'_> {
    /// Delays of the acknowledgements of `direction`'s data, at its receiver.
    pub fn ack_delays(&self, direction: u8) -> AckDelays {
        let arrived = self.first_arrivals(direction);
        let mut arrival_times = arrived.times();
        let mut found = AckDelays::default();
        for (value, sent_ns) in plain(&self.acknowledgement_times(direction)) {
            let arrival_ns = arrival_times.at(value.wrapping_sub(1));
            if arrival_ns != NEVER {
                let delay_ns = sent_ns.wrapping_sub(arrival_ns);
                found.count += 1;
                found.least_ns = Some(found.least_ns.map_or(delay_ns, |least_ns| least_ns.min(delay_ns)));
            }
        }
        found
    }

    /// Round trips of `direction`'s data at its sender, without bytes that were sent again (Karn); short ones are below
    /// `limit_s`.
    pub fn plain_round_trips(&self, direction: u8, limit_s: f64) -> RoundTrips {
        let data = self.data_ranges(direction);
        let (first_copies, repeats) = (&data.beyond, &data.below);
        let again = Coverage::of(repeats.start.iter().copied().zip(repeats.end.iter().copied()));
        let mut left_times = first_copies.times();
        let mut timed = Vec::new();
        for (value, came_ns) in plain(&self.acknowledgement_times(direction)) {
            let left_ns = left_times.at(value.wrapping_sub(1));
            if left_ns != NEVER && !again.holds(value.wrapping_sub(1)) {
                timed.push((came_ns, came_ns.wrapping_sub(left_ns) as f64 / 1e9));
            }
        }
        let Some(&(begin_ns, _)) = timed.first() else {
            return RoundTrips::default();
        };
        let round_trips_s = timed.iter().map(|&(_, round_trip_s)| round_trip_s);
        let longest_s = round_trips_s.clone().fold(f64::NEG_INFINITY, f64::max);
        let short_s: Vec<f64> = timed
            .iter()
            .filter(|&&(_, round_trip_s)| round_trip_s < limit_s)
            .map(|&(came_ns, _)| came_ns.wrapping_sub(begin_ns) as f64 / 1e9)
            .collect();
        RoundTrips {
            count: timed.len(),
            least_s: round_trips_s.fold(f64::INFINITY, f64::min),
            short: short_s.len(),
            short_at_once: most_within(&short_s, longest_s),
        }
    }
}

/// Value and time of the plain acknowledgements that advanced within the capture.
fn plain(acks: &AckTimes) -> impl Iterator<Item = (i64, i64)> + '_ {
    let steps = acks.steps.value.iter().zip(&acks.steps.time_ns).zip(&acks.steps.plain);
    let floor = acks.floor.max(0);
    steps.filter(move |&((&value, _), &plain)| plain && value > floor).map(|((&value, &time_ns), _)| (value, time_ns))
}

/// The most of ascending times that lie within a span of this length.
fn most_within(times_s: &[f64], span_s: f64) -> usize {
    let counts = times_s.iter().enumerate().map(|(place, &time_s)| {
        let end = times_s.partition_point(|&other_s| other_s <= time_s + span_s);
        end.saturating_sub(place)
    });
    counts.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{flag, NO_ACKNOWLEDGEMENT};

    const SECOND_NS: i64 = 1_000_000_000;

    fn times(seconds: &[i64]) -> Vec<i64> {
        seconds.iter().map(|second| second * SECOND_NS).collect()
    }

    #[test]
    fn a_byte_that_was_sent_again_measures_no_round_trip() {
        let packets = Packets {
            time_ns: &times(&[0, 1, 2, 3, 4, 9, 10]),
            direction: &[0, 1, 1, 1, 0, 0, 0],
            sequence_offset: &[-1, 0, 100, 100, 0, 0, 0],
            acknowledgement_offset: &[NO_ACKNOWLEDGEMENT, 0, 0, 0, 50, 100, 200],
            payload_bytes: &[0, 100, 100, 100, 0, 0, 0],
            flags: &[flag::SYN, flag::ACK, flag::ACK, flag::ACK, flag::ACK, flag::ACK, flag::ACK],
            ..Packets::default()
        };
        let found = packets.plain_round_trips(1, 5.0);
        assert_eq!((found.count, found.least_s, found.short, found.short_at_once), (2, 3.0, 1, 1));
        // Both copies arrived, and the first counts.
        assert_eq!(packets.ack_delays(1), AckDelays { count: 3, least_ns: Some(3 * SECOND_NS) });
    }

    #[test]
    fn times_within_one_span_are_counted_from_each() {
        assert_eq!(most_within(&[0.0, 1.0, 1.5, 2.0, 4.0], 1.0), 3);
        assert_eq!(most_within(&[], 1.0), 0);
    }
}

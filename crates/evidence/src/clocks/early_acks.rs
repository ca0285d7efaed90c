//! Acknowledgements that reached the sender before the receiver can have sent them, by a given relation of the clocks.

use crate::clocks::lines::ClockLines;
use crate::flows::byte_times::NEVER;
use crate::flows::times::{Difference, FlowTimes, TimedAck};
use crate::median::median;

/// A clock relation in pieces, and by how much a constraint may contradict it.
#[derive(Clone, Copy, Debug)]
pub struct ClockBound<'a> {
    pub lines: ClockLines<'a>,
    /// Data that bound nothing.
    pub spared: usize,
    /// What timestamps may be wrong by.
    pub error_ns: f64,
}

/// Methods 1 and 2 of Wei et al. on one flow: acknowledgements with a time at both ends, how many of them violate, and
/// the least margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    pub timed: usize,
    pub violating: usize,
    pub margin_s: f64,
}

/// How many acknowledgements came too early, and how many could have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlyCount {
    pub early: usize,
    pub compared: usize,
}

impl EarlyCount {
    /// The one with the smallest share of early ones, the first of equal ones; nothing where none could be early.
    pub fn least_of(parts: impl IntoIterator<Item = EarlyCount>) -> EarlyCount {
        let share = |count: &EarlyCount| count.early as f64 / count.compared as f64;
        let known = parts.into_iter().filter(|count| count.compared > 0);
        known.min_by(|one, other| share(one).total_cmp(&share(other))).unwrap_or_default()
    }
}

impl ClockBound<'_> {
    /// Client times from which to which each piece holds. Whole numbers: a floating-point number of nanoseconds since
    /// 1970 is off by 100 ns, and a packet at the start of a piece would be taken into the piece before.
    fn spans(&self) -> Vec<(i64, i64)> {
        let starts = self.lines.0.iter().skip(1).map(|line| line.start_ns);
        let ends = starts.clone().chain([i64::MAX]);
        [i64::MIN].into_iter().chain(starts).zip(ends).collect()
    }
}

impl FlowTimes {
    /// Acknowledgements that came too early even under the offset, per piece, that suits the flow's data best.
    ///
    /// The drift is that of the lines; the offset is moved towards the acknowledgements until the data forbid it.
    pub fn early_acks(&self, clock: ClockBound<'_>) -> EarlyCount {
        let acks: Vec<Difference> = self.ack_differences(false).collect();
        EarlyCount { early: self.count_early(&acks, clock, &clock.spans()), compared: acks.len() }
    }

    /// Acknowledgements that came before the receiver had sent its own of the same bytes, for each piece, or for both
    /// halves of a connection with one: each has an offset of its own.
    pub fn early_own_acks(&self, clock: ClockBound<'_>) -> Vec<EarlyCount> {
        let acks: Vec<Difference> = self.own_ack_differences().collect();
        let Some(middle_ns) = median(acks.iter().map(|ack| ack.0 as f64).collect()) else {
            return Vec::new();
        };
        let spans = if clock.lines.0.len() > 1 {
            clock.spans()
        } else {
            let middle_ns = middle_ns as i64;
            vec![(i64::MIN, middle_ns), (middle_ns, i64::MAX)]
        };
        let counted = spans.into_iter().map(|span| EarlyCount {
            early: self.count_early(&acks, clock, &[span]),
            compared: acks.iter().filter(|ack| is_within(ack, span)).count(),
        });
        counted.collect()
    }

    fn count_early(&self, acks: &[Difference], clock: ClockBound<'_>, spans: &[(i64, i64)]) -> usize {
        let sign = if self.is_up { -1.0 } else { 1.0 };
        let rest_ns = |&(client_ns, difference_ns): &Difference| {
            sign * (difference_ns as f64 - clock.lines.server_minus_client_ns(client_ns))
        };
        let mut bounds_ns = Vec::with_capacity(self.data.len());
        let mut bound_of = |&span: &(i64, i64)| {
            let data = self.data_differences(false).filter(|datum| is_within(datum, span));
            bounds_ns.clear();
            bounds_ns.extend(data.map(|datum| rest_ns(&datum)));
            let place = bounds_ns.len().checked_sub(clock.spared)?.checked_sub(1)?;
            Some((span, *bounds_ns.select_nth_unstable_by(place, f64::total_cmp).1 - clock.error_ns))
        };
        let bounds: Vec<((i64, i64), f64)> = spans.iter().filter_map(&mut bound_of).collect();
        let is_early =
            |ack: &&Difference| bounds.iter().any(|&(span, bound_ns)| is_within(ack, span) && rest_ns(ack) < bound_ns);
        acks.iter().filter(is_early).count()
    }

    /// The published methods with a given offset (server's minus client's clock at the sender's end of the flow, ns), by
    /// the receiver's own acknowledgement times; `None` where none is known.
    pub fn published(&self, theta_ns: i64, error_s: f64) -> Option<Published> {
        let mut found = Published { timed: 0, violating: 0, margin_s: f64::INFINITY };
        for &TimedAck { seen_ns, sent_ns, .. } in self.acks.iter().filter(|ack| ack.sent_ns != NEVER) {
            let margin_s = seen_ns.wrapping_sub(sent_ns).wrapping_add(theta_ns) as f64 / 1e9;
            found.timed += 1;
            found.violating += usize::from(margin_s < -error_s);
            found.margin_s = found.margin_s.min(margin_s);
        }
        (found.timed > 0).then_some(found)
    }
}

fn is_within(&(client_ns, _): &Difference, (start_ns, end_ns): (i64, i64)) -> bool {
    start_ns <= client_ns && client_ns < end_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::lines::ClockLine;
    use crate::flows::times::TimedDatum;

    const FLAT: ClockLine = ClockLine { start_ns: 0, reference_ns: 0, offset_ns: 0.0, drift: 0.0 };

    /// Ten data down, of which all but three meet a queue of 60 ms, acknowledged to the server this much after it sent
    /// them.
    fn down(round_trip_ns: i64) -> FlowTimes {
        let sent = (0..10).map(|number| number * 100_000_000);
        let queue_ns = |time_ns: i64| if time_ns < 300_000_000 { 0 } else { 60_000_000 };
        let data: Vec<TimedDatum> =
            sent.map(|sent_ns| TimedDatum { sent_ns, arrived_ns: sent_ns + queue_ns(sent_ns) }).collect();
        let ack = |datum: &TimedDatum| TimedAck {
            seen_ns: datum.sent_ns + round_trip_ns,
            sent_ns: datum.arrived_ns + 1,
            arrival_ns: datum.arrived_ns,
            is_own: true,
            ..TimedAck::default()
        };
        FlowTimes { acks: data.iter().map(ack).collect(), data, ..FlowTimes::default() }
    }

    #[test]
    fn acknowledgements_that_do_not_wait_for_queued_data_are_early() {
        let clock = ClockBound { lines: ClockLines(&[FLAT]), spared: 2, error_ns: 1e6 };
        assert_eq!(down(80_000_000).early_acks(clock), EarlyCount { early: 0, compared: 10 });
        assert_eq!(down(5_000_000).early_acks(clock), EarlyCount { early: 7, compared: 10 });
        // A queue that stands for all of the second half is an offset as well.
        let halves = [EarlyCount { early: 2, compared: 5 }, EarlyCount { early: 0, compared: 5 }];
        assert_eq!(down(5_000_000).early_own_acks(clock), halves);
    }

    #[test]
    fn a_piece_with_too_few_data_shows_nothing_early() {
        let second = ClockLine { start_ns: 850_000_000, ..FLAT };
        let clock = ClockBound { lines: ClockLines(&[FLAT, second]), spared: 2, error_ns: 1e6 };
        assert_eq!(down(5_000_000).early_acks(clock), EarlyCount { early: 5, compared: 10 });
    }

    #[test]
    fn the_published_methods_count_against_a_given_offset() {
        let found = down(5_000_000).published(0, 1e-3);
        assert_eq!(found, Some(Published { timed: 10, violating: 7, margin_s: -0.055_000_001 }));
        assert_eq!(FlowTimes::default().published(0, 1e-3), None);
    }
}

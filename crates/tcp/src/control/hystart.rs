//! HyStart (Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55, 2011) with what Linux made of
//! it: leaves slow start where a train of ACKs lasts as long as half a round trip, or where round trips grow.

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER, SECOND};

use super::Acknowledged;

/// Windows below it say nothing.
const LOW_WINDOW_SEGMENTS: f64 = 16.0;
/// ACKs no further apart than this are one train.
const TRAIN_SPACING_NS: Nanoseconds = 2 * MILLISECOND;
const MINIMUM_THRESHOLD_NS: Nanoseconds = 4 * MILLISECOND;
const MAXIMUM_THRESHOLD_NS: Nanoseconds = 16 * MILLISECOND;
const ROUND_TRIP_DIVISOR: u64 = 8;
const SAMPLES_A_ROUND: u32 = 8;
/// What senders and receivers that handle segments in batches may add to a train: four batches of 64 KiB at twice the
/// present rate, at most a millisecond.
const BATCHES_BYTES: f64 = 4.0 * 65_536.0;
const LONGEST_BATCHING_NS: f64 = MILLISECOND as f64;

/// Follows the rounds of slow start.
#[derive(Clone, Debug)]
pub struct Hystart {
    /// Shortest round trip of the connection.
    shortest_ns: Nanoseconds,
    acknowledged_bytes: u64,
    round_ends_at_bytes: u64,
    round_began: Nanoseconds,
    /// The last ACK of the train that the round began with.
    train_ends: Nanoseconds,
    round_shortest_ns: Nanoseconds,
    round_samples: u32,
}

impl Default for Hystart {
    fn default() -> Self {
        Self {
            shortest_ns: NEVER,
            acknowledged_bytes: 0,
            round_ends_at_bytes: 0,
            round_began: 0,
            train_ends: 0,
            round_shortest_ns: NEVER,
            round_samples: 0,
        }
    }
}

impl Hystart {
    /// Shortest round trip seen.
    pub(super) fn shortest_ns(&self) -> Option<Nanoseconds> {
        (self.shortest_ns != NEVER).then_some(self.shortest_ns)
    }

    /// Forgets all round trips, as after a timeout; a round begins that ends with what is in flight.
    pub(super) fn restart(&mut self, now: Nanoseconds, in_flight_bytes: u64) {
        *self = Self {
            acknowledged_bytes: self.acknowledged_bytes,
            round_ends_at_bytes: self.acknowledged_bytes + in_flight_bytes,
            round_began: now,
            train_ends: now,
            ..Self::default()
        };
    }

    /// Counts an ACK; to be called for each.
    pub(super) fn count(&mut self, acknowledged: &Acknowledged) {
        self.acknowledged_bytes += acknowledged.newly_acknowledged_bytes;
    }

    /// Takes a sample of the round-trip time.
    pub(super) fn note(&mut self, round_trip_time: Nanoseconds) {
        self.shortest_ns = self.shortest_ns.min(round_trip_time);
    }

    /// Whether slow start ends with this ACK. `rate_bytes_s` is a window in a round trip.
    pub(super) fn is_found(
        &mut self,
        acknowledged: &Acknowledged,
        round_trip_time: Nanoseconds,
        window_segments: f64,
        rate_bytes_s: f64,
    ) -> bool {
        let now = acknowledged.now;
        if self.acknowledged_bytes > self.round_ends_at_bytes {
            let left_bytes = acknowledged.in_flight_bytes.saturating_sub(acknowledged.newly_acknowledged_bytes);
            self.round_ends_at_bytes = self.acknowledged_bytes + left_bytes;
            self.round_began = now;
            self.train_ends = now;
            self.round_shortest_ns = NEVER;
            self.round_samples = 0;
        }
        if window_segments < LOW_WINDOW_SEGMENTS {
            return false;
        }
        self.is_train_long(now, rate_bytes_s) | self.is_round_trip_longer(round_trip_time)
    }

    fn is_train_long(&mut self, now: Nanoseconds, rate_bytes_s: f64) -> bool {
        if now.saturating_sub(self.train_ends) > TRAIN_SPACING_NS {
            return false;
        }
        self.train_ends = now;
        let batching_ns =
            (BATCHES_BYTES / (2.0 * rate_bytes_s.max(1.0)) * SECOND as f64).min(LONGEST_BATCHING_NS) as Nanoseconds;
        // Half of it, since this sender does not pace.
        now.saturating_sub(self.round_began) > self.shortest_ns.saturating_add(batching_ns) / 2
    }

    fn is_round_trip_longer(&mut self, round_trip_time: Nanoseconds) -> bool {
        self.round_shortest_ns = self.round_shortest_ns.min(round_trip_time);
        if self.round_samples < SAMPLES_A_ROUND {
            self.round_samples += 1;
            return false;
        }
        let threshold_ns = (self.shortest_ns / ROUND_TRIP_DIVISOR).clamp(MINIMUM_THRESHOLD_NS, MAXIMUM_THRESHOLD_NS);
        self.round_shortest_ns > self.shortest_ns.saturating_add(threshold_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::{Acknowledged, Hystart};
    use pepscope_path::{Nanoseconds, MILLISECOND};

    const SEGMENT: u64 = 1000;

    /// A round of `segments` ACKs from `start` on, `spacing` apart, that all took `round_trip_time`; the number of the
    /// one that ended slow start.
    fn round(
        hystart: &mut Hystart,
        start: Nanoseconds,
        segments: u64,
        spacing: Nanoseconds,
        round_trip_time: Nanoseconds,
    ) -> Option<u64> {
        (0..segments).find(|index| {
            let acknowledged = Acknowledged {
                now: start + index * spacing,
                newly_acknowledged_bytes: SEGMENT,
                newly_delivered_bytes: SEGMENT,
                delivered_bytes: 0,
                in_flight_bytes: segments * SEGMENT,
                round_trip_time: Some(round_trip_time),
                rate_sample: None,
                marked: false,
                in_recovery: false,
                is_window_limited: true,
            };
            hystart.count(&acknowledged);
            hystart.note(round_trip_time);
            let rate_bytes_s = (segments * SEGMENT) as f64 * 1e9 / round_trip_time as f64;
            hystart.is_found(&acknowledged, round_trip_time, segments as f64, rate_bytes_s)
        })
    }

    #[test]
    fn a_train_longer_than_half_the_shortest_round_trip_ends_slow_start() {
        let mut hystart = Hystart::default();
        // 20 ACKs a millisecond apart last 19 ms: (40 + 1) / 2 = 20.5 ms are not reached.
        assert_eq!(round(&mut hystart, 0, 20, MILLISECOND, 40 * MILLISECOND), None);
        // The 22nd is 21 ms after the first.
        assert_eq!(round(&mut hystart, 40 * MILLISECOND, 40, MILLISECOND, 40 * MILLISECOND), Some(21));
    }

    #[test]
    fn acknowledgements_further_apart_are_no_train() {
        let mut hystart = Hystart::default();
        assert_eq!(round(&mut hystart, 0, 40, 2 * MILLISECOND + 1, 40 * MILLISECOND), None);
    }

    #[test]
    fn batches_of_a_fast_sender_are_allowed_for_by_what_they_take() {
        let mut hystart = Hystart::default();
        // 5 ms and 4,000 segments: 800 MB/s, whose batches take 2 * 65536 / 800e6 = 164 us; the train may last 2.58 ms.
        let spacing = 10_000;
        assert_eq!(round(&mut hystart, 0, 4_000, spacing, 5 * MILLISECOND), Some(259));
    }

    #[test]
    fn round_trips_an_eighth_longer_end_slow_start_at_the_ninth() {
        let mut hystart = Hystart::default();
        let spacing = MILLISECOND / 100;
        assert_eq!(round(&mut hystart, 0, 20, spacing, 80 * MILLISECOND), None);
        assert_eq!(round(&mut hystart, 100 * MILLISECOND, 20, spacing, 90 * MILLISECOND), None);
        assert_eq!(round(&mut hystart, 200 * MILLISECOND, 20, spacing, 90 * MILLISECOND + 1), Some(8));
    }

    #[test]
    fn the_threshold_is_between_4_and_16_milliseconds() {
        for (shortest_ms, threshold_ms) in [(8, 4), (800, 16)] {
            let mut hystart = Hystart::default();
            let (shortest, longer) = (shortest_ms * MILLISECOND, (shortest_ms + threshold_ms) * MILLISECOND);
            let spacing = MILLISECOND / 100;
            assert_eq!(round(&mut hystart, 0, 20, spacing, shortest), None);
            assert_eq!(round(&mut hystart, 100 * MILLISECOND, 20, spacing, longer), None);
            assert_eq!(round(&mut hystart, 200 * MILLISECOND, 20, spacing, longer + 1), Some(8));
        }
    }

    #[test]
    fn windows_below_sixteen_segments_say_nothing() {
        let mut hystart = Hystart::default();
        assert_eq!(round(&mut hystart, 0, 15, 2 * MILLISECOND, 10 * MILLISECOND), None);
        assert_eq!(round(&mut hystart, 30 * MILLISECOND, 15, 2 * MILLISECOND, 100 * MILLISECOND), None);
    }

    #[test]
    fn a_restart_forgets_the_shortest_round_trip() {
        let mut hystart = Hystart::default();
        round(&mut hystart, 0, 20, 1000, 40 * MILLISECOND);
        hystart.restart(50 * MILLISECOND, 0);
        assert_eq!(hystart.shortest_ns(), None);
        assert_eq!(round(&mut hystart, 100 * MILLISECOND, 20, 1000, 90 * MILLISECOND), None);
        assert_eq!(hystart.shortest_ns(), Some(90 * MILLISECOND));
    }
}

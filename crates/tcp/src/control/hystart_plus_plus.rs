//! HyStart++: leaves slow start when round trips grow, before packets are lost (RFC 9406).

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER};

use super::Acknowledged;

const MINIMUM_THRESHOLD_NS: Nanoseconds = 4 * MILLISECOND;
const MAXIMUM_THRESHOLD_NS: Nanoseconds = 16 * MILLISECOND;
const ROUND_TRIP_DIVISOR: u64 = 8;
const SAMPLES_A_ROUND: u32 = 8;
const CONSERVATIVE_GROWTH_DIVISOR: u64 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;
/// L, for a sender that does not pace.
const GROWTH_LIMIT_SEGMENTS: u64 = 8;

/// How the window opens in the first slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    /// Conservative slow start, with the round trip that began it and the rounds that it has lasted.
    Conservative {
        baseline_ns: Nanoseconds,
        rounds: u32,
    },
    /// Slow start is over.
    Done,
}

/// Follows the rounds of the first slow start (RFC 9406, section 4.2).
#[derive(Clone, Debug)]
pub struct HystartPlusPlus {
    phase: Phase,
    acknowledged_bytes: u64,
    round_ends_at_bytes: u64,
    last_round_minimum_ns: Nanoseconds,
    round_minimum_ns: Nanoseconds,
    round_samples: u32,
}

impl Default for HystartPlusPlus {
    fn default() -> Self {
        Self {
            phase: Phase::SlowStart,
            acknowledged_bytes: 0,
            round_ends_at_bytes: 0,
            last_round_minimum_ns: NEVER,
            round_minimum_ns: NEVER,
            round_samples: 0,
        }
    }
}

impl HystartPlusPlus {
    /// Bytes by which an ACK opens the window in slow start.
    pub(super) fn on_acknowledged(&mut self, acknowledged: &Acknowledged, segment_bytes: u64) -> u64 {
        self.follow_round(acknowledged);
        let opening = acknowledged.newly_acknowledged_bytes.min(GROWTH_LIMIT_SEGMENTS * segment_bytes);
        match self.phase {
            Phase::Conservative { .. } => opening / CONSERVATIVE_GROWTH_DIVISOR,
            Phase::SlowStart | Phase::Done => opening,
        }
    }

    /// Whether slow start ends at the present window.
    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    fn follow_round(&mut self, acknowledged: &Acknowledged) {
        self.acknowledged_bytes += acknowledged.newly_acknowledged_bytes;
        if self.acknowledged_bytes > self.round_ends_at_bytes {
            let left_bytes = acknowledged.in_flight_bytes.saturating_sub(acknowledged.newly_acknowledged_bytes);
            self.round_ends_at_bytes = self.acknowledged_bytes + left_bytes;
            self.begin_round();
        }
        if let Some(round_trip_time) = acknowledged.round_trip_time {
            self.round_minimum_ns = self.round_minimum_ns.min(round_trip_time);
            self.round_samples += 1;
            self.judge_round();
        }
    }

    fn begin_round(&mut self) {
        self.last_round_minimum_ns = self.round_minimum_ns;
        self.round_minimum_ns = NEVER;
        self.round_samples = 0;
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds >= CONSERVATIVE_ROUNDS {
                self.phase = Phase::Done;
            }
        }
    }

    fn judge_round(&mut self) {
        if self.round_samples < SAMPLES_A_ROUND {
            return;
        }
        match self.phase {
            Phase::SlowStart if self.last_round_minimum_ns != NEVER => {
                let threshold_ns =
                    (self.last_round_minimum_ns / ROUND_TRIP_DIVISOR).clamp(MINIMUM_THRESHOLD_NS, MAXIMUM_THRESHOLD_NS);
                if self.round_minimum_ns >= self.last_round_minimum_ns + threshold_ns {
                    self.phase = Phase::Conservative { baseline_ns: self.round_minimum_ns, rounds: 0 };
                }
            }
            Phase::Conservative { baseline_ns, .. } if self.round_minimum_ns < baseline_ns => {
                self.phase = Phase::SlowStart;
            }
            Phase::SlowStart | Phase::Conservative { .. } | Phase::Done => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Acknowledged, HystartPlusPlus};
    use pepscope_path::{Nanoseconds, MILLISECOND};

    const SEGMENT: u64 = 1000;

    /// A round of `segments` ACKs that all took `round_trip_time`; the bytes by which the window opened.
    fn round(hystart: &mut HystartPlusPlus, segments: u64, round_trip_time: Nanoseconds) -> u64 {
        (0..segments)
            .map(|_| {
                let acknowledged = Acknowledged {
                    now: 0,
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
                hystart.on_acknowledged(&acknowledged, SEGMENT)
            })
            .sum()
    }

    #[test]
    fn equal_round_trips_open_a_segment_an_acknowledgement() {
        let mut hystart = HystartPlusPlus::default();
        for _ in 0..20 {
            assert_eq!(round(&mut hystart, 16, 40 * MILLISECOND), 16 * SEGMENT);
        }
        assert!(!hystart.is_done());
    }

    #[test]
    fn a_round_trip_an_eighth_longer_slows_the_opening_to_a_quarter_for_five_rounds() {
        let mut hystart = HystartPlusPlus::default();
        round(&mut hystart, 16, 40 * MILLISECOND);
        // The eighth sample decides: eight segments at once, eight at a quarter.
        assert_eq!(round(&mut hystart, 16, 45 * MILLISECOND), (7 * 4 + 9) * SEGMENT / 4);
        for _ in 0..4 {
            assert!(!hystart.is_done());
            assert_eq!(round(&mut hystart, 16, 46 * MILLISECOND), 16 * SEGMENT / 4);
        }
        round(&mut hystart, 16, 46 * MILLISECOND);
        assert!(hystart.is_done());
    }

    #[test]
    fn a_shorter_round_trip_takes_the_alarm_back() {
        let mut hystart = HystartPlusPlus::default();
        round(&mut hystart, 16, 40 * MILLISECOND);
        round(&mut hystart, 16, 45 * MILLISECOND);
        round(&mut hystart, 16, 40 * MILLISECOND);
        assert_eq!(round(&mut hystart, 16, 40 * MILLISECOND), 16 * SEGMENT);
        assert!(!hystart.is_done());
    }

    #[test]
    fn seven_samples_are_not_enough() {
        let mut hystart = HystartPlusPlus::default();
        round(&mut hystart, 7, 40 * MILLISECOND);
        assert_eq!(round(&mut hystart, 7, 80 * MILLISECOND), 7 * SEGMENT);
    }
}

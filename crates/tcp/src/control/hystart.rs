//! HyStart: leaves slow start before packets are lost, because round trips grow or ACK trains are long.
//!
//! Both published rules follow the same rounds and use the same threshold of the round-trip time: the first HyStart (Ha
//! and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55, 2011) as Linux has it, and HyStart++
//! (RFC 9406).

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER, SECOND};

use super::Acknowledged;

/// MIN_RTT_THRESH of RFC 9406; HYSTART_DELAY_MIN of Linux.
const MINIMUM_THRESHOLD_NS: Nanoseconds = 4 * MILLISECOND;
/// MAX_RTT_THRESH of RFC 9406; HYSTART_DELAY_MAX of Linux.
const MAXIMUM_THRESHOLD_NS: Nanoseconds = 16 * MILLISECOND;
/// MIN_RTT_DIVISOR of RFC 9406; a shift by 3 in Linux.
const ROUND_TRIP_DIVISOR: u64 = 8;
/// N_RTT_SAMPLE of RFC 9406; HYSTART_MIN_SAMPLES of Linux.
const SAMPLES_A_ROUND: u32 = 8;

/// Linux does not apply HyStart to smaller windows (hystart_low_window).
const LOW_WINDOW_SEGMENTS: f64 = 16.0;
/// ACKs no further apart than this belong to one train (hystart_ack_delta of Linux).
const TRAIN_SPACING_NS: Nanoseconds = 2 * MILLISECOND;
/// Linux allows for the batches of segmentation and receive offload: four of 64 KiB at twice the present rate.
const BATCHES_BYTES: f64 = 4.0 * 65_536.0;
/// Linux allows at most a millisecond for batches.
const LONGEST_BATCHING_NS: f64 = MILLISECOND as f64;

/// CSS_GROWTH_DIVISOR of RFC 9406.
const CONSERVATIVE_GROWTH_DIVISOR: u64 = 4;
/// CSS_ROUNDS of RFC 9406.
const CONSERVATIVE_ROUNDS: u32 = 5;
/// L of RFC 9406, for a sender that does not pace.
const GROWTH_LIMIT_SEGMENTS: u64 = 8;

/// One round: it lasts until everything that was in flight at its beginning is acknowledged.
#[derive(Clone, Debug)]
struct Round {
    acknowledged_bytes: u64,
    ends_at_bytes: u64,
    shortest_ns: Nanoseconds,
    samples: u32,
}

impl Default for Round {
    fn default() -> Self {
        Self { acknowledged_bytes: 0, ends_at_bytes: 0, shortest_ns: NEVER, samples: 0 }
    }
}

impl Round {
    fn count(&mut self, acknowledged: &Acknowledged) {
        self.acknowledged_bytes += acknowledged.newly_acknowledged_bytes;
    }

    /// Begins the next round if this one is over, and returns the shortest round trip of the one that ended.
    fn next(&mut self, acknowledged: &Acknowledged) -> Option<Nanoseconds> {
        if self.acknowledged_bytes <= self.ends_at_bytes {
            return None;
        }
        let left_bytes = acknowledged.in_flight_bytes.saturating_sub(acknowledged.newly_acknowledged_bytes);
        self.ends_at_bytes = self.acknowledged_bytes + left_bytes;
        self.samples = 0;
        Some(std::mem::replace(&mut self.shortest_ns, NEVER))
    }
}

/// The excess over `baseline_ns` from which a round trip counts as grown.
fn threshold_ns(baseline_ns: Nanoseconds) -> Nanoseconds {
    (baseline_ns / ROUND_TRIP_DIVISOR).clamp(MINIMUM_THRESHOLD_NS, MAXIMUM_THRESHOLD_NS)
}

/// The first HyStart as Linux has it: slow start ends where a train of ACKs lasts as long as half a round trip, or
/// where round trips grow beyond the shortest of the connection.
#[derive(Clone, Debug)]
pub(super) struct Hystart {
    /// The shortest round trip of the connection.
    shortest_ns: Nanoseconds,
    round: Round,
    round_began: Nanoseconds,
    /// The last ACK of the train that the round began with.
    train_ends: Nanoseconds,
    is_paced: bool,
}

impl Default for Hystart {
    fn default() -> Self {
        Self { shortest_ns: NEVER, round: Round::default(), round_began: 0, train_ends: 0, is_paced: false }
    }
}

impl Hystart {
    /// The shortest round trip of the connection.
    pub(super) fn shortest_ns(&self) -> Option<Nanoseconds> {
        (self.shortest_ns != NEVER).then_some(self.shortest_ns)
    }

    /// For a sender that spaces segments out.
    pub(super) fn paced(is_paced: bool) -> Self {
        Self { is_paced, ..Self::default() }
    }

    /// Removes all round trips, as after a timeout. A round begins that ends with what is in flight.
    pub(super) fn restart(&mut self, now: Nanoseconds, in_flight_bytes: u64) {
        let acknowledged_bytes = self.round.acknowledged_bytes;
        *self = Self {
            round: Round {
                acknowledged_bytes,
                ends_at_bytes: acknowledged_bytes + in_flight_bytes,
                ..Round::default()
            },
            round_began: now,
            train_ends: now,
            is_paced: self.is_paced,
            ..Self::default()
        };
    }

    /// Counts an ACK. The control calls it for each.
    pub(super) fn count(&mut self, acknowledged: &Acknowledged) {
        self.round.count(acknowledged);
    }

    /// Takes a sample of the round-trip time.
    pub(super) fn sample(&mut self, round_trip_time: Nanoseconds) {
        self.shortest_ns = self.shortest_ns.min(round_trip_time);
    }

    /// Whether slow start ends with this ACK. `rate_bytes_s` is a window in a round trip.
    pub(super) fn ends_slow_start(
        &mut self,
        acknowledged: &Acknowledged,
        round_trip_time: Nanoseconds,
        window_segments: f64,
        rate_bytes_s: f64,
    ) -> bool {
        let now = acknowledged.now;
        if self.round.next(acknowledged).is_some() {
            self.round_began = now;
            self.train_ends = now;
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
        let longest_ns = self.shortest_ns.saturating_add(batching_ns);
        // Half of it where segments are not paced.
        now.saturating_sub(self.round_began) > if self.is_paced { longest_ns } else { longest_ns / 2 }
    }

    fn is_round_trip_longer(&mut self, round_trip_time: Nanoseconds) -> bool {
        self.round.shortest_ns = self.round.shortest_ns.min(round_trip_time);
        if self.round.samples < SAMPLES_A_ROUND {
            self.round.samples += 1;
            return false;
        }
        self.round.shortest_ns > self.shortest_ns.saturating_add(threshold_ns(self.shortest_ns))
    }
}

/// How the window opens in the first slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    /// Conservative slow start. `baseline_ns` is the round trip that began it, `rounds` counts how long it has lasted.
    Conservative {
        baseline_ns: Nanoseconds,
        rounds: u32,
    },
    /// Slow start is over.
    Done,
}

/// HyStart++ (RFC 9406, section 4.2): round trips that grow from one round to the next begin a conservative slow start,
/// which ends slow start unless round trips shrink again.
#[derive(Clone, Debug)]
pub(super) struct HystartPlusPlus {
    phase: Phase,
    round: Round,
    last_round_shortest_ns: Nanoseconds,
}

impl Default for HystartPlusPlus {
    fn default() -> Self {
        Self { phase: Phase::SlowStart, round: Round::default(), last_round_shortest_ns: NEVER }
    }
}

impl HystartPlusPlus {
    /// Bytes by which an ACK opens the window in slow start.
    pub(super) fn on_acknowledged(&mut self, acknowledged: &Acknowledged, segment_bytes: u64) -> u64 {
        self.round.count(acknowledged);
        if let Some(shortest_ns) = self.round.next(acknowledged) {
            self.last_round_shortest_ns = shortest_ns;
            self.count_conservative_round();
        }
        if let Some(round_trip_time) = acknowledged.round_trip_time {
            self.round.shortest_ns = self.round.shortest_ns.min(round_trip_time);
            self.round.samples += 1;
            self.judge_round();
        }
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

    fn count_conservative_round(&mut self) {
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds >= CONSERVATIVE_ROUNDS {
                self.phase = Phase::Done;
            }
        }
    }

    fn judge_round(&mut self) {
        if self.round.samples < SAMPLES_A_ROUND {
            return;
        }
        let (shortest_ns, before_ns) = (self.round.shortest_ns, self.last_round_shortest_ns);
        match self.phase {
            Phase::SlowStart if before_ns != NEVER && shortest_ns >= before_ns + threshold_ns(before_ns) => {
                self.phase = Phase::Conservative { baseline_ns: shortest_ns, rounds: 0 };
            }
            Phase::Conservative { baseline_ns, .. } if shortest_ns < baseline_ns => self.phase = Phase::SlowStart,
            Phase::SlowStart | Phase::Conservative { .. } | Phase::Done => {}
        }
    }
}

#[cfg(test)]
mod tests;

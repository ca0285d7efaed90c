//! How the states follow each other (section 5.3).

use pepscope_path::{Nanoseconds, Random, MILLISECOND, NEVER, SECOND};

use super::{
    rate_over, AckPhase, Acknowledged, Bbr3, Bbr3State, DOWN_PACING_GAIN, DRAIN_PACING_GAIN, MINIMUM_FILTER_NS,
    PROBE_DURATION_NS, PROBE_INTERVAL_NS, PROBE_WINDOW_GAIN, STARTUP_PACING_GAIN, UNBOUNDED, UP_PACING_GAIN,
    UP_WINDOW_GAIN, WINDOW_GAIN,
};

/// Between probes for bandwidth at least this passes, and up to a second more.
const LEAST_WAIT_NS: Nanoseconds = 2 * SECOND;
const MOST_FURTHER_WAIT_MS: u32 = 1000;
/// Probing as often as Reno does after so many rounds at most (section 5.3.3.5.1).
const MOST_ROUNDS: u64 = 63;
const MOST_UP_ROUNDS: u32 = 30;

impl Bbr3 {
    fn enter(&mut self, state: Bbr3State) {
        self.state = state;
        (self.pacing_gain, self.window_gain) = match state {
            Bbr3State::Startup => (STARTUP_PACING_GAIN, WINDOW_GAIN),
            Bbr3State::Drain => (DRAIN_PACING_GAIN, WINDOW_GAIN),
            Bbr3State::Down => (DOWN_PACING_GAIN, WINDOW_GAIN),
            Bbr3State::Cruise | Bbr3State::Refill => (1.0, WINDOW_GAIN),
            Bbr3State::Up => (UP_PACING_GAIN, UP_WINDOW_GAIN),
            Bbr3State::ProbeRoundTrip => (1.0, PROBE_WINDOW_GAIN),
        };
    }

    pub(super) fn check_startup_and_drain(&mut self, now: Nanoseconds) {
        if self.state == Bbr3State::Startup && self.is_full {
            self.enter(Bbr3State::Drain);
        }
        if self.state == Bbr3State::Drain
            && self.in_flight_bytes <= self.flight_target(self.bandwidth_bytes_s(), 1.0, 0)
        {
            self.start_down(now);
        }
    }

    fn start_down(&mut self, now: Nanoseconds) {
        self.has_lost_in_round = false;
        self.latest_bytes_s = 0;
        self.latest_in_flight_bytes = 0;
        self.up_segments = UNBOUNDED;
        let mut random = Random::new(now, "bbr3");
        self.rounds_since_probe = u64::from(random.below(2));
        self.probe_wait_ns = LEAST_WAIT_NS + u64::from(random.below(MOST_FURTHER_WAIT_MS)) * MILLISECOND;
        self.phase_began_ns = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.enter(Bbr3State::Down);
    }

    fn start_refill(&mut self) {
        self.forget_lower_bounds();
        (self.up_rounds, self.up_acknowledged_bytes) = (0, 0);
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.enter(Bbr3State::Refill);
    }

    fn start_up(&mut self, now: Nanoseconds) {
        self.takes_probe_samples = true;
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.restart_full(self.sample.map_or(0, |sample| sample.delivery_rate_bytes_s));
        self.phase_began_ns = now;
        self.enter(Bbr3State::Up);
        self.raise_slope();
    }

    /// BBRUpdateProbeBWCyclePhase.
    pub(super) fn advance_phase(&mut self, acknowledged: &Acknowledged) {
        if !self.is_full {
            return;
        }
        self.adapt_high_bound(acknowledged);
        let now = acknowledged.now;
        let goes_down = self.state == Bbr3State::Up && self.is_time_to_go_down();
        match self.state {
            Bbr3State::Down | Bbr3State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            Bbr3State::Down if self.has_drained() => self.enter(Bbr3State::Cruise),
            Bbr3State::Refill if self.is_round_start => self.start_up(now),
            Bbr3State::Up if goes_down => self.start_down(now),
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Nanoseconds) -> bool {
        let target = self.flight_target(self.bandwidth_bytes_s(), 1.0, 0).min(self.window_bytes);
        now > self.phase_began_ns.saturating_add(self.probe_wait_ns)
            || self.rounds_since_probe >= (target / self.segment_bytes).min(MOST_ROUNDS)
    }

    fn has_drained(&self) -> bool {
        self.in_flight_bytes <= self.with_headroom()
            && self.in_flight_bytes <= self.flight_target(self.greatest_bytes_s(), 1.0, 0)
    }

    fn is_time_to_go_down(&mut self) -> bool {
        if self.is_window_limited && self.window_bytes >= self.high_in_flight_bytes {
            self.restart_full(self.sample.map_or(0, |sample| sample.delivery_rate_bytes_s));
            return false;
        }
        self.is_full_now
    }

    /// BBRAdaptLongTermModel (section 5.3.3.6).
    fn adapt_high_bound(&mut self, acknowledged: &Acknowledged) {
        if self.ack_phase == AckPhase::ProbeStarting && self.is_round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.is_round_start {
            self.takes_probe_samples = false;
            self.ack_phase = AckPhase::Initial;
            if self.state.probes_bandwidth() && self.sample.is_some_and(|sample| !sample.is_application_limited) {
                self.maxima = [self.maxima[1], 0];
            }
        }
        if let Some((in_flight_bytes, is_application_limited)) = self.excess(acknowledged) {
            if self.takes_probe_samples {
                self.lower_high_bound(in_flight_bytes, is_application_limited);
                if self.state == Bbr3State::Up {
                    self.start_down(acknowledged.now);
                }
            }
            return;
        }
        if self.high_in_flight_bytes == UNBOUNDED {
            return;
        }
        if let Some(sample) = self.sample {
            self.high_in_flight_bytes = self.high_in_flight_bytes.max(sample.in_flight_bytes_when_sent);
        }
        if self.state == Bbr3State::Up {
            self.raise_high_bound(acknowledged.newly_delivered_bytes);
        }
    }

    /// In each round of UP twice as many segments more as in the one before.
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(MOST_UP_ROUNDS);
        self.up_segments = (self.window_bytes / self.segment_bytes / growth).max(1);
    }

    fn raise_high_bound(&mut self, delivered_bytes: u64) {
        if !self.is_window_limited || self.window_bytes < self.high_in_flight_bytes {
            return;
        }
        self.up_acknowledged_bytes += delivered_bytes;
        let step_bytes = self.up_segments.saturating_mul(self.segment_bytes);
        let steps = self.up_acknowledged_bytes / step_bytes;
        self.up_acknowledged_bytes -= steps * step_bytes;
        self.high_in_flight_bytes += steps * self.segment_bytes;
        if self.is_round_start {
            self.raise_slope();
        }
    }

    /// BBRUpdateMinRTT.
    pub(super) fn take_round_trip(&mut self, acknowledged: &Acknowledged) {
        let now = acknowledged.now;
        self.is_probe_due = now > self.probed_seen_ns.saturating_add(PROBE_INTERVAL_NS);
        if let Some(round_trip_time) = acknowledged.round_trip_time {
            if self.shortest_ns == NEVER {
                self.pacing_rate_bytes_s = STARTUP_PACING_GAIN * rate_over(self.initial_window_bytes, round_trip_time);
            }
            if round_trip_time < self.probed_ns || self.is_probe_due {
                self.probed_ns = round_trip_time.max(1);
                self.probed_seen_ns = now;
            }
        }
        if self.probed_ns < self.shortest_ns || now > self.shortest_seen_ns.saturating_add(MINIMUM_FILTER_NS) {
            self.shortest_ns = self.probed_ns;
            self.shortest_seen_ns = self.probed_seen_ns;
        }
    }

    /// BBRCheckProbeRTT: half of what the path holds for 200 ms, where no shorter round trip was seen for 5 s.
    pub(super) fn check_probe_round_trip(&mut self, now: Nanoseconds) {
        if self.state != Bbr3State::ProbeRoundTrip && self.is_probe_due && !self.is_restarting {
            self.save_window();
            self.enter(Bbr3State::ProbeRoundTrip);
            self.probe_ends_ns = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == Bbr3State::ProbeRoundTrip {
            self.hold_probe_round_trip(now);
        }
        self.is_restarting = false;
    }

    fn hold_probe_round_trip(&mut self, now: Nanoseconds) {
        self.limited_until_bytes = self.delivered_bytes + self.in_flight_bytes;
        match self.probe_ends_ns {
            None => {
                if self.in_flight_bytes <= self.probe_window() {
                    self.probe_ends_ns = Some(now + PROBE_DURATION_NS);
                    self.probe_round_done = false;
                    self.start_round();
                }
            }
            Some(ends_ns) => {
                self.probe_round_done |= self.is_round_start;
                if self.probe_round_done && now > ends_ns {
                    self.probed_seen_ns = now;
                    self.restore_window();
                    self.forget_lower_bounds();
                    if self.is_full {
                        self.start_down(now);
                        self.enter(Bbr3State::Cruise);
                    } else {
                        self.enter(Bbr3State::Startup);
                    }
                }
            }
        }
    }
}

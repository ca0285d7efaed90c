//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): paces at the bandwidth that the path was seen to
//! deliver, and keeps twice the product of it and the least round-trip time in flight.
//!
//! The draft draws the phase in which PROBE_BW begins at random. Here it comes from the time at which it begins: flows
//! that start apart probe apart, and a run needs no further seed.

use pepscope_path::{Nanoseconds, Random, MILLISECOND, NEVER, SECOND};

use super::bandwidth_filter::BandwidthFilter;
use super::full_pipe::FullPipe;
use super::{Acknowledged, Cause, Congestion, CongestionControl, ControlKind, ControlSettings, Needs, RateSample};

pub(super) const KINDS: &[ControlKind] =
    &[ControlKind::new("bbr", "BBR version 1, which paces", |settings| Box::new(Bbr::new(settings)))];

/// 2 / ln 2: the least gain that doubles the rate every round (section 4.2.1).
const HIGH_GAIN: f64 = 2.0 / core::f64::consts::LN_2;
const CYCLE_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const PROBE_WINDOW_GAIN: f64 = 2.0;
const ROUND_TRIP_FILTER_NS: Nanoseconds = 10 * SECOND;
const PROBE_ROUND_TRIP_NS: Nanoseconds = 200 * MILLISECOND;
const MINIMUM_WINDOW_SEGMENTS: u64 = 4;
/// Before a round trip is known, the initial window is paced over this (section 4.2.1).
const NOMINAL_ROUND_TRIP_NS: Nanoseconds = MILLISECOND;

/// What BBR is doing (section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrState {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

/// The control; section numbers are the draft's.
#[derive(Clone, Debug)]
pub struct Bbr {
    segment_bytes: u64,
    initial_window_bytes: u64,
    state: BbrState,
    pacing_gain: f64,
    window_gain: f64,
    pacing_rate_bytes_s: f64,
    window_bytes: u64,
    bandwidth: BandwidthFilter,
    minimum_round_trip_ns: Nanoseconds,
    minimum_seen_ns: Nanoseconds,
    round_count: u64,
    round_ends_at_bytes: u64,
    is_round_start: bool,
    pipe: FullPipe,
    cycle_index: usize,
    cycle_began_ns: Nanoseconds,
    /// When PROBE_RTT may end; `None` until the flight has shrunk.
    probe_ends_ns: Option<Nanoseconds>,
    probe_round_done: bool,
    is_restarting: bool,
    /// Samples of data sent before this was delivered count as limited by the application: PROBE_RTT limits them.
    limited_until_bytes: u64,
    window_before: u64,
    is_recovering: bool,
    /// The delivery that ends packet conservation, one round after recovery began.
    conserved_until_bytes: Option<u64>,
    /// The delivery of all that was in flight when the timer expired, which ends the recovery from that.
    repaired_at_bytes: Option<u64>,
    delivered_bytes: u64,
}

impl Bbr {
    #[must_use]
    pub fn new(settings: &ControlSettings) -> Self {
        let segment_bytes = u64::from(settings.maximum_segment_size.max(1));
        let initial_window_bytes = settings.initial_window_bytes.max(segment_bytes);
        Self {
            segment_bytes,
            initial_window_bytes,
            state: BbrState::Startup,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            pacing_rate_bytes_s: HIGH_GAIN * rate_over(initial_window_bytes, NOMINAL_ROUND_TRIP_NS),
            window_bytes: initial_window_bytes,
            bandwidth: BandwidthFilter::default(),
            minimum_round_trip_ns: NEVER,
            minimum_seen_ns: 0,
            round_count: 0,
            round_ends_at_bytes: 0,
            is_round_start: false,
            pipe: FullPipe::default(),
            cycle_index: 0,
            cycle_began_ns: 0,
            probe_ends_ns: None,
            probe_round_done: false,
            is_restarting: false,
            limited_until_bytes: 0,
            window_before: 0,
            is_recovering: false,
            conserved_until_bytes: None,
            repaired_at_bytes: None,
            delivered_bytes: 0,
        }
    }

    #[must_use]
    pub fn state(&self) -> BbrState {
        self.state
    }

    /// RTprop; [`NEVER`] before the first sample.
    #[must_use]
    pub fn minimum_round_trip_ns(&self) -> Nanoseconds {
        self.minimum_round_trip_ns
    }

    /// What every ACK brings (section 4.1.1.2): first the model, then the pace and the window.
    fn update(&mut self, acknowledged: &Acknowledged) {
        let in_flight_bytes = acknowledged.in_flight_bytes.saturating_sub(acknowledged.newly_delivered_bytes);
        self.delivered_bytes = acknowledged.delivered_bytes;
        if let Some(sample) = &acknowledged.rate_sample {
            self.update_bandwidth(sample);
        } else {
            self.is_round_start = false;
        }
        self.check_cycle_phase(acknowledged, in_flight_bytes);
        if self.is_round_start && acknowledged.rate_sample.is_some_and(|sample| !self.is_limited(&sample)) {
            self.pipe.end_round(self.bandwidth.maximum());
        }
        self.check_drain(acknowledged.now, in_flight_bytes);
        let minimum_expired = self.update_minimum_round_trip(acknowledged);
        self.check_probe_round_trip(acknowledged.now, in_flight_bytes, minimum_expired);
        self.set_pacing_rate();
        self.set_window(acknowledged, in_flight_bytes);
    }

    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.is_round_start = sample.delivered_bytes_when_sent >= self.round_ends_at_bytes;
        if self.is_round_start {
            self.round_ends_at_bytes = self.delivered_bytes;
            self.round_count += 1;
        }
        let rate = sample.delivery_rate_bytes_s;
        if rate >= self.bandwidth.maximum() || !self.is_limited(sample) {
            self.bandwidth.update(self.round_count, rate);
        }
    }

    fn is_limited(&self, sample: &RateSample) -> bool {
        sample.is_application_limited || sample.delivered_bytes_when_sent < self.limited_until_bytes
    }

    /// Section 4.3.4.3: on to the next gain after a minimum round trip, when the gain had its effect.
    fn check_cycle_phase(&mut self, acknowledged: &Acknowledged, in_flight_bytes: u64) {
        if self.state != BbrState::ProbeBandwidth {
            return;
        }
        let lasted = acknowledged.now.saturating_sub(self.cycle_began_ns) > self.minimum_round_trip_ns;
        let before_bytes = acknowledged.in_flight_bytes;
        let is_over = if self.pacing_gain > 1.0 {
            lasted && (acknowledged.in_recovery || before_bytes >= self.flight_target(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            lasted || in_flight_bytes <= self.flight_target(1.0)
        } else {
            lasted
        };
        if is_over {
            self.enter_cycle_phase(acknowledged.now, (self.cycle_index + 1) % CYCLE_GAINS.len());
        }
    }

    fn enter_cycle_phase(&mut self, now: Nanoseconds, index: usize) {
        self.cycle_index = index;
        self.cycle_began_ns = now;
        self.pacing_gain = CYCLE_GAINS[index];
    }

    fn check_drain(&mut self, now: Nanoseconds, in_flight_bytes: u64) {
        if self.state == BbrState::Startup && self.pipe.is_full() {
            self.state = BbrState::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.window_gain = HIGH_GAIN;
        }
        if self.state == BbrState::Drain && in_flight_bytes <= self.flight_target(1.0) {
            self.enter_probe_bandwidth(now);
        }
    }

    fn enter_probe_bandwidth(&mut self, now: Nanoseconds) {
        self.state = BbrState::ProbeBandwidth;
        self.window_gain = PROBE_WINDOW_GAIN;
        // Any phase but the one that drains what the first has put into the queue.
        let drawn = Random::new(now, "bbr").below(CYCLE_GAINS.len() as u32 - 1) as usize;
        self.enter_cycle_phase(now, if drawn == 0 { 0 } else { drawn + 1 });
    }

    /// Section 4.1.2.3; whether the minimum is older than the filter.
    fn update_minimum_round_trip(&mut self, acknowledged: &Acknowledged) -> bool {
        let now = acknowledged.now;
        let expired = now > self.minimum_seen_ns.saturating_add(ROUND_TRIP_FILTER_NS);
        if let Some(round_trip_time) = acknowledged.round_trip_time {
            if self.minimum_round_trip_ns == NEVER {
                self.pacing_rate_bytes_s = HIGH_GAIN * rate_over(self.initial_window_bytes, round_trip_time);
            }
            if round_trip_time <= self.minimum_round_trip_ns || expired {
                self.minimum_round_trip_ns = round_trip_time.max(1);
                self.minimum_seen_ns = now;
            }
        }
        expired
    }

    /// Section 4.3.5: empties the path for 200 ms when the minimum has not been seen for 10 s.
    fn check_probe_round_trip(&mut self, now: Nanoseconds, in_flight_bytes: u64, minimum_expired: bool) {
        if self.state != BbrState::ProbeRoundTrip && minimum_expired && !self.is_restarting {
            self.save_window();
            self.state = BbrState::ProbeRoundTrip;
            self.pacing_gain = 1.0;
            self.window_gain = 1.0;
            self.probe_ends_ns = None;
        }
        if self.state == BbrState::ProbeRoundTrip {
            self.hold_probe_round_trip(now, in_flight_bytes);
        }
        self.is_restarting = false;
    }

    fn hold_probe_round_trip(&mut self, now: Nanoseconds, in_flight_bytes: u64) {
        self.limited_until_bytes = self.delivered_bytes + in_flight_bytes;
        match self.probe_ends_ns {
            None => {
                if in_flight_bytes <= MINIMUM_WINDOW_SEGMENTS * self.segment_bytes {
                    self.probe_ends_ns = Some(now + PROBE_ROUND_TRIP_NS);
                    self.probe_round_done = false;
                    self.round_ends_at_bytes = self.delivered_bytes;
                }
            }
            Some(ends_ns) => {
                self.probe_round_done |= self.is_round_start;
                if self.probe_round_done && now > ends_ns {
                    self.minimum_seen_ns = now;
                    self.restore_window();
                    if self.pipe.is_full() {
                        self.enter_probe_bandwidth(now);
                    } else {
                        self.state = BbrState::Startup;
                        (self.pacing_gain, self.window_gain) = (HIGH_GAIN, HIGH_GAIN);
                    }
                }
            }
        }
    }

    /// Section 4.2.1.
    fn set_pacing_rate(&mut self) {
        let rate = self.pacing_gain * self.bandwidth.maximum() as f64;
        if rate > 0.0 && (self.pipe.is_full() || rate > self.pacing_rate_bytes_s) {
            self.pacing_rate_bytes_s = rate;
        }
    }

    /// Section 4.2.3.
    fn set_window(&mut self, acknowledged: &Acknowledged, in_flight_bytes: u64) {
        let delivered_bytes = acknowledged.newly_delivered_bytes;
        let minimum_bytes = MINIMUM_WINDOW_SEGMENTS * self.segment_bytes;
        if self.conserved_until_bytes.is_some_and(|end| self.delivered_bytes >= end) {
            self.conserved_until_bytes = None;
        }
        if self.repaired_at_bytes.is_some_and(|end| self.delivered_bytes >= end) {
            self.end_recovery();
        }
        if self.conserved_until_bytes.is_some() {
            self.window_bytes = self.window_bytes.max(in_flight_bytes + delivered_bytes);
        } else {
            let target_bytes = self.flight_target(self.window_gain);
            let opened_bytes = self.window_bytes + delivered_bytes;
            if self.pipe.is_full() {
                self.window_bytes = opened_bytes.min(target_bytes);
            } else if self.window_bytes < target_bytes || self.delivered_bytes < self.initial_window_bytes {
                self.window_bytes = opened_bytes;
            }
            self.window_bytes = self.window_bytes.max(minimum_bytes);
        }
        if self.state == BbrState::ProbeRoundTrip {
            self.window_bytes = self.window_bytes.min(minimum_bytes);
        }
    }

    /// Inflight(gain): so many bandwidth-delay products, and three bursts for hosts that aggregate (section 4.2.3.2).
    fn flight_target(&self, gain: f64) -> u64 {
        if self.minimum_round_trip_ns == NEVER {
            return self.initial_window_bytes;
        }
        let product = self.bandwidth.maximum() as f64 * (self.minimum_round_trip_ns as f64 / SECOND as f64);
        (gain * product) as u64 + 3 * self.send_quantum()
    }

    /// Section 4.2.2, with its rates in bytes: below 1.2 Mbit/s one segment, below 24 Mbit/s two, then a millisecond.
    fn send_quantum(&self) -> u64 {
        if self.pacing_rate_bytes_s < 150_000.0 {
            self.segment_bytes
        } else if self.pacing_rate_bytes_s < 3_000_000.0 {
            2 * self.segment_bytes
        } else {
            ((self.pacing_rate_bytes_s / 1000.0) as u64).min(64 << 10)
        }
    }

    fn save_window(&mut self) {
        self.window_before = if self.is_recovering || self.state == BbrState::ProbeRoundTrip {
            self.window_before.max(self.window_bytes)
        } else {
            self.window_bytes
        };
    }

    fn end_recovery(&mut self) {
        self.is_recovering = false;
        self.conserved_until_bytes = None;
        self.repaired_at_bytes = None;
        self.restore_window();
    }

    fn restore_window(&mut self) {
        self.window_bytes = self.window_bytes.max(self.window_before);
    }
}

impl CongestionControl for Bbr {
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        self.update(acknowledged);
    }

    fn on_duplicate(&mut self, acknowledged: &Acknowledged) {
        self.update(acknowledged);
    }

    /// Section 4.2.3.4: a loss is weak evidence about the path; the window conserves packets for a round and is
    /// restored.
    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.cause {
            Cause::Mark => {}
            Cause::FastRetransmit => {
                self.save_window();
                self.is_recovering = true;
                self.window_bytes = congestion.in_flight_bytes.max(self.segment_bytes);
                self.conserved_until_bytes = Some(self.delivered_bytes + congestion.in_flight_bytes);
            }
            Cause::Timeout | Cause::FastRetransmitWithoutRecovery => {
                self.save_window();
                self.is_recovering = true;
                self.window_bytes = self.segment_bytes;
                self.conserved_until_bytes = None;
                self.repaired_at_bytes = Some(self.delivered_bytes + congestion.in_flight_bytes);
            }
        }
    }

    fn on_spurious_congestion(&mut self, window_bytes: u64, _threshold_bytes: u64) {
        self.window_bytes = self.window_bytes.max(window_bytes);
    }

    fn on_recovery_ended(&mut self, _now: Nanoseconds, _in_flight_bytes: u64) {
        self.end_recovery();
    }

    /// Section 4.3.4.4: after a pause, at the bandwidth itself, so that no queue builds up.
    fn on_sent(&mut self, _now: Nanoseconds, in_flight_bytes: u64, _payload_bytes: u32) {
        if in_flight_bytes == 0 && self.delivered_bytes > 0 {
            self.is_restarting = true;
            if self.state == BbrState::ProbeBandwidth {
                self.pacing_rate_bytes_s = self.bandwidth.maximum() as f64;
            }
        }
    }

    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    fn slow_start_threshold_bytes(&self) -> u64 {
        u64::MAX
    }

    fn pacing_rate_bytes_s(&self) -> Option<u64> {
        Some((self.pacing_rate_bytes_s as u64).max(1))
    }

    fn estimated_bandwidth_bytes_s(&self) -> Option<u64> {
        Some(self.bandwidth.maximum())
    }

    fn needs(&self) -> Needs {
        Needs { rate_samples: true, sent_segments: true, pacing: true }
    }
}

fn rate_over(bytes: u64, duration_ns: Nanoseconds) -> f64 {
    bytes as f64 * SECOND as f64 / duration_ns.max(1) as f64
}

#[cfg(test)]
mod tests;

//! BBR version 3 (draft-ietf-ccwg-bbr-02): paces at the bandwidth that the path was seen to deliver, and bounds what is in
//! flight by what the path was seen to hold without losing more than 2 %.
//!
//! Section numbers are the draft's; gains are those of its section 2 and of Google's release for Linux. Of explicit
//! congestion notification the draft has nothing yet, and marks are ignored. What the draft draws at random comes from the
//! time at which it is drawn, so that a run needs no further seed.

mod bounds;
mod phases;
#[cfg(test)]
mod tests;

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER, SECOND};

use super::{Acknowledged, Cause, Congestion, CongestionControl, ControlKind, ControlSettings, Needs, RateSample};

pub(super) const KINDS: &[ControlKind] =
    &[ControlKind::new("bbr3", "BBR version 3, which paces", |settings| Box::new(Bbr3::new(settings)))];

const STARTUP_PACING_GAIN: f64 = 2.773; // 4 ln 2
const DRAIN_PACING_GAIN: f64 = 0.35;
const WINDOW_GAIN: f64 = 2.0;
const UP_PACING_GAIN: f64 = 1.25;
const UP_WINDOW_GAIN: f64 = 2.25;
const DOWN_PACING_GAIN: f64 = 0.9;
const PROBE_WINDOW_GAIN: f64 = 0.5;
/// The share of the bandwidth that is left to others (BBRPacingMarginPercent).
const PACING_MARGIN: f64 = 0.01;
const MINIMUM_WINDOW_SEGMENTS: u64 = 4;
const MINIMUM_FILTER_NS: Nanoseconds = 10 * SECOND;
const PROBE_INTERVAL_NS: Nanoseconds = 5 * SECOND;
const PROBE_DURATION_NS: Nanoseconds = 200 * MILLISECOND;
/// Before a round trip is known, the initial window is paced over this.
const NOMINAL_ROUND_TRIP_NS: Nanoseconds = MILLISECOND;
const UNBOUNDED: u64 = u64::MAX;

/// What BBR is doing (section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bbr3State {
    Startup,
    Drain,
    /// ProbeBW, in its four phases.
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRoundTrip,
}

impl Bbr3State {
    fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// What the ACKs that arrive are of (ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Initial,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The control.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    segment_bytes: u64,
    initial_window_bytes: u64,
    state: Bbr3State,
    pacing_gain: f64,
    window_gain: f64,
    pacing_rate_bytes_s: f64,
    window_bytes: u64,
    window_before: u64,
    delivered_bytes: u64,
    in_flight_bytes: u64,
    is_window_limited: bool,
    sample: Option<RateSample>,
    // Rounds (section 5.5.1).
    round_ends_at_bytes: u64,
    is_round_start: bool,
    rounds_since_probe: u64,
    // The greatest bandwidth of this cycle of probing and the one before, and whether start-up has found it.
    maxima: [u64; 2],
    full_bytes_s: u64,
    full_count: u32,
    is_full_now: bool,
    is_full: bool,
    // Bounds from losses: of the last rounds, and until a probe finds more.
    latest_bytes_s: u64,
    latest_in_flight_bytes: u64,
    loss_round_ends_at_bytes: u64,
    is_loss_round_start: bool,
    has_lost_in_round: bool,
    loss_events: u32,
    low_bytes_s: u64,
    low_in_flight_bytes: u64,
    high_in_flight_bytes: u64,
    // Probing for bandwidth (section 5.3.3).
    ack_phase: AckPhase,
    takes_probe_samples: bool,
    phase_began_ns: Nanoseconds,
    probe_wait_ns: Nanoseconds,
    up_rounds: u32,
    up_acknowledged_bytes: u64,
    up_segments: u64,
    // The shortest round trip (section 5.3.4.3).
    shortest_ns: Nanoseconds,
    shortest_seen_ns: Nanoseconds,
    probed_ns: Nanoseconds,
    probed_seen_ns: Nanoseconds,
    is_probe_due: bool,
    probe_ends_ns: Option<Nanoseconds>,
    probe_round_done: bool,
    is_restarting: bool,
    limited_until_bytes: u64,
    // Aggregated ACKs (section 5.5.9): the most beyond the bandwidth in five to ten rounds.
    aggregation_began_ns: Nanoseconds,
    aggregated_bytes: u64,
    extra_bytes: [u64; 2],
    extra_rounds: u32,
    is_recovering: bool,
    /// The delivery of all that was in flight when the timer expired.
    repaired_at_bytes: Option<u64>,
}

impl Bbr3 {
    #[must_use]
    pub fn new(settings: &ControlSettings) -> Self {
        let segment_bytes = u64::from(settings.maximum_segment_size.max(1));
        let initial_window_bytes = settings.initial_window_bytes.max(segment_bytes);
        Self {
            segment_bytes,
            initial_window_bytes,
            state: Bbr3State::Startup,
            pacing_gain: STARTUP_PACING_GAIN,
            window_gain: WINDOW_GAIN,
            pacing_rate_bytes_s: STARTUP_PACING_GAIN * rate_over(initial_window_bytes, NOMINAL_ROUND_TRIP_NS),
            window_bytes: initial_window_bytes,
            window_before: 0,
            delivered_bytes: 0,
            in_flight_bytes: 0,
            is_window_limited: false,
            sample: None,
            round_ends_at_bytes: 0,
            is_round_start: false,
            rounds_since_probe: 0,
            maxima: [0; 2],
            full_bytes_s: 0,
            full_count: 0,
            is_full_now: false,
            is_full: false,
            latest_bytes_s: 0,
            latest_in_flight_bytes: 0,
            loss_round_ends_at_bytes: 0,
            is_loss_round_start: false,
            has_lost_in_round: false,
            loss_events: 0,
            low_bytes_s: UNBOUNDED,
            low_in_flight_bytes: UNBOUNDED,
            high_in_flight_bytes: UNBOUNDED,
            ack_phase: AckPhase::Initial,
            takes_probe_samples: false,
            phase_began_ns: 0,
            probe_wait_ns: 0,
            up_rounds: 0,
            up_acknowledged_bytes: 0,
            up_segments: UNBOUNDED,
            shortest_ns: NEVER,
            shortest_seen_ns: 0,
            probed_ns: NEVER,
            probed_seen_ns: 0,
            is_probe_due: false,
            probe_ends_ns: None,
            probe_round_done: false,
            is_restarting: false,
            limited_until_bytes: 0,
            aggregation_began_ns: 0,
            aggregated_bytes: 0,
            extra_bytes: [0; 2],
            extra_rounds: 0,
            is_recovering: false,
            repaired_at_bytes: None,
        }
    }

    #[must_use]
    pub fn state(&self) -> Bbr3State {
        self.state
    }

    /// min_rtt; [`NEVER`] before the first sample.
    #[must_use]
    pub fn minimum_round_trip_ns(&self) -> Nanoseconds {
        self.shortest_ns
    }

    /// The bound on what is in flight that losses have shown, if they have.
    #[must_use]
    pub fn highest_in_flight_bytes(&self) -> Option<u64> {
        (self.high_in_flight_bytes != UNBOUNDED).then_some(self.high_in_flight_bytes)
    }

    fn greatest_bytes_s(&self) -> u64 {
        self.maxima[0].max(self.maxima[1])
    }

    fn bandwidth_bytes_s(&self) -> u64 {
        self.greatest_bytes_s().min(self.low_bytes_s)
    }

    /// What every ACK brings (section 5.2.3): the model, then the pace and the window.
    fn update(&mut self, acknowledged: &Acknowledged) {
        self.in_flight_bytes = acknowledged.in_flight_bytes.saturating_sub(acknowledged.newly_delivered_bytes);
        self.delivered_bytes = acknowledged.delivered_bytes;
        self.is_window_limited = acknowledged.is_window_limited;
        self.sample = acknowledged.rate_sample.map(|sample| RateSample {
            is_application_limited: sample.is_application_limited
                || sample.delivered_bytes_when_sent < self.limited_until_bytes,
            ..sample
        });
        self.count_rounds();
        self.take_signals(acknowledged);
        self.take_aggregation(acknowledged);
        self.check_full();
        self.check_startup_losses(acknowledged);
        self.check_startup_and_drain(acknowledged.now);
        self.advance_phase(acknowledged);
        self.take_round_trip(acknowledged);
        self.check_probe_round_trip(acknowledged.now);
        self.forget_latest();
        self.set_pacing_rate();
        self.set_window(acknowledged);
    }

    fn count_rounds(&mut self) {
        self.is_round_start =
            self.sample.is_some_and(|sample| sample.delivered_bytes_when_sent >= self.round_ends_at_bytes);
        if self.is_round_start {
            self.start_round();
            self.rounds_since_probe += 1;
        }
    }

    fn start_round(&mut self) {
        self.round_ends_at_bytes = self.delivered_bytes;
    }

    fn set_pacing_rate(&mut self) {
        let rate = self.pacing_gain * self.bandwidth_bytes_s() as f64 * (1.0 - PACING_MARGIN);
        if rate > 0.0 && (self.is_full || rate > self.pacing_rate_bytes_s) {
            self.pacing_rate_bytes_s = rate;
        }
    }

    /// Section 5.6.4.6: what arrives opens the window up to the model's bounds; what is lost closes it.
    fn set_window(&mut self, acknowledged: &Acknowledged) {
        let minimum_bytes = MINIMUM_WINDOW_SEGMENTS * self.segment_bytes;
        if self.repaired_at_bytes.is_some_and(|end| self.delivered_bytes >= end) {
            self.end_recovery();
        }
        if let Some(lost) = acknowledged.loss_sample {
            self.window_bytes = self.window_bytes.saturating_sub(lost.newly_lost_bytes).max(self.segment_bytes);
        }
        let most_bytes = self.most_in_flight();
        let opened_bytes = self.window_bytes + acknowledged.newly_delivered_bytes;
        if self.is_full {
            self.window_bytes = opened_bytes.min(most_bytes);
        } else if self.window_bytes < most_bytes || self.delivered_bytes < self.initial_window_bytes {
            self.window_bytes = opened_bytes;
        }
        self.window_bytes = self.window_bytes.max(minimum_bytes);
        if self.state == Bbr3State::ProbeRoundTrip {
            self.window_bytes = self.window_bytes.min(self.probe_window());
        }
        self.window_bytes = self.window_bytes.min(self.bound_by_losses());
    }

    /// Section 5.6.4.2: so many bandwidth-delay products, `extra_bytes`, and room for bursts.
    fn flight_target(&self, bandwidth_bytes_s: u64, gain: f64, extra_bytes: u64) -> u64 {
        if self.shortest_ns == NEVER {
            return self.initial_window_bytes;
        }
        let product = bandwidth_bytes_s as f64 * (self.shortest_ns as f64 / SECOND as f64);
        let target = ((gain * product) as u64 + extra_bytes)
            .max(3 * self.send_quantum())
            .max(MINIMUM_WINDOW_SEGMENTS * self.segment_bytes);
        target + if self.state == Bbr3State::Up { 2 * self.segment_bytes } else { 0 }
    }

    fn most_in_flight(&self) -> u64 {
        self.flight_target(self.bandwidth_bytes_s(), self.window_gain, self.extra_bytes[0].max(self.extra_bytes[1]))
    }

    fn probe_window(&self) -> u64 {
        self.flight_target(self.bandwidth_bytes_s(), PROBE_WINDOW_GAIN, 0)
    }

    /// Section 5.6.3: a millisecond at the pace, at least two segments.
    fn send_quantum(&self) -> u64 {
        ((self.pacing_rate_bytes_s / 1000.0) as u64).min(64 << 10).max(2 * self.segment_bytes)
    }

    fn save_window(&mut self) {
        self.window_before = if self.is_recovering || self.state == Bbr3State::ProbeRoundTrip {
            self.window_before.max(self.window_bytes)
        } else {
            self.window_bytes
        };
    }

    fn restore_window(&mut self) {
        self.window_bytes = self.window_bytes.max(self.window_before);
    }

    fn end_recovery(&mut self) {
        self.is_recovering = false;
        self.repaired_at_bytes = None;
        self.restore_window();
        self.window_bytes = self.window_bytes.min(self.bound_by_losses());
    }
}

impl CongestionControl for Bbr3 {
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        self.update(acknowledged);
    }

    fn on_duplicate(&mut self, acknowledged: &Acknowledged) {
        self.update(acknowledged);
    }

    /// Losses act by the model; the window is kept for after the repair (section 5.6.4.4).
    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.cause {
            Cause::Mark => {}
            Cause::FastRetransmit => {
                self.save_window();
                self.is_recovering = true;
            }
            Cause::Timeout | Cause::FastRetransmitWithoutRecovery => {
                self.save_window();
                self.is_recovering = true;
                self.window_bytes = self.segment_bytes;
                self.repaired_at_bytes = Some(self.delivered_bytes + congestion.in_flight_bytes);
            }
        }
    }

    fn on_recovery_ended(&mut self, _now: Nanoseconds, _in_flight_bytes: u64) {
        self.end_recovery();
    }

    /// The bounds that the losses set were wrong, too (BBRHandleSpuriousLossDetection, section 5.6.4.5).
    fn on_spurious_congestion(&mut self, window_bytes: u64, _threshold_bytes: u64) {
        self.is_recovering = false;
        self.repaired_at_bytes = None;
        self.forget_lower_bounds();
        self.window_bytes = self.window_bytes.max(window_bytes);
    }

    /// Section 5.4.1: after a pause, at the bandwidth itself.
    fn on_sent(&mut self, now: Nanoseconds, in_flight_bytes: u64, _payload_bytes: u32) {
        if in_flight_bytes == 0 && self.delivered_bytes > 0 {
            self.is_restarting = true;
            self.aggregation_began_ns = now;
            if self.state.probes_bandwidth() {
                self.pacing_rate_bytes_s = (self.bandwidth_bytes_s() as f64 * (1.0 - PACING_MARGIN)).max(1.0);
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
        Some(self.bandwidth_bytes_s())
    }

    fn needs(&self) -> Needs {
        Needs { rate_samples: true, sent_segments: true, pacing: true }
    }
}

fn rate_over(bytes: u64, duration_ns: Nanoseconds) -> f64 {
    bytes as f64 * SECOND as f64 / duration_ns.max(1) as f64
}

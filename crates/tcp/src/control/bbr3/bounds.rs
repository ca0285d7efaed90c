//! What the model learns of bandwidth, of losses and of aggregated ACKs (sections 5.5 and 5.6.4).

use super::{Acknowledged, Bbr3, Bbr3State, MINIMUM_WINDOW_SEGMENTS, UNBOUNDED};
use pepscope_path::SECOND;

/// A round that loses more than this share of what was in flight held too much.
const LOSS_THRESHOLD: f64 = 0.02;
/// What a round with losses leaves of the lower bounds.
const DECREASE: f64 = 0.7;
/// The share of what the path holds that is left to others.
const HEADROOM: f64 = 0.15;
/// Rounds of start-up must lose at least so often to end it (BBRStartupFullLossCnt).
const STARTUP_LOSS_EVENTS: u32 = 6;
const FULL_GROWTH: f64 = 1.25;
const ROUNDS_WITHOUT_GROWTH: u32 = 3;
/// Rounds of one half of the window over which the aggregation's maximum is taken.
const AGGREGATION_ROUNDS: u32 = 5;

impl Bbr3 {
    /// Latest deliveries, the greatest bandwidth, and the lower bounds of a round with losses (5.5.5, 5.5.10).
    pub(super) fn take_signals(&mut self, acknowledged: &Acknowledged) {
        self.is_loss_round_start = false;
        if let Some(sample) = self.sample {
            let delivered_bytes = self.delivered_bytes.saturating_sub(sample.delivered_bytes_when_sent);
            self.latest_bytes_s = self.latest_bytes_s.max(sample.delivery_rate_bytes_s);
            self.latest_in_flight_bytes = self.latest_in_flight_bytes.max(delivered_bytes);
            if sample.delivered_bytes_when_sent >= self.loss_round_ends_at_bytes {
                self.loss_round_ends_at_bytes = self.delivered_bytes;
                self.is_loss_round_start = true;
            }
            if sample.delivery_rate_bytes_s >= self.greatest_bytes_s() || !sample.is_application_limited {
                self.maxima[1] = self.maxima[1].max(sample.delivery_rate_bytes_s);
            }
        }
        self.has_lost_in_round |= acknowledged.loss_sample.is_some();
        if self.is_loss_round_start {
            if self.has_lost_in_round {
                self.lower_bounds();
            }
            self.has_lost_in_round = false;
        }
    }

    pub(super) fn forget_latest(&mut self) {
        if let (true, Some(sample)) = (self.is_loss_round_start, self.sample) {
            self.latest_bytes_s = sample.delivery_rate_bytes_s;
            self.latest_in_flight_bytes = self.delivered_bytes.saturating_sub(sample.delivered_bytes_when_sent);
        }
    }

    fn lower_bounds(&mut self) {
        if matches!(self.state, Bbr3State::Startup | Bbr3State::Refill | Bbr3State::Up) {
            return;
        }
        if self.low_bytes_s == UNBOUNDED {
            self.low_bytes_s = self.greatest_bytes_s();
        }
        if self.low_in_flight_bytes == UNBOUNDED {
            self.low_in_flight_bytes = self.window_bytes;
        }
        let decreased = |bound: u64| (bound as f64 * DECREASE) as u64;
        self.low_bytes_s = self.latest_bytes_s.max(decreased(self.low_bytes_s));
        self.low_in_flight_bytes = self.latest_in_flight_bytes.max(decreased(self.low_in_flight_bytes));
    }

    pub(super) fn forget_lower_bounds(&mut self) {
        self.low_bytes_s = UNBOUNDED;
        self.low_in_flight_bytes = UNBOUNDED;
    }

    /// Where the losses of this ACK show that too much was in flight, how much that was.
    pub(super) fn excess(&self, acknowledged: &Acknowledged) -> Option<(u64, bool)> {
        let is_too_much = |lost: u64, in_flight: u64| lost as f64 > in_flight as f64 * LOSS_THRESHOLD;
        if let Some(lost) = acknowledged.loss_sample {
            if is_too_much(lost.lost_bytes, lost.in_flight_bytes_when_sent) {
                // What was in flight when the share of losses passed the threshold (BBRInflightAtLoss).
                let before = lost.lost_bytes.saturating_sub(lost.newly_lost_bytes) as f64;
                let in_flight = lost.in_flight_bytes_when_sent.saturating_sub(self.segment_bytes) as f64;
                let prefix = ((LOSS_THRESHOLD * in_flight - before) / (1.0 - LOSS_THRESHOLD)).max(0.0);
                return Some((in_flight as u64 + prefix as u64, lost.is_application_limited));
            }
        }
        let sample = self.sample?;
        is_too_much(sample.lost_bytes, sample.in_flight_bytes_when_sent)
            .then_some((sample.in_flight_bytes_when_sent, sample.is_application_limited))
    }

    /// Section 5.3.1.2: three rounds without a quarter more.
    pub(super) fn check_full(&mut self) {
        let Some(sample) = self.sample else { return };
        if self.is_full_now || sample.is_application_limited {
            return;
        }
        if sample.delivery_rate_bytes_s as f64 >= self.full_bytes_s as f64 * FULL_GROWTH {
            self.restart_full(sample.delivery_rate_bytes_s);
            return;
        }
        if !self.is_round_start {
            return;
        }
        self.full_count += 1;
        self.is_full_now = self.full_count >= ROUNDS_WITHOUT_GROWTH;
        self.is_full |= self.is_full_now;
    }

    pub(super) fn restart_full(&mut self, bytes_s: u64) {
        self.full_bytes_s = bytes_s;
        self.full_count = 0;
        self.is_full_now = false;
    }

    /// Section 5.3.1.3: a round of start-up that loses too much, often.
    pub(super) fn check_startup_losses(&mut self, acknowledged: &Acknowledged) {
        if self.state == Bbr3State::Startup && !self.is_full {
            self.loss_events += u32::from(acknowledged.loss_sample.is_some());
            if self.is_loss_round_start
                && acknowledged.in_recovery
                && self.loss_events >= STARTUP_LOSS_EVENTS
                && self.excess(acknowledged).is_some()
            {
                self.is_full = true;
                let product = self.flight_target(self.greatest_bytes_s(), 1.0, 0);
                self.high_in_flight_bytes = product.max(self.latest_in_flight_bytes);
            }
        }
        if self.is_loss_round_start {
            self.loss_events = 0;
        }
    }

    /// Section 5.5.9.
    pub(super) fn take_aggregation(&mut self, acknowledged: &Acknowledged) {
        if self.is_round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= if self.is_full { AGGREGATION_ROUNDS } else { 1 } {
                self.extra_bytes = [self.extra_bytes[1], 0];
                self.extra_rounds = 0;
            }
        }
        let interval = acknowledged.now.saturating_sub(self.aggregation_began_ns) as f64 / SECOND as f64;
        let mut expected = (self.bandwidth_bytes_s() as f64 * interval) as u64;
        if self.aggregated_bytes <= expected {
            self.aggregated_bytes = 0;
            self.aggregation_began_ns = acknowledged.now;
            expected = 0;
        }
        self.aggregated_bytes += acknowledged.newly_delivered_bytes;
        let extra = self.aggregated_bytes.saturating_sub(expected).min(self.window_bytes);
        self.extra_bytes[1] = self.extra_bytes[1].max(extra);
    }

    /// Section 5.6.4.7: what losses leave of the window.
    pub(super) fn bound_by_losses(&self) -> u64 {
        let bound = match self.state {
            Bbr3State::Down | Bbr3State::Refill | Bbr3State::Up => self.high_in_flight_bytes,
            Bbr3State::Cruise | Bbr3State::ProbeRoundTrip => self.with_headroom(),
            Bbr3State::Startup | Bbr3State::Drain => UNBOUNDED,
        };
        bound.min(self.low_in_flight_bytes).max(MINIMUM_WINDOW_SEGMENTS * self.segment_bytes)
    }

    pub(super) fn with_headroom(&self) -> u64 {
        if self.high_in_flight_bytes == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = ((self.high_in_flight_bytes as f64 * HEADROOM) as u64).max(self.segment_bytes);
        self.high_in_flight_bytes.saturating_sub(headroom).max(MINIMUM_WINDOW_SEGMENTS * self.segment_bytes)
    }

    /// Section 5.5.6.
    pub(super) fn lower_high_bound(&mut self, in_flight_bytes: u64, is_application_limited: bool) {
        self.takes_probe_samples = false;
        if !is_application_limited {
            let target = self.flight_target(self.bandwidth_bytes_s(), 1.0, 0).min(self.window_bytes);
            self.high_in_flight_bytes = in_flight_bytes.max((target as f64 * DECREASE) as u64);
        }
    }
}

//! CUBIC: the window is a cubic function of the time since congestion avoidance began.
//!
//! There are two editions: RFC 9438, and what Linux does (`net/ipv4/tcp_cubic.c`, behaviour of versions 5.8 to 6.18).
//! Linux differs as follows.
//!
//! - Slow start opens by every segment acknowledged, up to the threshold, and ends by [`Hystart`], again after each
//!   timeout. The RFC's has no such end or that of [`HystartPlusPlus`], in the first slow start only.
//! - In slow start a window counts as used if half of it is.
//! - Until the first loss, and after a timeout until the next, the window opens by at least a twentieth a round trip.
//! - The function looks ahead by the shortest round trip, not by the smoothed one.
//! - A loss leaves 0.7 of the window, not of what was in flight.
//! - The Reno-friendly estimate grows as slowly when it is back as before.
//! - An idle period stops the clock of the function; with the RFC's edition a new stage begins.
//!
//! A reduction that turns out to be spurious is undone as Linux does it: window and threshold of before are restored, the
//! function is not (RFC 9438, section 4.9, leaves it open).

use pepscope_path::{Nanoseconds, SECOND};

use super::hystart::{Hystart, HystartPlusPlus};
use super::{Acknowledged, Cause, Congestion, CongestionControl, ControlKind, ControlSettings};

pub(super) const KINDS: &[ControlKind] = &[
    ControlKind::new("cubic", "CUBIC and the first HyStart as Linux has them", |settings| {
        Box::new(Cubic::linux(settings))
    }),
    ControlKind::new("cubic-hystart-plus-plus", "CUBIC (RFC 9438) with HyStart++ (RFC 9406)", |settings| {
        Box::new(Cubic::rfc_9438(settings, true))
    }),
    ControlKind::new("cubic-without-hystart", "CUBIC (RFC 9438) alone", |settings| {
        Box::new(Cubic::rfc_9438(settings, false))
    }),
];

/// alpha_cubic: with it the Reno-friendly estimate has the mean window of Reno's half and one (equation 4).
const FRIENDLY_INCREASE: f64 = 3.0 * (1.0 - Edition::Rfc9438.decrease()) / (1.0 + Edition::Rfc9438.decrease());
/// The largest target, in windows (section 4.2).
const TARGET_LIMIT: f64 = 1.5;
const ROUND_TRIP_GAIN: f64 = 0.125; // RFC 6298, section 2.3

/// Linux: segments to be acknowledged for one more segment of the Reno-friendly estimate, in windows.
const FRIENDLY_WINDOWS: f64 = 15.0 / 8.0;
/// Linux: segments to be acknowledged for one more of the window, at least.
const FASTEST: f64 = 2.0;
/// Linux: the same, at most while nothing was lost.
const SLOWEST_BEFORE_LOSS: f64 = 20.0;
/// Linux: the same in windows, where the function is not above the window.
const STANDSTILL_WINDOWS: f64 = 100.0;
/// Linux: so long after a loss round trips are no measure of an empty path.
const UNTIMED_NS: Nanoseconds = SECOND;

/// Whose CUBIC it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edition {
    Rfc9438,
    Linux,
}

impl Edition {
    /// beta_cubic (section 4.6); Linux counts in parts of 1024.
    const fn decrease(self) -> f64 {
        match self {
            Self::Rfc9438 => 0.7,
            Self::Linux => 717.0 / 1024.0,
        }
    }

    /// C in segments per cubed second (section 5.1).
    const fn aggressiveness(self) -> f64 {
        match self {
            Self::Rfc9438 => 0.4,
            Self::Linux => 410.0 / 1024.0,
        }
    }
}

/// What ends slow start besides a loss.
#[derive(Clone, Debug)]
enum SlowStartExit {
    Threshold,
    HystartPlusPlus(HystartPlusPlus),
    Hystart { rule: Hystart, has_ended: bool },
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    /// Later than the true start by the time in which the window limited nothing (section 5.8).
    start_ns: Nanoseconds,
    seen_ns: Nanoseconds,
    /// K: when the function reaches the plateau, in seconds after the start.
    plateau_s: f64,
    /// The window there, in segments.
    plateau: f64,
    /// W_est in segments.
    friendly: f64,
}

impl Epoch {
    /// Equation 1.
    fn cubic_at(&self, aggressiveness: f64, at_s: f64) -> f64 {
        let distance_s = at_s - self.plateau_s;
        aggressiveness * distance_s * distance_s * distance_s + self.plateau
    }
}

/// The control. Windows are in segments here, as in the RFC.
#[derive(Clone, Debug)]
pub struct Cubic {
    edition: Edition,
    exit: SlowStartExit,
    segment_bytes: f64,
    initial_window: f64,
    byte_counting_limit: f64,
    window: f64,
    threshold: f64,
    /// W_max; Linux has 0 until a loss, and from a timeout until the next.
    plateau: f64,
    /// cwnd_prior of the RFC.
    window_before: f64,
    epoch: Option<Epoch>,
    /// In the RFC's edition the next stage starts on its plateau after a timeout, and after a slow start that ended
    /// without a loss (sections 4.8 and 4.10).
    starts_on_plateau: bool,
    round_trip_s: Option<f64>,
}

impl Cubic {
    /// RFC 9438; with `hystart_plus_plus`, the first slow start ends when round trips grow (RFC 9406).
    #[must_use]
    pub fn rfc_9438(settings: &ControlSettings, hystart_plus_plus: bool) -> Self {
        let exit = if hystart_plus_plus {
            SlowStartExit::HystartPlusPlus(HystartPlusPlus::default())
        } else {
            SlowStartExit::Threshold
        };
        Self::new(settings, Edition::Rfc9438, exit, 1.0)
    }

    /// CUBIC as Linux has it.
    #[must_use]
    pub fn linux(settings: &ControlSettings) -> Self {
        let exit = SlowStartExit::Hystart { rule: Hystart::paced(settings.is_paced), has_ended: false };
        Self::new(settings, Edition::Linux, exit, f64::INFINITY)
    }

    /// `segments_an_ack` is how far an ACK opens slow start where the settings give no limit.
    fn new(settings: &ControlSettings, edition: Edition, exit: SlowStartExit, segments_an_ack: f64) -> Self {
        let segment_bytes = f64::from(settings.maximum_segment_size.max(1));
        let initial_window = (settings.initial_window_bytes as f64 / segment_bytes).max(1.0);
        let threshold = match settings.initial_slow_start_threshold_bytes {
            u64::MAX => f64::INFINITY,
            bytes => bytes as f64 / segment_bytes,
        };
        let limit = settings.byte_counting_limit_segments;
        Self {
            edition,
            exit,
            segment_bytes,
            initial_window,
            byte_counting_limit: limit.map_or(segments_an_ack, |segments| f64::from(segments.max(1))),
            window: initial_window,
            threshold,
            plateau: 0.0,
            window_before: initial_window,
            epoch: None,
            starts_on_plateau: true,
            round_trip_s: None,
        }
    }

    fn take_round_trip(&mut self, acknowledged: &Acknowledged, round_trip_time: Nanoseconds) {
        let sample_s = round_trip_time as f64 / SECOND as f64;
        let smoothed_s = self.round_trip_s.unwrap_or(sample_s);
        let smoothed_s = smoothed_s + ROUND_TRIP_GAIN * (sample_s - smoothed_s);
        self.round_trip_s = Some(smoothed_s);
        let SlowStartExit::Hystart { rule, has_ended } = &mut self.exit else { return };
        if self.epoch.is_some_and(|epoch| acknowledged.now.saturating_sub(epoch.start_ns) < UNTIMED_NS) {
            return;
        }
        rule.sample(round_trip_time);
        if !*has_ended && self.window < self.threshold {
            let rate_bytes_s = self.window * self.segment_bytes / smoothed_s.max(1e-9);
            if rule.ends_slow_start(acknowledged, round_trip_time, self.window, rate_bytes_s) {
                *has_ended = true;
                self.threshold = self.window;
            }
        }
    }

    /// Whether the window limits what is sent.
    fn is_used(&self, acknowledged: &Acknowledged) -> bool {
        acknowledged.is_window_limited
            || self.edition == Edition::Linux
                && self.window < self.threshold
                && self.window * self.segment_bytes < 2.0 * acknowledged.in_flight_bytes as f64
    }

    /// Opens the window in slow start, and returns the segments that count for congestion avoidance.
    fn open_in_slow_start(&mut self, acknowledged: &Acknowledged, segments: f64) -> f64 {
        if let SlowStartExit::HystartPlusPlus(rule) = &mut self.exit {
            if self.threshold.is_infinite() {
                let bytes = rule.on_acknowledged(acknowledged, self.segment_bytes as u64) as f64;
                if rule.is_done() {
                    self.threshold = self.window;
                    self.window_before = self.window;
                } else {
                    self.window += bytes / self.segment_bytes;
                }
                return 0.0;
            }
        }
        let opening = segments.min(self.byte_counting_limit);
        match self.edition {
            Edition::Rfc9438 => {
                self.window += opening;
                0.0
            }
            Edition::Linux => {
                let opened = (self.window + opening).min(self.threshold);
                let left = (opening - (opened - self.window)).max(0.0);
                self.window = opened;
                left
            }
        }
    }

    fn open_in_avoidance(&mut self, now: Nanoseconds, segments: f64) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(now),
        };
        epoch.seen_ns = now;
        match self.edition {
            Edition::Rfc9438 => self.grow_as_rfc_9438(&mut epoch, now, segments),
            Edition::Linux => self.grow_as_linux(&mut epoch, now, segments),
        }
        self.epoch = Some(epoch);
    }

    fn grow_as_rfc_9438(&mut self, epoch: &mut Epoch, now: Nanoseconds, segments: f64) {
        let at_s = now.saturating_sub(epoch.start_ns) as f64 / SECOND as f64;
        // Equation 4. Once it has made up for the decrease it grows as Reno does.
        let increase = if epoch.friendly < self.window_before { FRIENDLY_INCREASE } else { 1.0 };
        epoch.friendly += increase * segments / self.window;

        let aggressiveness = self.edition.aggressiveness();
        if epoch.cubic_at(aggressiveness, at_s) < epoch.friendly {
            self.window = self.window.max(epoch.friendly);
            return;
        }
        let ahead_s = at_s + self.round_trip_s.unwrap_or(0.0);
        let target = epoch.cubic_at(aggressiveness, ahead_s).clamp(self.window, TARGET_LIMIT * self.window);
        // The RFC has one segment an ACK in mind; an ACK of several counts for each.
        self.window += (target - self.window) / self.window * segments;
    }

    fn grow_as_linux(&mut self, epoch: &mut Epoch, now: Nanoseconds, segments: f64) {
        let ahead_ns = match &self.exit {
            SlowStartExit::Hystart { rule, .. } => rule.shortest_ns().unwrap_or(0),
            SlowStartExit::Threshold | SlowStartExit::HystartPlusPlus(_) => 0,
        };
        let at_s = (now.saturating_sub(epoch.start_ns) + ahead_ns) as f64 / SECOND as f64;
        let target = epoch.cubic_at(self.edition.aggressiveness(), at_s);
        let mut each =
            if target > self.window { self.window / (target - self.window) } else { STANDSTILL_WINDOWS * self.window };
        if self.plateau == 0.0 {
            each = each.min(SLOWEST_BEFORE_LOSS);
        }
        epoch.friendly += segments / (FRIENDLY_WINDOWS * self.window);
        if epoch.friendly > self.window {
            each = each.min(self.window / (epoch.friendly - self.window));
        }
        self.window += segments / each.max(FASTEST);
    }

    fn begin_epoch(&mut self, now: Nanoseconds) -> Epoch {
        if self.edition == Edition::Rfc9438 && self.starts_on_plateau {
            self.plateau = self.window;
            self.starts_on_plateau = false;
        }
        let missing = (self.plateau - self.window).max(0.0);
        Epoch {
            start_ns: now,
            seen_ns: now,
            plateau_s: libm::cbrt(missing / self.edition.aggressiveness()), // equation 2
            plateau: match self.edition {
                Edition::Rfc9438 => self.plateau,
                Edition::Linux => self.window + missing,
            },
            friendly: self.window,
        }
    }

    fn reduce(&mut self, in_flight: f64) {
        let decrease = self.edition.decrease();
        // Section 4.7: a flow that did not get back to where it was leaves room to a new one.
        self.plateau = if self.window < self.plateau { self.window * (1.0 + decrease) / 2.0 } else { self.window };
        self.window_before = self.window;
        let reduced = match self.edition {
            Edition::Rfc9438 => in_flight,
            Edition::Linux => self.window,
        };
        self.threshold = (reduced * decrease).max(2.0);
    }

    /// Takes the time since the last ACK out of the stage.
    fn stop_clock(&mut self, now: Nanoseconds) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start_ns += now.saturating_sub(epoch.seen_ns);
            epoch.seen_ns = now;
        }
    }
}

impl CongestionControl for Cubic {
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        if let SlowStartExit::Hystart { rule, .. } = &mut self.exit {
            rule.count(acknowledged);
        }
        if let Some(round_trip_time) = acknowledged.round_trip_time {
            self.take_round_trip(acknowledged, round_trip_time);
        }
        if acknowledged.in_recovery || acknowledged.newly_acknowledged_bytes == 0 {
            return;
        }
        if !self.is_used(acknowledged) {
            self.stop_clock(acknowledged.now);
            return;
        }
        let mut segments = acknowledged.newly_acknowledged_bytes as f64 / self.segment_bytes;
        if self.window < self.threshold {
            segments = self.open_in_slow_start(acknowledged, segments);
        }
        if segments > 0.0 && self.window >= self.threshold {
            self.open_in_avoidance(acknowledged.now, segments);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !congestion.is_repeated {
            self.reduce(congestion.in_flight_bytes as f64 / self.segment_bytes);
        }
        self.epoch = None;
        match congestion.cause {
            Cause::FastRetransmit | Cause::Mark => {
                self.window = self.threshold;
                self.starts_on_plateau = false;
            }
            Cause::FastRetransmitWithoutRecovery | Cause::Timeout => {
                self.window = 1.0;
                self.starts_on_plateau = true;
                if let SlowStartExit::Hystart { rule, has_ended } = &mut self.exit {
                    self.plateau = 0.0;
                    *has_ended = false;
                    rule.restart(congestion.now, congestion.in_flight_bytes);
                }
            }
        }
    }

    fn on_spurious_congestion(&mut self, window_bytes: u64, threshold_bytes: u64) {
        let threshold =
            if threshold_bytes == u64::MAX { f64::INFINITY } else { threshold_bytes as f64 / self.segment_bytes };
        self.window = self.window.max(window_bytes as f64 / self.segment_bytes);
        self.threshold = self.threshold.max(threshold);
    }

    fn on_recovery_ended(&mut self, _now: Nanoseconds, _in_flight_bytes: u64) {
        self.window = self.window.min(self.threshold).max(1.0);
    }

    fn on_idle(&mut self, now: Nanoseconds) {
        self.window = self.window.min(self.initial_window);
        match self.edition {
            Edition::Rfc9438 => self.epoch = None,
            Edition::Linux => self.stop_clock(now),
        }
    }

    fn window_bytes(&self) -> u64 {
        (self.window * self.segment_bytes) as u64
    }

    fn slow_start_threshold_bytes(&self) -> u64 {
        (self.threshold * self.segment_bytes) as u64 // as saturates: infinity is u64::MAX
    }
}

#[cfg(test)]
mod tests;

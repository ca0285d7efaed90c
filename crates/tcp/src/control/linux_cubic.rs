//! CUBIC as Linux has it (`net/ipv4/tcp_cubic.c`, behaviour of versions 5.8 to 6.18): RFC 9438 but for what follows.
//!
//! - Slow start opens by every segment acknowledged and ends by [`Hystart`], again after each timeout.
//! - Until the first loss, and after a timeout until the next, the window opens by at least a twentieth a round trip.
//! - The function looks ahead by the shortest round trip, not by the smoothed one.
//! - A loss leaves 0.7 of the window, not of what was in flight.
//! - The Reno-friendly estimate grows as slowly when it is back as before.
//!
//! Left out: undoing a reduction that turns out to be spurious.

use pepscope_path::{Nanoseconds, SECOND};

use super::hystart::Hystart;
use super::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings};

/// 717 / 1024.
const DECREASE: f64 = 717.0 / 1024.0;
/// 410 / 1024, in segments per cubed second.
const AGGRESSIVENESS: f64 = 410.0 / 1024.0;
/// Segments to be acknowledged for one more segment of the Reno-friendly estimate, in windows.
const FRIENDLY_WINDOWS: f64 = 15.0 / 8.0;
/// Segments to be acknowledged for one more of the window: at least, while nothing was ever lost at most, and where the
/// function stands still in windows.
const FASTEST: f64 = 2.0;
const SLOWEST_BEFORE_LOSS: f64 = 20.0;
const STANDSTILL_WINDOWS: f64 = 100.0;
/// After a loss round trips say nothing of an empty path for so long.
const UNTIMED_NS: Nanoseconds = SECOND;
const ROUND_TRIP_GAIN: f64 = 0.125; // RFC 6298, section 2.3

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start_ns: Nanoseconds,
    seen_ns: Nanoseconds,
    /// K, in seconds after the start, and the window there.
    plateau_s: f64,
    plateau: f64,
    /// The Reno-friendly estimate.
    friendly: f64,
}

/// The control. Windows are in segments.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    segment_bytes: f64,
    initial_window: f64,
    byte_counting_limit: f64,
    window: f64,
    threshold: f64,
    /// W_max; 0 while nothing was lost.
    window_at_loss: f64,
    epoch: Option<Epoch>,
    round_trip_s: Option<f64>,
    hystart: Hystart,
    /// HyStart has ended a slow start.
    is_found: bool,
}

impl LinuxCubic {
    /// At the start of a connection.
    #[must_use]
    pub fn new(settings: &ControlSettings) -> Self {
        let segment_bytes = f64::from(settings.maximum_segment_size.max(1));
        let initial_window = (settings.initial_window_bytes as f64 / segment_bytes).max(1.0);
        let threshold = match settings.initial_slow_start_threshold_bytes {
            u64::MAX => f64::INFINITY,
            bytes => bytes as f64 / segment_bytes,
        };
        let byte_counting_limit =
            settings.byte_counting_limit_segments.map_or(f64::INFINITY, |segments| f64::from(segments.max(1)));
        Self {
            segment_bytes,
            initial_window,
            byte_counting_limit,
            window: initial_window,
            threshold,
            window_at_loss: 0.0,
            epoch: None,
            round_trip_s: None,
            hystart: Hystart::default(),
            is_found: false,
        }
    }

    fn take_round_trip(&mut self, acknowledged: &Acknowledged, round_trip_time: Nanoseconds) {
        let sample_s = round_trip_time as f64 / SECOND as f64;
        let smoothed_s = self.round_trip_s.unwrap_or(sample_s);
        let smoothed_s = smoothed_s + ROUND_TRIP_GAIN * (sample_s - smoothed_s);
        self.round_trip_s = Some(smoothed_s);
        if self.epoch.is_some_and(|epoch| acknowledged.now.saturating_sub(epoch.start_ns) < UNTIMED_NS) {
            return;
        }
        self.hystart.note(round_trip_time);
        if !self.is_found && self.window < self.threshold {
            let rate_bytes_s = self.window * self.segment_bytes / smoothed_s.max(1e-9);
            if self.hystart.is_found(acknowledged, round_trip_time, self.window, rate_bytes_s) {
                self.is_found = true;
                self.threshold = self.window;
            }
        }
    }

    /// Whether the window counts as used: in slow start half of it is enough, since it doubles.
    fn is_used(&self, acknowledged: &Acknowledged) -> bool {
        acknowledged.is_window_limited
            || self.window < self.threshold
                && self.window * self.segment_bytes < 2.0 * acknowledged.in_flight_bytes as f64
    }

    /// Opens the window in slow start; segments that are left beyond the threshold.
    fn open_in_slow_start(&mut self, segments: f64) -> f64 {
        let opening = segments.min(self.byte_counting_limit);
        let opened = (self.window + opening).min(self.threshold);
        let left = (opening - (opened - self.window)).max(0.0);
        self.window = opened;
        left
    }

    fn open_in_avoidance(&mut self, now: Nanoseconds, segments: f64) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(now));
        epoch.seen_ns = now;
        let ahead_ns = self.hystart.shortest_ns().unwrap_or(0);
        let at_s = (now.saturating_sub(epoch.start_ns) + ahead_ns) as f64 / SECOND as f64;
        let distance_s = at_s - epoch.plateau_s;
        let target = epoch.plateau + AGGRESSIVENESS * distance_s * distance_s * distance_s;
        let mut each =
            if target > self.window { self.window / (target - self.window) } else { STANDSTILL_WINDOWS * self.window };
        if self.window_at_loss == 0.0 {
            each = each.min(SLOWEST_BEFORE_LOSS);
        }
        epoch.friendly += segments / (FRIENDLY_WINDOWS * self.window);
        if epoch.friendly > self.window {
            each = each.min(self.window / (epoch.friendly - self.window));
        }
        self.window += segments / each.max(FASTEST);
        self.epoch = Some(epoch);
    }

    fn begin_epoch(&self, now: Nanoseconds) -> Epoch {
        let missing = (self.window_at_loss - self.window).max(0.0);
        Epoch {
            start_ns: now,
            seen_ns: now,
            plateau_s: libm::cbrt(missing / AGGRESSIVENESS),
            plateau: self.window + missing,
            friendly: self.window,
        }
    }
}

impl CongestionControl for LinuxCubic {
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        self.hystart.count(acknowledged);
        if let Some(round_trip_time) = acknowledged.round_trip_time {
            self.take_round_trip(acknowledged, round_trip_time);
        }
        if acknowledged.in_recovery || acknowledged.newly_acknowledged_bytes == 0 {
            return;
        }
        if !self.is_used(acknowledged) {
            if let Some(epoch) = &mut self.epoch {
                epoch.start_ns += acknowledged.now.saturating_sub(epoch.seen_ns);
                epoch.seen_ns = acknowledged.now;
            }
            return;
        }
        let mut segments = acknowledged.newly_acknowledged_bytes as f64 / self.segment_bytes;
        if self.window < self.threshold {
            segments = self.open_in_slow_start(segments);
        }
        if segments > 0.0 && self.window >= self.threshold {
            self.open_in_avoidance(acknowledged.now, segments);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !congestion.is_repeated {
            let is_early = self.window < self.window_at_loss;
            self.window_at_loss = if is_early { self.window * (1.0 + DECREASE) / 2.0 } else { self.window };
            self.threshold = (self.window * DECREASE).max(2.0);
        }
        self.epoch = None;
        match congestion.cause {
            Cause::FastRetransmit | Cause::Mark => self.window = self.threshold,
            Cause::FastRetransmitWithoutRecovery | Cause::Timeout => {
                self.window = 1.0;
                self.window_at_loss = 0.0;
                self.is_found = false;
                self.hystart.restart(congestion.now, congestion.in_flight_bytes);
            }
        }
    }

    fn on_recovery_ended(&mut self, _now: Nanoseconds, _in_flight_bytes: u64) {
        self.window = self.window.min(self.threshold).max(1.0);
    }

    fn on_idle(&mut self, now: Nanoseconds) {
        self.window = self.window.min(self.initial_window);
        if let Some(epoch) = &mut self.epoch {
            epoch.start_ns += now.saturating_sub(epoch.seen_ns);
            epoch.seen_ns = now;
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
mod tests {
    use super::{LinuxCubic, DECREASE};
    use crate::control::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings};
    use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};

    const SEGMENT: u64 = 1000;

    fn cubic(window_segments: u64, threshold_bytes: u64) -> LinuxCubic {
        LinuxCubic::new(&ControlSettings {
            maximum_segment_size: 1000,
            initial_window_bytes: window_segments * SEGMENT,
            initial_slow_start_threshold_bytes: threshold_bytes,
            byte_counting_limit_segments: None,
        })
    }

    /// A window's worth of ACKs of two segments, spread over the round trip that begins at `start`.
    fn round(control: &mut LinuxCubic, start: Nanoseconds, round_trip_time: Nanoseconds) {
        let acks = control.window_bytes() / SEGMENT / 2;
        for index in 0..acks {
            control.on_acknowledged(&Acknowledged {
                now: start + index * round_trip_time / acks,
                newly_acknowledged_bytes: 2 * SEGMENT,
                newly_delivered_bytes: 2 * SEGMENT,
                delivered_bytes: 0,
                in_flight_bytes: control.window_bytes(),
                round_trip_time: Some(round_trip_time),
                rate_sample: None,
                marked: false,
                in_recovery: false,
                is_window_limited: true,
            });
        }
    }

    fn lose(control: &mut LinuxCubic, cause: Cause) {
        let in_flight_bytes = control.window_bytes();
        control.on_congestion(&Congestion { now: 0, cause, in_flight_bytes, is_repeated: false });
    }

    fn segments(control: &LinuxCubic) -> f64 {
        control.window_bytes() as f64 / SEGMENT as f64
    }

    #[test]
    fn slow_start_doubles_however_few_the_acknowledgements() {
        let mut control = cubic(4, u64::MAX);
        for (number, expected) in [8, 16].into_iter().enumerate() {
            round(&mut control, number as u64 * SECOND, SECOND);
            assert_eq!(control.window_bytes(), expected * SEGMENT);
        }
    }

    #[test]
    fn without_a_loss_the_window_opens_by_a_twentieth_a_round() {
        let mut control = cubic(100, 100 * SEGMENT);
        for number in 0..10 {
            round(&mut control, number * 10 * MILLISECOND, 10 * MILLISECOND);
        }
        let expected = 100.0 * 1.05f64.powi(10);
        assert!((segments(&control) - expected).abs() < 0.01 * expected, "{}", segments(&control));
    }

    #[test]
    fn after_a_loss_the_window_follows_the_function() {
        // 1000 segments fall to 700, K = cbrt(300 / 0.4) = 9.08 s: W(t) = 0.4 (t - 9.08)^3 + 1000.
        let table = [(4, 947.4), (6, 988.3), (8, 999.5), (10, 1000.3), (12, 1009.9), (14, 1047.5)];
        let mut control = cubic(1000, 0);
        lose(&mut control, Cause::FastRetransmit);
        assert!((segments(&control) - 1000.0 * DECREASE).abs() < 1.0);
        let mut reached = Vec::new();
        for number in 0..140 {
            round(&mut control, number * 100 * MILLISECOND, 100 * MILLISECOND);
            if number >= 39 && (number + 1) % 20 == 0 {
                reached.push(segments(&control));
            }
        }
        for ((second, expected), window) in table.into_iter().zip(reached) {
            assert!((window - expected).abs() < 0.005 * expected, "{window} instead of {expected} after {second} s");
        }
    }

    #[test]
    fn a_small_window_grows_by_eight_fifteenths_of_a_segment_a_round() {
        let mut control = cubic(20, 0);
        lose(&mut control, Cause::FastRetransmit);
        for number in 0..30 {
            round(&mut control, number * 10 * MILLISECOND, 10 * MILLISECOND);
        }
        let expected = 14.0 + 30.0 * 8.0 / 15.0;
        assert!((segments(&control) - expected).abs() < 1.5, "{} instead of {expected}", segments(&control));
    }

    #[test]
    fn a_flow_that_did_not_get_back_gives_up_part_of_its_plateau() {
        let mut control = cubic(100, 0);
        lose(&mut control, Cause::FastRetransmit);
        lose(&mut control, Cause::FastRetransmit);
        assert!((control.window_at_loss - 100.0 * DECREASE * (1.0 + DECREASE) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn after_a_timeout_slow_start_goes_to_the_threshold_and_the_plateau_is_forgotten() {
        let mut control = cubic(100, u64::MAX);
        lose(&mut control, Cause::Timeout);
        assert_eq!(control.window_bytes(), SEGMENT);
        assert_eq!(control.slow_start_threshold_bytes(), (100.0 * DECREASE * SEGMENT as f64) as u64);
        assert_eq!(control.window_at_loss, 0.0);
    }

    #[test]
    fn growing_round_trips_end_slow_start_before_a_loss() {
        let mut control = cubic(10, u64::MAX);
        for number in 0..8 {
            let queueing = if number < 3 { 0 } else { (number - 2) * 8 * MILLISECOND };
            round(&mut control, number * 200 * MILLISECOND, 40 * MILLISECOND + queueing);
        }
        assert!(control.slow_start_threshold_bytes() <= 160 * SEGMENT, "{}", control.slow_start_threshold_bytes());
    }
}

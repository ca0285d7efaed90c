//! CUBIC (RFC 9438): the window is a cubic function of the time since congestion avoidance began.
//!
//! Left out: undoing a reduction that turns out to be spurious, which the RFC leaves open (section 4.9).

use pepscope_path::{Nanoseconds, SECOND};

use super::hystart_plus_plus::HystartPlusPlus;
use super::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings};

/// beta_cubic (section 4.6).
const DECREASE: f64 = 0.7;
/// C in segments per cubed second (section 5.1).
const AGGRESSIVENESS: f64 = 0.4;
/// alpha_cubic: with it the Reno-friendly estimate has the mean window of Reno's half and one (equation 4).
const FRIENDLY_INCREASE: f64 = 3.0 * (1.0 - DECREASE) / (1.0 + DECREASE);
/// Largest target, in windows (section 4.2).
const TARGET_LIMIT: f64 = 1.5;
const ROUND_TRIP_GAIN: f64 = 0.125; // RFC 6298, section 2.3

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    /// Later than the true start by the time in which the window limited nothing (section 5.8).
    start_ns: Nanoseconds,
    seen_ns: Nanoseconds,
    /// K: when the function reaches the plateau, in seconds after the start.
    plateau_s: f64,
    /// W_est in segments.
    friendly: f64,
}

/// The control. Windows are in segments here, as in the RFC.
#[derive(Clone, Debug)]
pub struct Cubic {
    segment_bytes: f64,
    initial_window: f64,
    byte_counting_limit: Option<f64>,
    window: f64,
    threshold: f64,
    /// W_max.
    plateau: f64,
    /// cwnd_prior.
    window_before: f64,
    epoch: Option<Epoch>,
    /// The next stage starts on its plateau: after a timeout, or a slow start that ended without a loss (sections
    /// 4.8 and 4.10).
    starts_on_plateau: bool,
    round_trip_s: Option<f64>,
    hystart: Option<HystartPlusPlus>,
}

impl Cubic {
    /// With `hystart`, the first slow start ends when round trips grow (RFC 9406).
    #[must_use]
    pub fn new(settings: &ControlSettings, hystart: bool) -> Self {
        let segment_bytes = f64::from(settings.maximum_segment_size.max(1));
        let initial_window = (settings.initial_window_bytes as f64 / segment_bytes).max(1.0);
        let threshold = match settings.initial_slow_start_threshold_bytes {
            u64::MAX => f64::INFINITY,
            bytes => bytes as f64 / segment_bytes,
        };
        Self {
            segment_bytes,
            initial_window,
            byte_counting_limit: settings.byte_counting_limit_segments.map(|segments| f64::from(segments.max(1))),
            window: initial_window,
            threshold,
            plateau: 0.0,
            window_before: initial_window,
            epoch: None,
            starts_on_plateau: true,
            round_trip_s: None,
            hystart: hystart.then(HystartPlusPlus::default),
        }
    }

    fn open_in_slow_start(&mut self, acknowledged: &Acknowledged, segments: f64) {
        let opening = match &mut self.hystart {
            Some(hystart) if self.threshold.is_infinite() => {
                let bytes = hystart.on_acknowledged(acknowledged, self.segment_bytes as u64) as f64;
                if hystart.is_done() {
                    self.threshold = self.window;
                    self.window_before = self.window;
                    return;
                }
                bytes / self.segment_bytes
            }
            _ => segments.min(self.byte_counting_limit.unwrap_or(1.0)),
        };
        self.window += opening;
    }

    fn open_in_avoidance(&mut self, acknowledged: &Acknowledged, segments: f64) {
        let now = acknowledged.now;
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(now),
        };
        let round_trip_s = self.round_trip_s.unwrap_or(0.0);
        let at_s = now.saturating_sub(epoch.start_ns) as f64 / SECOND as f64;

        // Equation 4. Once it has made up for the decrease it grows as Reno does.
        let increase = if epoch.friendly < self.window_before { FRIENDLY_INCREASE } else { 1.0 };
        epoch.friendly += increase * segments / self.window;

        let cubic = self.cubic_at(at_s, epoch.plateau_s);
        if cubic < epoch.friendly {
            self.window = self.window.max(epoch.friendly);
        } else {
            let target =
                self.cubic_at(at_s + round_trip_s, epoch.plateau_s).clamp(self.window, TARGET_LIMIT * self.window);
            // The RFC has one segment an ACK in mind; an ACK of several counts for each.
            self.window += (target - self.window) / self.window * segments;
        }
        self.epoch = Some(epoch);
    }

    fn begin_epoch(&mut self, now: Nanoseconds) -> Epoch {
        if self.starts_on_plateau {
            self.plateau = self.window;
            self.starts_on_plateau = false;
        }
        // Equation 2.
        let plateau_s = libm::cbrt((self.plateau - self.window).max(0.0) / AGGRESSIVENESS);
        Epoch { start_ns: now, seen_ns: now, plateau_s, friendly: self.window }
    }

    /// Equation 1.
    fn cubic_at(&self, at_s: f64, plateau_s: f64) -> f64 {
        let distance_s = at_s - plateau_s;
        AGGRESSIVENESS * distance_s * distance_s * distance_s + self.plateau
    }

    fn reduce(&mut self, in_flight: f64) {
        // Section 4.7: a flow that did not get back to where it was leaves room to a new one.
        self.plateau = if self.window < self.plateau { self.window * (1.0 + DECREASE) / 2.0 } else { self.window };
        self.window_before = self.window;
        self.threshold = (in_flight * DECREASE).max(2.0);
    }
}

impl CongestionControl for Cubic {
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        if let Some(round_trip_time) = acknowledged.round_trip_time {
            let sample_s = round_trip_time as f64 / SECOND as f64;
            let smoothed_s = self.round_trip_s.unwrap_or(sample_s);
            self.round_trip_s = Some(smoothed_s + ROUND_TRIP_GAIN * (sample_s - smoothed_s));
        }
        if acknowledged.in_recovery {
            return;
        }
        if let Some(epoch) = &mut self.epoch {
            if !acknowledged.is_window_limited {
                epoch.start_ns += acknowledged.now.saturating_sub(epoch.seen_ns);
            }
            epoch.seen_ns = acknowledged.now;
        }
        if !acknowledged.is_window_limited || acknowledged.newly_acknowledged_bytes == 0 {
            return;
        }
        let segments = acknowledged.newly_acknowledged_bytes as f64 / self.segment_bytes;
        if self.window < self.threshold {
            self.open_in_slow_start(acknowledged, segments);
        } else {
            self.open_in_avoidance(acknowledged, segments);
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
            }
        }
    }

    fn on_recovery_ended(&mut self, _now: Nanoseconds, _in_flight_bytes: u64) {
        self.window = self.window.min(self.threshold).max(1.0);
    }

    fn on_idle(&mut self, _now: Nanoseconds) {
        self.window = self.window.min(self.initial_window);
        self.epoch = None;
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
    use super::{Cubic, DECREASE};
    use crate::control::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings};
    use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};

    const SEGMENT: u64 = 1000;

    fn cubic(window_segments: u64, threshold_bytes: u64, hystart: bool) -> Cubic {
        let settings = ControlSettings {
            maximum_segment_size: 1000,
            initial_window_bytes: window_segments * SEGMENT,
            initial_slow_start_threshold_bytes: threshold_bytes,
            byte_counting_limit_segments: None,
        };
        Cubic::new(&settings, hystart)
    }

    fn acknowledge(control: &mut Cubic, now: Nanoseconds, round_trip_time: Nanoseconds, is_window_limited: bool) {
        let acknowledged = Acknowledged {
            now,
            newly_acknowledged_bytes: SEGMENT,
            newly_delivered_bytes: SEGMENT,
            delivered_bytes: 0,
            in_flight_bytes: control.window_bytes(),
            round_trip_time: Some(round_trip_time),
            rate_sample: None,
            marked: false,
            in_recovery: false,
            is_window_limited,
        };
        control.on_acknowledged(&acknowledged);
    }

    /// A window's worth of ACKs, spread over the round trip that begins at `start`.
    fn round(control: &mut Cubic, start: Nanoseconds, round_trip_time: Nanoseconds) {
        let segments = control.window_bytes() / SEGMENT;
        for index in 0..segments {
            acknowledge(control, start + index * round_trip_time / segments, round_trip_time, true);
        }
    }

    fn lose(control: &mut Cubic, cause: Cause, in_flight_bytes: u64) {
        control.on_congestion(&Congestion { now: 0, cause, in_flight_bytes, is_repeated: false });
    }

    #[test]
    fn after_a_loss_the_window_follows_the_cubic_of_equation_1() {
        // W_max = 1000 segments, the window falls to 700, K = cbrt(300 / 0.4) = 9.0856 s.
        // By hand: W(t) = 0.4 (t - 9.0856)^3 + 1000.
        let table = [(4, 947.39), (6, 988.25), (8, 999.49), (10, 1000.31), (12, 1009.9), (14, 1047.5), (16, 1132.2)];
        let mut control = cubic(1000, 0, false);
        lose(&mut control, Cause::FastRetransmit, 1000 * SEGMENT);
        assert_eq!(control.window_bytes(), 700 * SEGMENT);
        let round_trip_time = 100 * MILLISECOND;
        let mut reached = Vec::new();
        for number in 0..160 {
            round(&mut control, number * round_trip_time, round_trip_time);
            if number >= 39 && (number + 1) % 20 == 0 {
                reached.push(control.window_bytes() as f64 / SEGMENT as f64);
            }
        }
        assert_eq!(table.len(), reached.len());
        for ((second, expected), window) in table.into_iter().zip(reached) {
            assert!((window - expected).abs() < 0.005 * expected, "{window} instead of {expected} after {second} s");
        }
    }

    #[test]
    fn a_small_window_grows_as_a_reno_of_equal_mean_would() {
        // 20 segments over 10 ms: the cubic has 6 segments in 2.5 s to make up and stands still meanwhile.
        let mut control = cubic(20, 0, false);
        lose(&mut control, Cause::FastRetransmit, 20 * SEGMENT);
        for number in 0..10 {
            round(&mut control, number * 10 * MILLISECOND, 10 * MILLISECOND);
        }
        let alpha = 3.0 * 0.3 / 1.7;
        let friendly = 14.0 + 10.0 * alpha;
        let window = control.window_bytes() as f64 / SEGMENT as f64;
        assert!((window - friendly).abs() < 0.5, "{window} instead of {friendly}");
    }

    #[test]
    fn the_friendly_estimate_grows_a_segment_a_round_once_it_is_back() {
        let mut control = cubic(20, 0, false);
        lose(&mut control, Cause::FastRetransmit, 20 * SEGMENT);
        let mut windows = Vec::new();
        for number in 0..40 {
            round(&mut control, number * 10 * MILLISECOND, 10 * MILLISECOND);
            windows.push(control.window_bytes() as f64 / SEGMENT as f64);
        }
        let slope = (windows[39] - windows[29]) / 10.0;
        assert!((slope - 1.0).abs() < 0.1, "{slope}");
    }

    #[test]
    fn the_window_never_grows_by_more_than_half_a_round_trip() {
        let mut control = cubic(10, 0, false);
        lose(&mut control, Cause::FastRetransmit, 6 * SEGMENT);
        acknowledge(&mut control, 0, SECOND, true);
        let before = control.window;
        acknowledge(&mut control, 100 * SECOND, SECOND, true);
        assert!((control.window - before - 0.5).abs() < 1e-9, "half a segment for the ACK of a segment");
    }

    #[test]
    fn a_flow_that_did_not_get_back_gives_up_part_of_its_plateau() {
        let mut control = cubic(100, 0, false);
        lose(&mut control, Cause::FastRetransmit, 100 * SEGMENT);
        assert_eq!(control.plateau, 100.0);
        lose(&mut control, Cause::FastRetransmit, 70 * SEGMENT);
        assert!((control.plateau - 70.0 * (1.0 + DECREASE) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn after_a_timeout_avoidance_starts_on_its_plateau() {
        let mut control = cubic(100, u64::MAX, false);
        lose(&mut control, Cause::Timeout, 100 * SEGMENT);
        assert_eq!((control.window_bytes(), control.slow_start_threshold_bytes()), (SEGMENT, 70 * SEGMENT));
        for number in 0..7 {
            round(&mut control, number * SECOND, SECOND);
        }
        let epoch = control.epoch.expect("a stage of avoidance");
        assert_eq!(epoch.plateau_s, 0.0);
        assert!((70.0..71.0).contains(&control.plateau), "{}", control.plateau);
    }

    #[test]
    fn time_without_anything_to_send_does_not_count() {
        let mut idle = cubic(100, 0, false);
        let mut busy = cubic(100, 0, false);
        for control in [&mut idle, &mut busy] {
            lose(control, Cause::FastRetransmit, 100 * SEGMENT);
            acknowledge(control, 0, 100 * MILLISECOND, true);
        }
        for second in 1..=50 {
            acknowledge(&mut idle, second * SECOND, 100 * MILLISECOND, false);
        }
        acknowledge(&mut idle, 50 * SECOND + 100 * MILLISECOND, 100 * MILLISECOND, true);
        acknowledge(&mut busy, 100 * MILLISECOND, 100 * MILLISECOND, true);
        assert_eq!(idle.window_bytes(), busy.window_bytes());
    }

    #[test]
    fn hystart_ends_slow_start_before_a_loss() {
        let mut plain = cubic(10, u64::MAX, false);
        let mut careful = cubic(10, u64::MAX, true);
        for control in [&mut plain, &mut careful] {
            for number in 0..14 {
                let queueing = if number < 3 { 0 } else { (number - 2) * 8 * MILLISECOND };
                round(control, number * 200 * MILLISECOND, 40 * MILLISECOND + queueing);
            }
        }
        assert_eq!(plain.slow_start_threshold_bytes(), u64::MAX);
        assert!(careful.slow_start_threshold_bytes() < plain.window_bytes() / 4);
        assert!(careful.window_bytes() >= careful.slow_start_threshold_bytes());
    }

    #[test]
    fn the_threshold_is_never_below_two_segments() {
        let mut control = cubic(1, u64::MAX, false);
        lose(&mut control, Cause::FastRetransmit, SEGMENT);
        assert_eq!(control.slow_start_threshold_bytes(), 2 * SEGMENT);
    }
}

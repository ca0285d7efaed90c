//! TCP-Jersey: the window from an estimate of the available bandwidth, and link errors distinguished from congestion by marks.
//!
//! Seed 002, section II-E, after Xu, Tian and Ansari, "TCP-Jersey for wireless IP communications" (IEEE JSAC 22, 2004).
//! Routers mark every packet while their mean queue is above a threshold, and the receiver echoes each mark. A duplicate
//! ACK without the echo is a link error. What the seed leaves to its reference is decided so: between warnings the
//! window opens as Reno's; a warning is heeded once a round trip and never opens the window; after a timeout the sender
//! starts from one segment, with the estimated window as its threshold.

use pepscope_path::{Nanoseconds, SECOND};

use super::{Acknowledged, Cause, Congestion, CongestionControl, ControlKind, ControlSettings, LossMeaning, Reno};

pub(super) const KINDS: &[ControlKind] =
    &[ControlKind::new("jersey", "TCP-Jersey; both ends need `ecn = \"every-packet\"`", |settings| {
        Box::new(Jersey::new(settings))
    })];

const ROUND_TRIP_GAIN: f64 = 0.125; // RFC 6298, section 2.3

/// The available-bandwidth estimate: R_n = (RTT R_(n-1) + L_n) / ((t_n - t_(n-1)) + RTT), in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BandwidthEstimate {
    rate_bytes_s: f64,
    round_trip_s: f64,
    last_ns: Option<Nanoseconds>,
}

impl BandwidthEstimate {
    /// Takes the ACK of `bytes` at `now`, with its round-trip time if it gave one. `in_flight_bytes` before the first
    /// ACK are what one round trip carried: R_0 = flight / RTT.
    pub fn acknowledge(
        &mut self,
        now: Nanoseconds,
        bytes: u64,
        in_flight_bytes: u64,
        round_trip_time: Option<Nanoseconds>,
    ) {
        if let Some(round_trip_time) = round_trip_time {
            let sample_s = round_trip_time as f64 / SECOND as f64;
            let smoothed_s = if self.round_trip_s > 0.0 { self.round_trip_s } else { sample_s };
            self.round_trip_s = smoothed_s + ROUND_TRIP_GAIN * (sample_s - smoothed_s);
        }
        if self.round_trip_s <= 0.0 {
            return;
        }
        self.rate_bytes_s = match self.last_ns {
            None => in_flight_bytes as f64 / self.round_trip_s,
            Some(last_ns) => {
                let gap_s = now.saturating_sub(last_ns) as f64 / SECOND as f64;
                (self.round_trip_s * self.rate_bytes_s + bytes as f64) / (gap_s + self.round_trip_s)
            }
        };
        self.last_ns = Some(now);
    }

    /// R_n.
    #[must_use]
    pub fn rate_bytes_s(&self) -> f64 {
        self.rate_bytes_s
    }

    /// RTT R_n: the optimum window.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        (self.round_trip_s * self.rate_bytes_s) as u64
    }

    fn round_trip_ns(&self) -> Nanoseconds {
        (self.round_trip_s * SECOND as f64) as Nanoseconds
    }
}

/// The control.
#[derive(Clone, Debug)]
pub struct Jersey {
    /// What opens the window.
    growth: Reno,
    segment_bytes: u64,
    estimate: BandwidthEstimate,
    duplicate_was_marked: bool,
    next_warning_ns: Nanoseconds,
}

impl Jersey {
    #[must_use]
    pub fn new(settings: &ControlSettings) -> Self {
        Self {
            growth: Reno::new(settings),
            segment_bytes: u64::from(settings.maximum_segment_size.max(1)),
            estimate: BandwidthEstimate::default(),
            duplicate_was_marked: false,
            next_warning_ns: 0,
        }
    }

    #[must_use]
    pub fn estimate(&self) -> &BandwidthEstimate {
        &self.estimate
    }

    fn observe(&mut self, acknowledged: &Acknowledged) {
        let bytes = acknowledged.newly_delivered_bytes;
        let (now, in_flight_bytes) = (acknowledged.now, acknowledged.in_flight_bytes);
        self.estimate.acknowledge(now, bytes, in_flight_bytes, acknowledged.round_trip_time);
    }

    /// The optimum window, at least two segments as a threshold is elsewhere (RFC 5681, equation 4).
    fn optimum_bytes(&self) -> u64 {
        self.estimate.window_bytes().max(2 * self.segment_bytes)
    }

    fn set_from_estimate(&mut self) {
        let optimum_bytes = self.optimum_bytes();
        self.growth.set_window(optimum_bytes.min(self.growth.window_bytes()), optimum_bytes);
    }
}

impl CongestionControl for Jersey {
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        self.observe(acknowledged);
        if acknowledged.marked && !acknowledged.in_recovery {
            if acknowledged.now >= self.next_warning_ns {
                self.next_warning_ns = acknowledged.now.saturating_add(self.estimate.round_trip_ns());
                self.set_from_estimate();
            }
        } else {
            self.growth.on_acknowledged(acknowledged);
        }
    }

    fn on_duplicate(&mut self, acknowledged: &Acknowledged) {
        self.observe(acknowledged);
        self.duplicate_was_marked = acknowledged.marked;
    }

    fn judge_loss(&self) -> LossMeaning {
        if self.duplicate_was_marked {
            LossMeaning::Congestion
        } else {
            LossMeaning::Corruption
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.cause {
            Cause::FastRetransmit | Cause::Mark => self.set_from_estimate(),
            Cause::FastRetransmitWithoutRecovery | Cause::Timeout => {
                let threshold_bytes = if congestion.is_repeated {
                    self.growth.slow_start_threshold_bytes()
                } else {
                    self.optimum_bytes()
                };
                self.growth.set_window(self.segment_bytes, threshold_bytes);
            }
        }
    }

    fn on_idle(&mut self, now: Nanoseconds) {
        self.growth.on_idle(now);
    }

    fn window_bytes(&self) -> u64 {
        self.growth.window_bytes()
    }

    fn slow_start_threshold_bytes(&self) -> u64 {
        self.growth.slow_start_threshold_bytes()
    }

    fn estimated_bandwidth_bytes_s(&self) -> Option<u64> {
        Some(self.estimate.rate_bytes_s() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::{BandwidthEstimate, Jersey};
    use crate::control::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings, LossMeaning};
    use pepscope_path::{Nanoseconds, MILLISECOND};

    const SEGMENT: u64 = 1000;

    fn jersey() -> Jersey {
        Jersey::new(&ControlSettings {
            maximum_segment_size: 1000,
            initial_window_bytes: 2 * SEGMENT,
            initial_slow_start_threshold_bytes: u64::MAX,
            byte_counting_limit_segments: None,
            is_paced: false,
        })
    }

    fn acknowledged(now: Nanoseconds, marked: bool) -> Acknowledged {
        Acknowledged {
            now,
            newly_acknowledged_bytes: SEGMENT,
            newly_delivered_bytes: SEGMENT,
            delivered_bytes: 0,
            in_flight_bytes: 10 * SEGMENT,
            round_trip_time: Some(100 * MILLISECOND),
            rate_sample: None,
            loss_sample: None,
            marked,
            in_recovery: false,
            is_window_limited: true,
        }
    }

    #[test]
    fn the_estimate_follows_the_equation_by_hand() {
        let mut estimate = BandwidthEstimate::default();
        let round_trip_time = Some(100 * MILLISECOND);
        estimate.acknowledge(0, 500, 1000, round_trip_time);
        assert_eq!(estimate.rate_bytes_s(), 10_000.0); // 1000 / 0.1
        estimate.acknowledge(10 * MILLISECOND, 1000, 9000, round_trip_time);
        // (0.1 * 10000 + 1000) / (0.01 + 0.1)
        assert!((estimate.rate_bytes_s() - 18_181.818).abs() < 0.001);
        estimate.acknowledge(60 * MILLISECOND, 2000, 9000, round_trip_time);
        // (0.1 * 18181.818 + 2000) / (0.05 + 0.1)
        assert!((estimate.rate_bytes_s() - 25_454.545).abs() < 0.001);
        assert_eq!(estimate.window_bytes(), 2545); // 0.1 * 25454.545
    }

    #[test]
    fn steady_acknowledgements_are_estimated_at_their_rate() {
        let mut estimate = BandwidthEstimate::default();
        for number in 0..2_000 {
            estimate.acknowledge(number * MILLISECOND, 1500, 0, Some(100 * MILLISECOND));
        }
        assert!((estimate.rate_bytes_s() - 1.5e6).abs() < 1.0, "{}", estimate.rate_bytes_s());
        assert!(estimate.window_bytes().abs_diff(150_000) <= 1);
    }

    #[test]
    fn a_duplicate_without_a_mark_is_a_link_error_and_keeps_the_window() {
        let mut control = jersey();
        control.on_acknowledged(&acknowledged(0, false));
        let before = control.window_bytes();
        control.on_duplicate(&acknowledged(MILLISECOND, false));
        assert_eq!(control.judge_loss(), LossMeaning::Corruption);
        assert_eq!(control.window_bytes(), before);
    }

    #[test]
    fn a_duplicate_with_a_mark_sets_the_window_from_the_estimate() {
        let mut control = jersey();
        for number in 0..20 {
            control.on_acknowledged(&acknowledged(number * 20 * MILLISECOND, false));
        }
        assert_eq!(control.window_bytes(), 22 * SEGMENT);
        control.on_duplicate(&acknowledged(400 * MILLISECOND, true));
        assert_eq!(control.judge_loss(), LossMeaning::Congestion);
        let congestion = Congestion {
            now: 400 * MILLISECOND,
            cause: Cause::FastRetransmit,
            in_flight_bytes: 22 * SEGMENT,
            is_repeated: false,
        };
        control.on_congestion(&congestion);
        // 1000 bytes every 20 ms are 5000 in 100 ms. R_0 began with 10000, and each of 20 ACKs left 0.1 / 0.12 of the
        // difference: 5000 + 5000 (5 / 6)^20.
        let optimum = control.estimate().window_bytes();
        assert!(optimum.abs_diff(5_130) <= 1, "{optimum}");
        assert_eq!(control.window_bytes(), optimum);
        assert_eq!(control.slow_start_threshold_bytes(), optimum);
    }

    #[test]
    fn warnings_are_heeded_once_a_round_trip_and_never_open_the_window() {
        let mut control = jersey();
        for number in 0..20 {
            control.on_acknowledged(&acknowledged(number * 20 * MILLISECOND, false));
        }
        control.on_acknowledged(&acknowledged(400 * MILLISECOND, true));
        let warned = control.window_bytes();
        assert!(warned < 6 * SEGMENT);
        control.on_acknowledged(&acknowledged(401 * MILLISECOND, true));
        control.on_acknowledged(&acknowledged(402 * MILLISECOND, true));
        assert_eq!(control.window_bytes(), warned);
        for number in 0..50 {
            control.on_acknowledged(&acknowledged((500 + number) * MILLISECOND, true));
            assert!(control.window_bytes() <= warned);
        }
    }

    #[test]
    fn a_timeout_restarts_from_one_segment_with_the_estimate_as_threshold() {
        let mut control = jersey();
        for number in 0..20 {
            control.on_acknowledged(&acknowledged(number * 20 * MILLISECOND, false));
        }
        let optimum = control.estimate().window_bytes();
        let mut congestion = Congestion { now: 0, cause: Cause::Timeout, in_flight_bytes: SEGMENT, is_repeated: false };
        control.on_congestion(&congestion);
        assert_eq!((control.window_bytes(), control.slow_start_threshold_bytes()), (SEGMENT, optimum));
        control.on_duplicate(&acknowledged(900 * MILLISECOND, false));
        congestion.is_repeated = true;
        control.on_congestion(&congestion);
        assert_eq!(control.slow_start_threshold_bytes(), optimum);
    }
}

//! Additive increase, multiplicative decrease (RFC 5681): the control of Tahoe, Reno, NewReno and SACK senders.

use pepscope_path::Nanoseconds;

use super::{Acknowledged, Cause, Congestion, CongestionControl, ControlKind, ControlSettings};

/// Additive increase, multiplicative decrease.
pub const RENO: ControlKind =
    ControlKind::new("reno", "additive increase, multiplicative decrease (RFC 5681)", |settings| {
        Box::new(Reno::new(settings))
    });

pub(super) const KINDS: &[ControlKind] = &[RENO];

/// Slow start and congestion avoidance (RFC 5681, section 3.1).
#[derive(Clone, Debug)]
pub struct Reno {
    segment_bytes: u64,
    initial_window_bytes: u64,
    byte_counting_limit: Option<u64>,
    window_bytes: u64,
    threshold_bytes: u64,
    /// Segments' worth of credit towards the next byte in congestion avoidance: keeps what integer division leaves over.
    remainder: u64,
}

impl Reno {
    #[must_use]
    pub fn new(settings: &ControlSettings) -> Self {
        let segment_bytes = u64::from(settings.maximum_segment_size.max(1));
        Self {
            segment_bytes,
            initial_window_bytes: settings.initial_window_bytes.max(segment_bytes),
            byte_counting_limit: settings
                .byte_counting_limit_segments
                .map(|segments| u64::from(segments.max(1)) * segment_bytes),
            window_bytes: settings.initial_window_bytes.max(segment_bytes),
            threshold_bytes: settings.initial_slow_start_threshold_bytes,
            remainder: 0,
        }
    }

    /// Sets the window, for a control that opens it as Reno does and reduces it by a rule of its own.
    pub(super) fn set_window(&mut self, window_bytes: u64, threshold_bytes: u64) {
        self.window_bytes = window_bytes.max(self.segment_bytes);
        self.threshold_bytes = threshold_bytes;
        self.remainder = 0;
    }

    /// Half of what was in flight, at least two segments (RFC 5681, equation 4).
    fn halve(&mut self, in_flight_bytes: u64) {
        self.threshold_bytes = (in_flight_bytes / 2).max(2 * self.segment_bytes);
        self.remainder = 0;
    }
}

impl CongestionControl for Reno {
    #[inline(always)]
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        if acknowledged.in_recovery || !acknowledged.is_window_limited {
            return;
        }
        let counted = match self.byte_counting_limit {
            Some(limit) if self.window_bytes < self.threshold_bytes => acknowledged.newly_acknowledged_bytes.min(limit),
            Some(_) => acknowledged.newly_acknowledged_bytes,
            None => acknowledged.newly_acknowledged_bytes.min(self.segment_bytes),
        };
        if self.window_bytes < self.threshold_bytes {
            self.window_bytes = self.window_bytes.saturating_add(counted);
            return;
        }
        // RFC 5681, equation 3: a segment a window. An ACK of less than a segment still counts for one (ibid.).
        let credit = if self.byte_counting_limit.is_some() { counted } else { self.segment_bytes };
        self.remainder += credit * self.segment_bytes;
        if self.remainder >= self.window_bytes {
            let increase = self.remainder / self.window_bytes;
            self.remainder -= increase * self.window_bytes;
            self.window_bytes += increase;
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !congestion.is_repeated {
            self.halve(congestion.in_flight_bytes);
        }
        self.window_bytes = match congestion.cause {
            Cause::FastRetransmit | Cause::Mark => self.threshold_bytes,
            Cause::FastRetransmitWithoutRecovery | Cause::Timeout => self.segment_bytes,
        };
    }

    fn on_spurious_congestion(&mut self, window_bytes: u64, threshold_bytes: u64) {
        self.window_bytes = self.window_bytes.max(window_bytes);
        self.threshold_bytes = self.threshold_bytes.max(threshold_bytes);
    }

    fn on_recovery_ended(&mut self, _now: Nanoseconds, _in_flight_bytes: u64) {
        self.window_bytes = self.window_bytes.min(self.threshold_bytes);
    }

    fn on_idle(&mut self, _now: Nanoseconds) {
        self.window_bytes = self.window_bytes.min(self.initial_window_bytes);
    }

    #[inline]
    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    fn slow_start_threshold_bytes(&self) -> u64 {
        self.threshold_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings, Reno};

    const SEGMENT: u64 = 1000;

    fn reno(threshold_bytes: u64, byte_counting_limit_segments: Option<u32>) -> Reno {
        Reno::new(&ControlSettings {
            maximum_segment_size: 1000,
            initial_window_bytes: 2 * SEGMENT,
            initial_slow_start_threshold_bytes: threshold_bytes,
            byte_counting_limit_segments,
            is_paced: false,
        })
    }

    fn acknowledge(control: &mut Reno, bytes: u64) {
        let acknowledged = Acknowledged {
            now: 0,
            newly_acknowledged_bytes: bytes,
            newly_delivered_bytes: bytes,
            delivered_bytes: bytes,
            in_flight_bytes: control.window_bytes(),
            round_trip_time: None,
            rate_sample: None,
            loss_sample: None,
            marked: false,
            in_recovery: false,
            is_window_limited: true,
        };
        control.on_acknowledged(&acknowledged);
    }

    fn congestion(cause: Cause, in_flight_bytes: u64, is_repeated: bool) -> Congestion {
        Congestion { now: 0, cause, in_flight_bytes, is_repeated }
    }

    #[test]
    fn slow_start_opens_a_segment_an_acknowledgement() {
        let mut control = reno(u64::MAX, None);
        acknowledge(&mut control, SEGMENT);
        acknowledge(&mut control, 2 * SEGMENT);
        assert_eq!(control.window_bytes(), 4 * SEGMENT);
    }

    #[test]
    fn slow_start_that_counts_bytes_opens_up_to_its_limit() {
        let mut control = reno(u64::MAX, Some(2));
        acknowledge(&mut control, 5 * SEGMENT);
        assert_eq!(control.window_bytes(), 4 * SEGMENT);
    }

    #[test]
    fn avoidance_opens_a_segment_a_window() {
        let mut control = reno(0, None);
        for _ in 0..2 {
            acknowledge(&mut control, SEGMENT);
        }
        assert!((2_800..=3 * SEGMENT).contains(&control.window_bytes()), "{}", control.window_bytes());
    }

    #[test]
    fn a_fast_retransmit_halves_what_was_in_flight() {
        let mut control = reno(u64::MAX, None);
        control.on_congestion(&congestion(Cause::FastRetransmit, 20 * SEGMENT, false));
        assert_eq!((control.window_bytes(), control.slow_start_threshold_bytes()), (10 * SEGMENT, 10 * SEGMENT));
    }

    #[test]
    fn a_second_timeout_keeps_the_threshold() {
        let mut control = reno(u64::MAX, None);
        control.on_congestion(&congestion(Cause::Timeout, 20 * SEGMENT, false));
        control.on_congestion(&congestion(Cause::Timeout, SEGMENT, true));
        assert_eq!((control.window_bytes(), control.slow_start_threshold_bytes()), (SEGMENT, 10 * SEGMENT));
    }

    #[test]
    fn a_window_that_limits_nothing_does_not_open() {
        let mut control = reno(u64::MAX, None);
        let before = control.window_bytes();
        control.on_acknowledged(&Acknowledged {
            now: 0,
            newly_acknowledged_bytes: SEGMENT,
            newly_delivered_bytes: SEGMENT,
            delivered_bytes: SEGMENT,
            in_flight_bytes: SEGMENT,
            round_trip_time: None,
            rate_sample: None,
            loss_sample: None,
            marked: false,
            in_recovery: false,
            is_window_limited: false,
        });
        assert_eq!(control.window_bytes(), before);
    }
}

//! The retransmission timeout (RFC 6298) and Karn's backoff.

use pepscope_path::{Nanoseconds, SECOND};

use crate::settings::{RetransmissionEstimator, RetransmissionSettings};

/// What the timeout becomes for data if a SYN had to be sent again (RFC 6298, rule 5.7).
const AFTER_LOST_SYN: Nanoseconds = 3 * SECOND;

/// Smoothed round-trip time, its variation and the timeout that follows from them.
#[derive(Clone, Debug)]
pub(crate) struct RetransmissionTimer {
    settings: RetransmissionSettings,
    smoothed: Option<Nanoseconds>,
    /// RTTVAR of RFC 6298; with [`RetransmissionEstimator::Linux`] what is added to the smoothed round-trip time.
    variation: Nanoseconds,
    /// Linux's mean deviation (mdev), and its largest in this round trip (mdev_max).
    deviation: Nanoseconds,
    largest_deviation: Nanoseconds,
    timeout: Nanoseconds,
}

impl RetransmissionTimer {
    pub fn new(settings: RetransmissionSettings) -> Self {
        Self { settings, smoothed: None, variation: 0, deviation: 0, largest_deviation: 0, timeout: settings.initial }
    }

    /// Whether each ACK's sample counts, not only one a round trip.
    #[inline]
    pub fn takes_every_sample(&self) -> bool {
        self.settings.estimator != RetransmissionEstimator::Rfc6298
    }

    /// Takes one sample (RFC 6298, section 2 with alpha = 1/8 and beta = 1/4), the first of a round trip if `is_new_round`;
    /// ends backoff.
    pub fn sample(&mut self, round_trip_time: Nanoseconds, is_new_round: bool) {
        if self.settings.estimator == RetransmissionEstimator::Linux {
            self.sample_as_linux(round_trip_time, is_new_round);
            self.reset_backoff();
            return;
        }
        match self.smoothed {
            None => {
                self.smoothed = Some(round_trip_time);
                self.variation = round_trip_time / 2;
            }
            Some(smoothed) => {
                self.variation = self.variation - self.variation / 4 + smoothed.abs_diff(round_trip_time) / 4;
                self.smoothed = Some(smoothed - smoothed / 8 + round_trip_time / 8);
            }
        }
        self.reset_backoff();
    }

    /// tcp_rtt_estimator of Linux: the variation is the largest mean deviation of a round trip, at least the minimum
    /// timeout; it rises at once and falls by a quarter a round trip. A sample below the mean counts for an eighth.
    fn sample_as_linux(&mut self, round_trip_time: Nanoseconds, is_new_round: bool) {
        let floor = self.settings.minimum;
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(round_trip_time);
            self.deviation = round_trip_time / 2;
            self.variation = (4 * self.deviation).max(floor);
            self.largest_deviation = self.variation;
            return;
        };
        self.smoothed = Some(smoothed - smoothed / 8 + round_trip_time / 8);
        let error = smoothed.abs_diff(round_trip_time);
        self.deviation = if error >= self.deviation && round_trip_time < smoothed {
            self.deviation + (error - self.deviation) / 32
        } else {
            self.deviation - self.deviation / 4 + error / 4
        };
        self.largest_deviation = self.largest_deviation.max(4 * self.deviation);
        self.variation = self.variation.max(self.largest_deviation);
        if is_new_round {
            if self.largest_deviation < self.variation {
                self.variation -= (self.variation - self.largest_deviation) / 4;
            }
            self.largest_deviation = floor;
        }
    }

    /// Doubles the timeout (rule 5.5).
    pub fn back_off(&mut self) {
        self.timeout = self.timeout.saturating_mul(2).min(self.settings.maximum);
    }

    /// Back to what the samples say.
    pub fn reset_backoff(&mut self) {
        if let Some(smoothed) = self.smoothed {
            let margin = match self.settings.estimator {
                RetransmissionEstimator::Rfc6298 => {
                    self.variation.saturating_mul(4).max(self.settings.clock_granularity)
                }
                RetransmissionEstimator::Linux => self.variation,
                RetransmissionEstimator::Darwin => self.variation.saturating_mul(4) + self.settings.minimum,
            };
            self.timeout = smoothed
                .saturating_add(margin)
                .max(self.settings.minimum)
                .min(self.settings.maximum.max(self.settings.minimum));
        }
    }

    /// The connection is open; a SYN that was sent again gave no sample.
    pub fn begin_data(&mut self, handshake_was_retransmitted: bool) {
        if self.smoothed.is_none() {
            self.timeout = if handshake_was_retransmitted {
                self.settings.initial.max(AFTER_LOST_SYN)
            } else {
                self.settings.initial
            };
        }
    }

    pub fn smoothed(&self) -> Option<Nanoseconds> {
        self.smoothed
    }

    #[inline]
    pub fn timeout(&self) -> Nanoseconds {
        self.timeout
    }

    pub fn minimum(&self) -> Nanoseconds {
        self.settings.minimum
    }

    pub fn maximum(&self) -> Nanoseconds {
        self.settings.maximum
    }
}

#[cfg(test)]
mod tests {
    use super::RetransmissionTimer;
    use crate::settings::{RetransmissionEstimator, RetransmissionSettings};
    use pepscope_path::{MILLISECOND, SECOND};

    #[test]
    fn the_first_sample_gives_three_times_itself() {
        let mut timer = RetransmissionTimer::new(RetransmissionSettings::CLASSIC);
        assert_eq!(timer.timeout(), 3 * SECOND);
        timer.sample(800 * MILLISECOND, true);
        assert_eq!(timer.timeout(), 2400 * MILLISECOND);
    }

    #[test]
    fn later_samples_are_smoothed() {
        let mut timer = RetransmissionTimer::new(RetransmissionSettings::default());
        timer.sample(800 * MILLISECOND, true);
        timer.sample(1600 * MILLISECOND, true);
        // SRTT = 7/8 * 800 + 1/8 * 1600 = 900; RTTVAR = 3/4 * 400 + 1/4 * 800 = 500.
        assert_eq!(timer.smoothed(), Some(900 * MILLISECOND));
        assert_eq!(timer.timeout(), 2900 * MILLISECOND);
    }

    #[test]
    fn steady_samples_meet_the_minimum() {
        let mut timer = RetransmissionTimer::new(RetransmissionSettings::CLASSIC);
        for _ in 0..50 {
            timer.sample(40 * MILLISECOND, true);
        }
        assert_eq!(timer.timeout(), SECOND);
    }

    #[test]
    fn linux_keeps_two_hundred_milliseconds_above_a_steady_round_trip() {
        let estimator = RetransmissionEstimator::Linux;
        let mut timer = RetransmissionTimer::new(RetransmissionSettings { estimator, ..Default::default() });
        timer.sample(600 * MILLISECOND, true);
        assert_eq!(timer.timeout(), 1800 * MILLISECOND);
        for _ in 0..200 {
            timer.sample(600 * MILLISECOND, true);
        }
        assert_eq!((timer.timeout() + MILLISECOND / 2) / MILLISECOND, 800);
    }

    #[test]
    fn darwin_adds_two_hundred_milliseconds_to_the_sum() {
        let estimator = RetransmissionEstimator::Darwin;
        let mut timer = RetransmissionTimer::new(RetransmissionSettings { estimator, ..Default::default() });
        timer.sample(600 * MILLISECOND, true);
        assert_eq!(timer.timeout(), 2000 * MILLISECOND);
        for _ in 0..200 {
            timer.sample(600 * MILLISECOND, false);
        }
        assert_eq!((timer.timeout() + MILLISECOND / 2) / MILLISECOND, 800);
    }

    #[test]
    fn linux_takes_the_largest_deviation_of_a_round_trip_and_lets_it_fall_slowly() {
        let estimator = RetransmissionEstimator::Linux;
        let mut timer = RetransmissionTimer::new(RetransmissionSettings { estimator, ..Default::default() });
        for _ in 0..200 {
            timer.sample(100 * MILLISECOND, true);
        }
        timer.sample(900 * MILLISECOND, false);
        // mdev = 800 / 4 = 200 (four of them are added), and the mean rises by 100.
        assert_eq!((timer.timeout() + MILLISECOND / 2) / MILLISECOND, 1000);
        timer.sample(200 * MILLISECOND, false);
        assert!(timer.timeout() > 990 * MILLISECOND, "{}", timer.timeout());
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut timer = RetransmissionTimer::new(RetransmissionSettings::CLASSIC);
        timer.sample(500 * MILLISECOND, true);
        let timeouts: Vec<u64> = (0..7)
            .map(|_| {
                timer.back_off();
                timer.timeout() / MILLISECOND
            })
            .collect();
        assert_eq!(timeouts, [3_000, 6_000, 12_000, 24_000, 48_000, 60_000, 60_000]);
        timer.sample(500 * MILLISECOND, true);
        assert!(timer.timeout() < 2 * SECOND);
    }
}

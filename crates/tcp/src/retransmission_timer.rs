//! The retransmission timeout (RFC 6298) and Karn's backoff.

use pepscope_path::{Nanoseconds, SECOND};

use crate::settings::RetransmissionSettings;

/// What the timeout becomes for data if a SYN had to be sent again (RFC 6298, rule 5.7).
const AFTER_LOST_SYN: Nanoseconds = 3 * SECOND;

/// Smoothed round-trip time, its variation and the timeout that follows from them.
#[derive(Clone, Debug)]
pub(crate) struct RetransmissionTimer {
    settings: RetransmissionSettings,
    smoothed: Option<Nanoseconds>,
    variation: Nanoseconds,
    timeout: Nanoseconds,
}

impl RetransmissionTimer {
    pub fn new(settings: RetransmissionSettings) -> Self {
        Self { settings, smoothed: None, variation: 0, timeout: settings.initial }
    }

    /// Takes one sample, at most once a round trip (RFC 6298, section 2 with alpha = 1/8 and beta = 1/4); ends backoff.
    pub fn sample(&mut self, round_trip_time: Nanoseconds) {
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

    /// Doubles the timeout (rule 5.5).
    pub fn back_off(&mut self) {
        self.timeout = self.timeout.saturating_mul(2).min(self.settings.maximum);
    }

    /// Back to what the samples say.
    pub fn reset_backoff(&mut self) {
        if let Some(smoothed) = self.smoothed {
            let margin = self.variation.saturating_mul(4).max(self.settings.clock_granularity);
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

    pub fn maximum(&self) -> Nanoseconds {
        self.settings.maximum
    }
}

#[cfg(test)]
mod tests {
    use super::RetransmissionTimer;
    use crate::settings::RetransmissionSettings;
    use pepscope_path::{MILLISECOND, SECOND};

    #[test]
    fn the_first_sample_gives_three_times_itself() {
        let mut timer = RetransmissionTimer::new(RetransmissionSettings::CLASSIC);
        assert_eq!(timer.timeout(), 3 * SECOND);
        timer.sample(800 * MILLISECOND);
        assert_eq!(timer.timeout(), 2400 * MILLISECOND);
    }

    #[test]
    fn later_samples_are_smoothed() {
        let mut timer = RetransmissionTimer::new(RetransmissionSettings::default());
        timer.sample(800 * MILLISECOND);
        timer.sample(1600 * MILLISECOND);
        // SRTT = 7/8 * 800 + 1/8 * 1600 = 900; RTTVAR = 3/4 * 400 + 1/4 * 800 = 500.
        assert_eq!(timer.smoothed(), Some(900 * MILLISECOND));
        assert_eq!(timer.timeout(), 2900 * MILLISECOND);
    }

    #[test]
    fn steady_samples_meet_the_minimum() {
        let mut timer = RetransmissionTimer::new(RetransmissionSettings::CLASSIC);
        for _ in 0..50 {
            timer.sample(40 * MILLISECOND);
        }
        assert_eq!(timer.timeout(), SECOND);
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let mut timer = RetransmissionTimer::new(RetransmissionSettings::CLASSIC);
        timer.sample(500 * MILLISECOND);
        let timeouts: Vec<u64> = (0..7)
            .map(|_| {
                timer.back_off();
                timer.timeout() / MILLISECOND
            })
            .collect();
        assert_eq!(timeouts, [3_000, 6_000, 12_000, 24_000, 48_000, 60_000, 60_000]);
        timer.sample(500 * MILLISECOND);
        assert!(timer.timeout() < 2 * SECOND);
    }
}

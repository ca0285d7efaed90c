//! Proportional Integral controller Enhanced (RFC 8033, section 4): a drop probability that follows the queueing delay.

use super::red::Fate;
use crate::hop::{Nanoseconds, MILLISECOND};
use crate::random::Random;
use crate::settings::SettingsError;

/// RFC 8033, section 4.1: no early drop below so many mean packets.
const LEAST_BYTES: u64 = 2 * 1024;
/// RFC 8033, section 5.1: marks count for less, so that above this probability packets are dropped all the same.
const MOST_MARKING: f64 = 0.1;
/// RFC 8033, section 4.2: weights (per second) of the delay beyond the target and of its change since the last update.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// RFC 8033, section 4.2: smaller probabilities change in smaller steps.
const STEPS: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
/// RFC 8033, section 4.2: what is left of the probability after an update at which nothing waits.
const DECAY: f64 = 0.98;
/// RFC 8033, section 5.5: a probability that is already this high rises by no more than so much in one update.
const HIGH: f64 = 0.1;
const MOST_RISE: f64 = 0.02;
/// RFC 8033, section 4.1: nothing is dropped early below this probability while the delay was below half the target.
const LOW: f64 = 0.2;
/// Less than this is no probability any more.
const NOTHING: f64 = 1e-12;

/// What PIE is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieSettings {
    pub target_ns: Nanoseconds,
    /// How often the probability is computed.
    pub update_ns: Nanoseconds,
    /// Bursts this long pass.
    pub burst_ns: Nanoseconds,
}

impl Default for PieSettings {
    fn default() -> Self {
        Self { target_ns: 15 * MILLISECOND, update_ns: 15 * MILLISECOND, burst_ns: 150 * MILLISECOND }
    }
}

impl PieSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.update_ns == 0 {
            return Err(SettingsError::new("update_s", 0, "above 0"));
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Pie {
    settings: PieSettings,
    probability: f64,
    delay_s: f64,
    burst_left_ns: Nanoseconds,
    next_update_ns: Nanoseconds,
}

impl Pie {
    pub(super) fn new(settings: PieSettings) -> Self {
        let PieSettings { update_ns, burst_ns, .. } = settings;
        Self { settings, probability: 0.0, delay_s: 0.0, burst_left_ns: burst_ns, next_update_ns: update_ns }
    }

    /// Makes the updates that were due by `now`; nothing came or left since the last call, so that `delay_ns` gives the
    /// delay at each of them.
    pub(super) fn update(&mut self, now: Nanoseconds, delay_ns: impl Fn(Nanoseconds) -> Nanoseconds) {
        while self.next_update_ns <= now {
            let delay_s = delay_ns(self.next_update_ns) as f64 / 1e9;
            let was_idle = self.probability == 0.0 && self.delay_s == 0.0 && delay_s == 0.0;
            if was_idle && self.burst_left_ns == self.settings.burst_ns {
                // All further updates change nothing.
                let steps = (now - self.next_update_ns) / self.settings.update_ns + 1;
                self.next_update_ns += steps * self.settings.update_ns;
                return;
            }
            self.step(delay_s);
            self.next_update_ns += self.settings.update_ns;
        }
    }

    fn step(&mut self, delay_s: f64) {
        let target_s = self.settings.target_ns as f64 / 1e9;
        let mut change = ALPHA * (delay_s - target_s) + BETA * (delay_s - self.delay_s);
        if let Some((_, divisor)) = STEPS.iter().find(|(below, _)| self.probability < *below) {
            change /= divisor;
        }
        if self.probability >= HIGH {
            change = change.min(MOST_RISE);
        }
        self.probability += change;
        if delay_s == 0.0 && self.delay_s == 0.0 {
            self.probability *= DECAY;
        }
        self.probability = if self.probability < NOTHING { 0.0 } else { self.probability.min(1.0) };
        let is_calm = delay_s < target_s / 2.0 && self.delay_s < target_s / 2.0;
        self.delay_s = delay_s;
        self.burst_left_ns = if self.probability == 0.0 && is_calm {
            self.settings.burst_ns
        } else {
            self.burst_left_ns.saturating_sub(self.settings.update_ns)
        };
    }

    /// What becomes of a packet that finds so many bytes waiting.
    pub(super) fn arrives(&self, waiting_bytes: u64, random: &mut Random) -> Fate {
        let target_s = self.settings.target_ns as f64 / 1e9;
        let is_calm = self.delay_s < target_s / 2.0 && self.probability < LOW;
        if self.burst_left_ns > 0 || is_calm || waiting_bytes <= LEAST_BYTES {
            return Fate::Enters;
        }
        if !random.chance(self.probability) {
            return Fate::Enters;
        }
        if self.probability < MOST_MARKING {
            Fate::Warned
        } else {
            Fate::Dropped
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pie, PieSettings};
    use crate::hop::MILLISECOND;

    /// RFC 8033, section 4.2, by hand: delays of 50, 50, 20 and 0 ms.
    #[test]
    fn the_probability_is_that_of_the_rfc() {
        let mut pie = Pie::new(PieSettings::default());
        let mut expected = 0.0;
        let delays_ms = [50, 50, 20, 0];
        let scaled =
            [(0.125 * 0.035 + 1.25 * 0.05) / 2048.0, 0.125 * 0.035 / 128.0, (0.125 * 0.005 - 1.25 * 0.03) / 128.0, 0.0];
        for (number, (delay_ms, change)) in (1..).zip(delays_ms.into_iter().zip(scaled)) {
            pie.update(number * 15 * MILLISECOND, |_| delay_ms * MILLISECOND);
            expected = f64::max(expected + change, 0.0);
            assert!((pie.probability - expected).abs() < 1e-15, "{number}: {} {expected}", pie.probability);
        }
        assert_eq!(pie.probability, 0.0);
    }

    #[test]
    fn an_idle_hour_costs_nothing_and_renews_the_burst() {
        let mut pie = Pie::new(PieSettings::default());
        for number in 1..100 {
            pie.update(number * 15 * MILLISECOND, |_| 50 * MILLISECOND);
        }
        assert!(pie.probability > 0.0 && pie.burst_left_ns == 0);
        pie.update(3_600_000 * MILLISECOND, |_| 0);
        assert_eq!((pie.probability, pie.burst_left_ns), (0.0, 150 * MILLISECOND));
        assert!(pie.next_update_ns > 3_600_000 * MILLISECOND);
    }
}

//! How many bytes an interval carries.

use super::settings::{FadingRateSettings, RateSettings};
use crate::hsdpa::transport_format::from_db;
use crate::{Nanoseconds, Random, SECOND};

/// Below this ratio nothing gets through (3GPP TR 36.942, A.1).
const LEAST_SINR_DB: f64 = -10.0;

/// The channel is drawn anew after this share of its correlation time: a step's deviation is then a tenth of the whole one.
const STEP: f64 = 0.005;

/// The bytes of a terminal's intervals, one direction.
#[derive(Clone, Debug)]
pub struct IntervalRate {
    tti: Nanoseconds,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Bits that did not make a byte go into the next interval: the rate is exact.
    Fixed {
        rate_bit_s: u64,
        remainder: u128,
    },
    Fading(Box<Fading>),
}

#[derive(Clone, Debug)]
struct Fading {
    settings: FadingRateSettings,
    ttis_a_step: u64,
    last_step: u64,
    /// The process in units of its deviation.
    level: f64,
    bytes: u32,
    random: Random,
}

impl IntervalRate {
    #[must_use]
    pub fn new(settings: RateSettings, tti: Nanoseconds, mut random: Random) -> Self {
        let kind = match settings {
            RateSettings::Fixed { rate_bit_s } => Kind::Fixed { rate_bit_s, remainder: 0 },
            RateSettings::Fading(settings) => {
                let ttis_a_step = (libm::floor(STEP * settings.correlation as f64 / tti as f64) as u64).max(1);
                let level = random.normal();
                let mut fading = Fading { settings, ttis_a_step, last_step: 0, level, bytes: 0, random };
                fading.bytes = fading.bytes_a_tti(tti);
                Kind::Fading(Box::new(fading))
            }
        };
        Self { tti, kind }
    }

    /// What interval number `tti` carries, which does not go back. Ask once for each interval that is used.
    pub fn bytes(&mut self, tti: u64) -> u32 {
        match &mut self.kind {
            Kind::Fixed { rate_bit_s, remainder } => {
                let work = u128::from(*rate_bit_s) * u128::from(self.tti) + *remainder;
                let byte = 8 * u128::from(SECOND);
                *remainder = work % byte;
                u32::try_from(work / byte).unwrap_or(u32::MAX)
            }
            Kind::Fading(fading) => {
                let step = tti / fading.ttis_a_step;
                if step > fading.last_step {
                    let span = (step - fading.last_step) * fading.ttis_a_step * self.tti;
                    fading.last_step = step;
                    let kept = libm::exp(-(span as f64) / fading.settings.correlation as f64);
                    fading.level = kept * fading.level + libm::sqrt(1.0 - kept * kept) * fading.random.normal();
                    fading.bytes = fading.bytes_a_tti(self.tti);
                }
                fading.bytes
            }
        }
    }
}

impl Fading {
    fn bytes_a_tti(&self, tti: Nanoseconds) -> u32 {
        let settings = &self.settings;
        let sinr_db = settings.mean_sinr_db + settings.deviation_db * self.level;
        if sinr_db < LEAST_SINR_DB {
            return 0;
        }
        let efficiency = (settings.attenuation * libm::log2(1.0 + from_db(sinr_db))).min(settings.most_bit_s_hz);
        let bits = f64::from(settings.layers) * settings.bandwidth_hz * efficiency * tti as f64 * 1e-9;
        libm::floor(bits / 8.0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::IntervalRate;
    use crate::lte::settings::{FadingRateSettings, RateSettings};
    use crate::{Random, MILLISECOND, SECOND};

    #[test]
    fn a_fixed_rate_is_exact() {
        let settings = RateSettings::Fixed { rate_bit_s: 12_345_677 };
        let mut rate = IntervalRate::new(settings, MILLISECOND, Random::new(1, "rate"));
        let bytes: u64 = (0..8000).map(|tti| u64::from(rate.bytes(tti))).sum();
        assert_eq!(bytes, 12_345_677);
    }

    fn fading(mean_sinr_db: f64, deviation_db: f64) -> IntervalRate {
        let settings = FadingRateSettings {
            bandwidth_hz: 10e6,
            layers: 1,
            mean_sinr_db,
            deviation_db,
            correlation: SECOND,
            attenuation: 0.6,
            most_bit_s_hz: 4.4,
        };
        IntervalRate::new(RateSettings::Fading(settings), MILLISECOND, Random::new(1, "rate"))
    }

    #[test]
    fn a_steady_channel_gives_the_attenuated_bound() {
        assert_eq!(fading(0.0, 0.0).bytes(1), 750); // 0.6 * log2(2) * 10 MHz * 1 ms
        assert_eq!(fading(50.0, 0.0).bytes(1), 5500); // 4.4 bit/s/Hz at most
        assert_eq!(fading(-11.0, 0.0).bytes(1), 0);
    }

    #[test]
    fn a_fading_channel_keeps_its_correlation_over_pauses() {
        let mut rate = fading(5.0, 6.0);
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for period in 0..4000 {
            here.push(f64::from(rate.bytes(period * 10_000)));
            there.push(f64::from(rate.bytes(period * 10_000 + 500)));
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (mean_here, mean_there) = (mean(&here), mean(&there));
        let products: Vec<f64> =
            here.iter().zip(&there).map(|(left, right)| (left - mean_here) * (right - mean_there)).collect();
        let squares: Vec<f64> = here.iter().map(|value| (value - mean_here).powi(2)).collect();
        // Rate is not quite linear in decibels, so only about exp(-0.5) = 0.61.
        let correlation = mean(&products) / mean(&squares);
        assert!((correlation - 0.61).abs() < 0.06, "{correlation}");
    }
}

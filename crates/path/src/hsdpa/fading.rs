//! Fast fading: one path of Clarke's scattering model as a sum of sinusoids.

use crate::{Nanoseconds, Random};

/// Sinusoids of each path. Eight already give a Rayleigh envelope (Xiao, Zheng and Beaulieu); sixteen fill whole vectors.
const SINUSOIDS: usize = 16;
const LANES: usize = 4;

const SPEED_OF_LIGHT_M_S: f64 = 299_792_458.0;

/// Highest Doppler shift in hertz of a terminal that moves at `speed_km_h` and receives at `carrier_hz`.
#[must_use]
pub fn doppler_hz(speed_km_h: f64, carrier_hz: f64) -> f64 {
    speed_km_h / 3.6 * carrier_hz / SPEED_OF_LIGHT_M_S
}

/// A complex Gaussian process of mean power 1 whose autocorrelation is J0(2 pi f t).
///
/// Xiao, Zheng and Beaulieu, "Novel sum-of-sinusoids simulation models for Rayleigh and Rician fading channels" (IEEE
/// Trans. Wireless Commun., 2006): z(t) = sum of exp(j (w t cos a_n + p_n)) / sqrt(N), a_n = (2 pi n + t_n) / N, with t_n and
/// p_n uniform. Each sinusoid is a phasor that one complex product advances by one step, so no step computes a cosine.
#[derive(Clone, Debug)]
pub struct Rayleigh {
    real: [f64; SINUSOIDS],
    imaginary: [f64; SINUSOIDS],
    turn_real: [f64; SINUSOIDS],
    turn_imaginary: [f64; SINUSOIDS],
    radians_a_step: [f64; SINUSOIDS],
    phases: [f64; SINUSOIDS],
}

impl Rayleigh {
    /// A path with the given highest Doppler shift, at step 0, sampled every `step`.
    #[must_use]
    pub fn new(doppler_hz: f64, step: Nanoseconds, random: &mut Random) -> Self {
        use core::f64::consts::{PI, TAU};
        let mut path = Self {
            real: [0.0; SINUSOIDS],
            imaginary: [0.0; SINUSOIDS],
            turn_real: [0.0; SINUSOIDS],
            turn_imaginary: [0.0; SINUSOIDS],
            radians_a_step: [0.0; SINUSOIDS],
            phases: [0.0; SINUSOIDS],
        };
        let radians_a_step = TAU * doppler_hz * step as f64 * 1e-9;
        for n in 0..SINUSOIDS {
            let arrival = (TAU * (n + 1) as f64 + random.uniform_between(-PI, PI)) / SINUSOIDS as f64;
            path.radians_a_step[n] = radians_a_step * libm::cos(arrival);
            path.phases[n] = random.uniform_between(-PI, PI);
            path.turn_real[n] = libm::cos(path.radians_a_step[n]);
            path.turn_imaginary[n] = libm::sin(path.radians_a_step[n]);
        }
        path.seek(0);
        path
    }

    /// Advances to step number `step` at once.
    pub fn seek(&mut self, step: u64) {
        let scale = 1.0 / libm::sqrt(SINUSOIDS as f64);
        for n in 0..SINUSOIDS {
            let phase = self.phases[n] + self.radians_a_step[n] * step as f64;
            self.real[n] = scale * libm::cos(phase);
            self.imaginary[n] = scale * libm::sin(phase);
        }
    }

    /// Advances by one step.
    #[inline]
    pub fn advance(&mut self) {
        for n in 0..SINUSOIDS {
            let (real, imaginary) = (self.real[n], self.imaginary[n]);
            self.real[n] = real * self.turn_real[n] - imaginary * self.turn_imaginary[n];
            self.imaginary[n] = real * self.turn_imaginary[n] + imaginary * self.turn_real[n];
        }
    }

    /// Real and imaginary part now.
    #[inline]
    #[must_use]
    pub fn value(&self) -> (f64, f64) {
        (sum(&self.real), sum(&self.imaginary))
    }

    /// Power now; 1 on average.
    #[inline]
    #[must_use]
    pub fn power(&self) -> f64 {
        let (real, imaginary) = self.value();
        real * real + imaginary * imaginary
    }
}

/// Adds in a fixed order that suits vector registers.
#[inline]
fn sum(values: &[f64; SINUSOIDS]) -> f64 {
    let mut lanes = [0.0; LANES];
    for chunk in values.chunks_exact(LANES) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

#[cfg(test)]
mod tests {
    use super::{doppler_hz, Rayleigh};
    use crate::{Random, MILLISECOND};

    #[test]
    fn doppler_shift_of_a_walker_at_two_gigahertz_is_five_and_a_half_hertz() {
        assert!((doppler_hz(3.0, 2e9) - 5.56).abs() < 0.01);
    }

    #[test]
    fn turning_and_seeking_agree() {
        let mut random = Random::new(1, "fading");
        let mut turned = Rayleigh::new(222.0, 2 * MILLISECOND, &mut random);
        let mut sought = turned.clone();
        for _ in 0..100_000 {
            turned.advance();
        }
        sought.seek(100_000);
        assert!((turned.value().0 - sought.value().0).abs() < 1e-7);
        assert!((turned.value().1 - sought.value().1).abs() < 1e-7);
    }

    #[test]
    fn the_autocorrelation_is_the_bessel_function_of_order_zero() {
        let (doppler, step) = (50.0, MILLISECOND);
        let mut random = Random::new(3, "fading");
        let lags = 40;
        let mut correlation = vec![(0.0, 0.0); lags];
        let paths = 4000;
        for _ in 0..paths {
            let mut path = Rayleigh::new(doppler, step, &mut random);
            let first = path.value();
            for entry in &mut correlation {
                let (real, imaginary) = path.value();
                entry.0 += first.0 * real + first.1 * imaginary;
                entry.1 += first.0 * imaginary - first.1 * real;
                path.advance();
            }
        }
        for (lag, (real, imaginary)) in correlation.iter().enumerate() {
            let expected = libm::j0(core::f64::consts::TAU * doppler * lag as f64 * 1e-3);
            // Standard error of a mean of `paths` products of unit variance is 0.016; four of them.
            assert!((real / f64::from(paths) - expected).abs() < 0.064, "lag {lag}");
            assert!((imaginary / f64::from(paths)).abs() < 0.064, "lag {lag}");
        }
    }

    #[test]
    fn the_envelope_is_rayleigh() {
        let mut random = Random::new(5, "fading");
        let draws = 20_000;
        let mut powers: Vec<f64> = (0..draws).map(|_| Rayleigh::new(50.0, MILLISECOND, &mut random).power()).collect();
        powers.sort_by(f64::total_cmp);
        // Kolmogorov and Smirnov against the exponential distribution of power; 1.95 / sqrt(n) is the 0.1 % limit, and
        // sixteen sinusoids differ from a Gaussian by terms of order 1/(4 N) = 0.016 at most.
        let distance = powers.iter().enumerate().fold(0.0f64, |worst, (rank, power)| {
            worst.max((1.0 - libm::exp(-power) - (rank as f64 + 0.5) / f64::from(draws)).abs())
        });
        assert!(distance < 1.95 / f64::from(draws).sqrt() + 0.016, "{distance}");
    }

    #[test]
    fn power_over_time_is_one_on_average() {
        let mut random = Random::new(9, "fading");
        let mean = (0..200)
            .map(|_| {
                let mut path = Rayleigh::new(50.0, 2 * MILLISECOND, &mut random);
                let mut total = 0.0;
                for _ in 0..2000 {
                    path.advance();
                    total += path.power();
                }
                total / 2000.0
            })
            .sum::<f64>()
            / 200.0;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
    }
}

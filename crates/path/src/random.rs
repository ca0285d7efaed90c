//! Random numbers that are the same on every machine.

mod log_normal;

pub use log_normal::LogNormal;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers that belongs to one component of one run.
///
/// The generator is integer arithmetic and the functions are `libm`'s, not the platform's: same seed, same bits.
#[derive(Clone, Debug)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
}

impl Random {
    /// The stream of the component called `name` in the run with `seed`: adding a component leaves the others alone.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed ^ fnv_1a(name)) }
    }

    /// Sixty-four random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in [0, 1), on a grid of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [`low`, `high`).
    pub fn uniform_between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform among 0 .. `count`; 0 if `count` is 0 (Lemire's multiplication, whose bias is below 2^-32 for 32 bits).
    pub fn below(&mut self, count: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u32
    }

    /// True with probability `probability`; takes no number where the answer is certain.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            false
        } else if probability >= 1.0 {
            true
        } else {
            self.uniform() < probability
        }
    }

    /// Exponentially distributed with mean `mean`.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Normally distributed with mean 0 and standard deviation 1 (Box and Muller; the second value is not used).
    pub fn normal(&mut self) -> f64 {
        let (first, second) = (self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(1.0 - first)) * libm::cos(core::f64::consts::TAU * second)
    }
}

/// Fowler, Noll and Vo's hash, which spreads names over seeds.
fn fnv_1a(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::Random;

    fn mean_of(count: u32, mut draw: impl FnMut() -> f64) -> f64 {
        (0..count).map(|_| draw()).sum::<f64>() / f64::from(count)
    }

    #[test]
    fn a_stream_is_pinned_to_its_seed_and_name() {
        let first: Vec<u64> = (0..3)
            .map({
                let mut random = Random::new(1, "wired");
                move |_| random.bits()
            })
            .collect();
        assert_eq!(first, [4_758_100_252_336_111_673, 15_750_850_176_101_492_037, 1_089_945_816_120_444_131]);
        assert_ne!(Random::new(1, "radio").bits(), first[0]);
        assert_ne!(Random::new(2, "wired").bits(), first[0]);
    }

    #[test]
    fn means_are_where_they_should_be() {
        let mut random = Random::new(7, "means");
        assert!((mean_of(100_000, || random.uniform()) - 0.5).abs() < 0.005);
        assert!((mean_of(100_000, || random.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!(mean_of(100_000, || random.normal()).abs() < 0.015);
        assert!((mean_of(100_000, || random.normal().powi(2)) - 1.0).abs() < 0.03);
        assert!((mean_of(100_000, || f64::from(random.below(10))) - 4.5).abs() < 0.05);
    }

    #[test]
    fn certainties_take_no_number() {
        let mut random = Random::new(7, "certain");
        let mut untouched = random.clone();
        assert!(!random.chance(0.0));
        assert!(random.chance(1.0));
        assert_eq!(random.bits(), untouched.bits());
    }
}

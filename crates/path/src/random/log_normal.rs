//! Log-normal numbers, each from one random number, by tables.
//!
//! A normal number is the quantile of a uniform one, and a log-normal number is that of the quantile. Between exact ones
//! lie straight lines, which are shorter the nearer they are to the ends: 32 in each binade of the share. Numbers beyond
//! them, one in 4,096, are computed.

use core::f64::consts::{FRAC_1_SQRT_2, TAU};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use super::Random;

const MANTISSA_BITS: u32 = 52;
/// A share up to a half has an odd numerator of so many bits, and one more in its denominator.
const SHARE_BITS: u32 = 53;
/// Shares whose numerators have no more bits have no table.
const LEAST_BITS: u32 = 41;
const PART_BITS: u32 = 5;
const PARTS: usize = ((SHARE_BITS - LEAST_BITS) as usize) << PART_BITS;

/// Normal numbers where the parts of binades begin, the last of which ends at 0.
static NORMALS: LazyLock<[f64; PARTS + 1]> = LazyLock::new(|| {
    std::array::from_fn(|place| {
        let (binade, part) = (place >> PART_BITS, place % (1 << PART_BITS));
        let mantissa = 1.0 + part as f64 / f64::from(1u32 << PART_BITS);
        lower_normal(libm::exp2(f64::from(LEAST_BITS) + binade as f64) * mantissa)
    })
});

/// The quantile of the normal distribution at the share `numerator / 2^54`, of a half at most.
///
/// Newton's iteration of the logarithm of the distribution, which is concave, from below.
fn lower_normal(numerator: f64) -> f64 {
    let share = numerator / (1u64 << (SHARE_BITS + 1)) as f64;
    let mut normal = -libm::sqrt(-2.0 * libm::log(share));
    for _ in 0..20 {
        let below = 0.5 * libm::erfc(-normal * FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * normal * normal) / libm::sqrt(TAU);
        let step = below * libm::log(share / below) / density;
        normal += step;
        if step.abs() < 1e-12 {
            break;
        }
    }
    normal
}

/// What [`NORMALS`] make, by the sign of the normal number.
type Quantiles = [[f64; PARTS + 1]; 2];

/// Spreads whose tables a thread keeps.
const MOST_KEPT: usize = 64;

thread_local! {
    /// Tables by spread: short runs would take longer for them than for everything else. Each thread has its own: where
    /// another thread holds a lock, a process forked meanwhile would wait for it for ever.
    static KEPT: RefCell<Vec<(f64, Arc<Quantiles>)>> = const { RefCell::new(Vec::new()) };
}

/// A log-normal distribution with a median of 1.
#[derive(Clone, Debug)]
pub struct LogNormal {
    /// Standard deviation of the natural logarithm.
    spread: f64,
    quantiles: Arc<Quantiles>,
}

impl LogNormal {
    /// With this standard deviation of the natural logarithm.
    #[must_use]
    pub fn new(spread: f64) -> Self {
        Self { spread, quantiles: KEPT.with_borrow_mut(|kept| quantiles(spread, kept)) }
    }

    /// A number of which no share is off by more than `3e-5 * (1 + spread)^2`.
    #[inline(always)]
    pub fn draw(&self, random: &mut Random) -> f64 {
        self.quantile(random.bits())
    }

    /// The number that `bits` give: on which side of the median by the highest, how far by the others.
    #[inline(always)]
    fn quantile(&self, bits: u64) -> f64 {
        const FIRST: usize = ((1023 + LEAST_BITS) as usize) << PART_BITS;
        const REST_BITS: u32 = MANTISSA_BITS - PART_BITS;
        let side = usize::from(bits >> 63 != 0);
        let numerator = (bits << 1 >> (64 - SHARE_BITS)) | 1;
        // Conversion of unsigned numbers takes twice as long.
        let share = (numerator as i64 as f64).to_bits();
        let part = ((share >> REST_BITS) as usize).wrapping_sub(FIRST);
        match self.quantiles[side].get(part..part.wrapping_add(2)) {
            Some(&[start, end]) => {
                let mantissa = (share << PART_BITS & ((1 << MANTISSA_BITS) - 1)) | 1.0f64.to_bits();
                start + (end - start) * (f64::from_bits(mantissa) - 1.0)
            }
            _ => self.beyond(side, numerator),
        }
    }

    #[cold]
    #[inline(never)]
    fn beyond(&self, side: usize, numerator: u64) -> f64 {
        log_normal(self.spread, side, lower_normal(numerator as f64))
    }
}

/// What `kept` has for this spread, or else gets.
fn quantiles(spread: f64, kept: &mut Vec<(f64, Arc<Quantiles>)>) -> Arc<Quantiles> {
    if let Some((_, quantiles)) = kept.iter().find(|(other, _)| *other == spread) {
        return Arc::clone(quantiles);
    }
    if kept.len() >= MOST_KEPT {
        kept.clear();
    }
    let quantiles = Arc::new([0, 1].map(|side| NORMALS.map(|normal| log_normal(spread, side, normal))));
    kept.push((spread, Arc::clone(&quantiles)));
    quantiles
}

/// The number that a normal one of at most 0 makes, on the lower or the upper side.
fn log_normal(spread: f64, side: usize, lower: f64) -> f64 {
    libm::exp(spread * if side == 0 { lower } else { -lower })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{lower_normal, quantiles, LogNormal, FRAC_1_SQRT_2, MOST_KEPT, SHARE_BITS};
    use crate::random::Random;

    /// The share of log-normal numbers with that `spread` below `number`.
    fn share_below(number: f64, spread: f64) -> f64 {
        0.5 * libm::erfc(-libm::log(number) / spread * FRAC_1_SQRT_2)
    }

    /// The share of numbers that are less than what `bits` give.
    fn share_of(bits: u64) -> f64 {
        let half = (bits & (u64::MAX >> 1)) as f64 / 2.0f64.powi(64);
        if bits >> 63 == 0 {
            half
        } else {
            1.0 - half
        }
    }

    #[test]
    fn no_share_of_numbers_is_off_by_more_than_stated() {
        let mut random = Random::new(1, "error");
        let mut words: Vec<u64> = (0..300_000).map(|_| random.bits()).collect();
        // Every binade, to the very ends and the middle, where the tables begin and end.
        words.extend((0..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << 63) | (1 << bit)]));
        words.extend([0, (1 << 63) - 1, 1 << 63, u64::MAX]);
        for spread in [0.1, 0.6, 0.8, 1.2, 4.0] {
            let distribution = LogNormal::new(spread);
            let error = |bits: &u64| (share_below(distribution.quantile(*bits), spread) - share_of(*bits)).abs();
            let largest = words.iter().map(error).fold(0.0, f64::max);
            assert!(largest > 1e-6 && largest < 3e-5 * (1.0 + spread).powi(2), "{spread}: {largest:e}");
        }
    }

    #[test]
    fn tails_are_as_long_as_they_should_be() {
        let distribution = LogNormal::new(0.8);
        for bits in 1..SHARE_BITS {
            let numerator = ((13 << bits) / 10) | 1;
            let share = numerator as f64 / (1u64 << (SHARE_BITS + 1)) as f64;
            let exact = libm::exp(0.8 * lower_normal(numerator as f64));
            assert!((share_below(exact, 0.8) / share - 1.0).abs() < 1e-9, "{share:e}");
            let (short, long) = (numerator << 10, (numerator << 10) | (1 << 63));
            assert!((distribution.quantile(short) / exact - 1.0).abs() < 5e-4, "{share:e}");
            assert!((distribution.quantile(long) * exact - 1.0).abs() < 5e-4, "{share:e}");
        }
    }

    #[test]
    fn a_million_numbers_are_distributed_as_they_should_be() {
        let (mut random, distribution) = (Random::new(3, "log-normal"), LogNormal::new(0.8));
        let mut drawn: Vec<f64> = (0..1_000_000).map(|_| distribution.draw(&mut random)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let distance = drawn.iter().enumerate().map(|(place, one)| (place as f64 / 1e6 - share_below(*one, 0.8)).abs());
        // Kolmogorov and Smirnov's critical value of one in a thousand.
        assert!(distance.fold(0.0, f64::max) < 1.95e-3);
        let moment = |order| drawn.iter().map(|one| (libm::log(*one) / 0.8).powi(order)).sum::<f64>() / 1e6;
        // Four standard errors each.
        assert!(moment(1).abs() < 4e-3 && (moment(2) - 1.0).abs() < 5.7e-3, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 1.6e-2 && (moment(4) - 3.0).abs() < 4e-2, "{} {}", moment(3), moment(4));
    }

    #[test]
    fn tables_are_kept_by_spread_and_do_not_grow_without_bounds() {
        let mut kept = Vec::new();
        let first = quantiles(0.8, &mut kept);
        assert!(Arc::ptr_eq(&first, &quantiles(0.8, &mut kept)));
        for number in 0..1000 {
            quantiles(0.001 * f64::from(number), &mut kept);
            assert!(kept.len() <= MOST_KEPT);
        }
        assert_eq!(first, quantiles(0.8, &mut kept));
    }

    #[test]
    fn without_spread_all_numbers_are_one() {
        let (mut random, distribution) = (Random::new(5, "log-normal"), LogNormal::new(0.0));
        assert!((0..10_000).all(|_| distribution.draw(&mut random) == 1.0));
    }
}

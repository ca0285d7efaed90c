//! Log-normal numbers, each from one random number, by tables.
//!
//! A normal number is the quantile of a uniform one. Quantiles lie on straight lines between exact ones, which are closer
//! together the nearer they are to the ends: 32 of them in each binade of the share, so that no share of numbers differs
//! by more than 2e-5 from the normal distribution's. One in 65,536 lies beyond and is computed.

use core::f64::consts::{FRAC_1_SQRT_2, LN_2, TAU};
use std::sync::LazyLock;

use super::Random;

const MANTISSA_BITS: u32 = 52;
/// A share up to a half has an odd numerator of so many bits, and one more in its denominator.
const SHARE_BITS: u32 = 53;
/// Shares whose numerators have no more bits have no table.
const LEAST_BITS: u32 = 37;
const PART_BITS: u32 = 5;
const PARTS: usize = ((SHARE_BITS - LEAST_BITS) as usize) << PART_BITS;
const POWER_BITS: u32 = 7;
/// Exponents from here on are left to `libm`.
const MOST_EXPONENT: f64 = 64.0;
/// Adding it to a number of moderate size leaves that, rounded to a whole one, in the lowest bits.
const ROUNDING: f64 = (3u64 << 51) as f64;

struct Tables {
    /// The quantile at the beginning of each part of a binade, and how much it grows with the mantissa.
    quantiles: [(f64, f64); PARTS],
    /// Powers of 2 from 1 on.
    powers: [f64; 1 << POWER_BITS],
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let parts = f64::from(1u32 << PART_BITS);
    let quantile_at = |place: usize| {
        let (binade, part) = (place >> PART_BITS, place % (1 << PART_BITS));
        let numerator = libm::exp2(f64::from(LEAST_BITS) + binade as f64) * (1.0 + part as f64 / parts);
        lower_quantile(numerator)
    };
    Tables {
        quantiles: std::array::from_fn(|place| {
            let (start, end) = (quantile_at(place), quantile_at(place + 1));
            (start, (end - start) * parts)
        }),
        powers: std::array::from_fn(|place| libm::exp2(place as f64 / f64::from(1u32 << POWER_BITS))),
    }
});

/// The quantile of the normal distribution at the share `numerator / 2^54`, of a half at most.
///
/// Newton's iteration of the logarithm of the distribution, which is concave, from below.
#[cold]
#[inline(never)]
fn lower_quantile(numerator: f64) -> f64 {
    let share = numerator / (1u64 << (SHARE_BITS + 1)) as f64;
    let mut quantile = -libm::sqrt(-2.0 * libm::log(share));
    for _ in 0..20 {
        let below = 0.5 * libm::erfc(-quantile * FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * quantile * quantile) / libm::sqrt(TAU);
        let step = below * libm::log(share / below) / density;
        quantile += step;
        if step.abs() < 1e-12 {
            break;
        }
    }
    quantile
}

impl Random {
    /// The whole part of `least + scale * exp(spread * normal)` with a normal number of mean 0 and standard deviation 1,
    /// in which no share of numbers is off by more than 2e-5. None of the three may be negative.
    #[inline]
    pub fn whole_log_normal(&mut self, least: f64, scale: f64, spread: f64) -> u64 {
        let tables = &*TABLES;
        let value = least + scale * power(tables, spread * normal(tables, self.bits()));
        value as i64 as u64
    }
}

/// The normal number that `bits` give: its sign by the highest, its size by the others.
#[inline]
fn normal(tables: &Tables, bits: u64) -> f64 {
    const SIGN: u64 = 1 << 63;
    const FIRST: usize = ((1023 + LEAST_BITS) as usize) << PART_BITS;
    const REST_BITS: u32 = MANTISSA_BITS - PART_BITS;
    let numerator = ((bits & !SIGN) >> (63 - SHARE_BITS)) | 1;
    let share = (numerator as i64 as f64).to_bits();
    let part = ((share >> REST_BITS) as usize).wrapping_sub(FIRST);
    let quantile = match tables.quantiles.get(part) {
        Some((start, growth)) => {
            let rest = f64::from_bits((share & ((1 << REST_BITS) - 1)) | 1.0f64.to_bits()) - 1.0;
            start + growth * rest
        }
        None => lower_quantile(numerator as f64),
    };
    f64::from_bits(quantile.to_bits() ^ (bits & SIGN))
}

/// The exponential function.
#[inline]
fn power(tables: &Tables, exponent: f64) -> f64 {
    if exponent.abs() > MOST_EXPONENT {
        return libm::exp(exponent);
    }
    const STEPS: f64 = (1u32 << POWER_BITS) as f64;
    let rounded = exponent * (STEPS / LN_2) + ROUNDING;
    let rest = exponent - (rounded - ROUNDING) * (LN_2 / STEPS);
    let steps = rounded.to_bits();
    let near_one = (1.0 + rest) + rest * rest * 0.5;
    let doublings = (steps >> POWER_BITS) << MANTISSA_BITS;
    f64::from_bits(tables.powers[steps as usize % (1 << POWER_BITS)].to_bits().wrapping_add(doublings)) * near_one
}

#[cfg(test)]
mod tests {
    use super::{lower_quantile, normal, power, FRAC_1_SQRT_2, SHARE_BITS, TABLES};
    use crate::random::Random;
    use proptest::prelude::{any, prop_assert, proptest};

    fn share_below(quantile: f64) -> f64 {
        0.5 * libm::erfc(-quantile * FRAC_1_SQRT_2)
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
        let mut words: Vec<u64> = (0..1_000_000).map(|_| random.bits()).collect();
        // Every binade, to the very ends and the middle, where the tables begin and end.
        words.extend((0..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << 63) | (1 << bit)]));
        words.extend([0, (1 << 63) - 1, 1 << 63, u64::MAX]);
        let error = |bits: &u64| (share_below(normal(&TABLES, *bits)) - share_of(*bits)).abs();
        let largest = words.iter().map(error).fold(0.0, f64::max);
        assert!(largest > 1e-6 && largest < 2e-5, "{largest:e}");
    }

    #[test]
    fn tails_are_as_long_as_they_should_be() {
        for bits in 1..SHARE_BITS {
            let numerator = (13 << bits) / 10 | 1;
            let share = numerator as f64 / (1u64 << (SHARE_BITS + 1)) as f64;
            let exact = lower_quantile(numerator as f64);
            assert!((share_below(exact) / share - 1.0).abs() < 1e-9, "{share:e}");
            let drawn = normal(&TABLES, numerator << 10);
            assert!((drawn - exact).abs() < 2e-4, "{share:e} {drawn} {exact}");
        }
    }

    #[test]
    fn a_million_numbers_are_distributed_normally() {
        let mut random = Random::new(3, "normal");
        let mut drawn: Vec<f64> = (0..1_000_000).map(|_| normal(&TABLES, random.bits())).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let distance = drawn.iter().enumerate().map(|(place, one)| (place as f64 / 1e6 - share_below(*one)).abs());
        // Kolmogorov and Smirnov's critical value of one in a thousand.
        assert!(distance.fold(0.0, f64::max) < 1.95e-3);
        let moment = |order| drawn.iter().map(|one| one.powi(order)).sum::<f64>() / 1e6;
        // Four standard errors each.
        assert!(moment(1).abs() < 4e-3 && (moment(2) - 1.0).abs() < 5.7e-3, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 1.6e-2 && (moment(4) - 3.0).abs() < 4e-2, "{} {}", moment(3), moment(4));
    }

    proptest! {
        #[test]
        fn a_number_is_its_definition_of_a_normal_one(
            seed in any::<u64>(), least in 0.0..1e9f64, scale in 0.0..1e9f64, spread in 0.0..10f64,
        ) {
            let mut random = Random::new(seed, "any");
            let exact = least + scale * libm::exp(spread * normal(&TABLES, random.clone().bits()));
            let drawn = random.whole_log_normal(least, scale, spread);
            prop_assert!((drawn as f64 - exact).abs() <= 1.0 + 1e-8 * exact, "{} {}", drawn, exact);
        }

        #[test]
        fn a_power_is_that_of_libm(exponent in -100.0..100f64) {
            prop_assert!((power(&TABLES, exponent) / libm::exp(exponent) - 1.0).abs() < 1e-8);
        }
    }
}

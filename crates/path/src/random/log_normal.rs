//! Whole log-normal numbers at a fifth of the cost of their definition, and equal to it.
//!
//! The definition takes a logarithm, a cosine and an exponential of `libm`, and all but the whole part of the result is
//! dropped. Short polynomials around the entries of tables give the same whole part unless the result is within their
//! error of a whole number; then, and where a bound does not hold, the definition decides (Ziv, "Fast evaluation of
//! elementary mathematical functions with correctly rounded last bit", 1991).

use core::f64::consts::{LN_2, TAU};
use std::sync::LazyLock;

use super::{definition_of_normal, uniform_of, Random};

/// More than the relative error of the polynomials' result (the test measures it). Of a microsecond in nanoseconds it
/// leaves one draw in five thousand to the definition.
const TOLERANCE: f64 = 1e-7;
/// Uniform numbers within 2^41 / 2^53 of 0 or 1 are left to the definition.
const LEAST_BITS: u32 = 41;
/// Results from here on, and exponents, are left to the definition.
const MOST: f64 = 1e12;
const MOST_EXPONENT: f64 = 64.0;

const RADIUS_BITS: u32 = 5;
const ANGLE_BITS: u32 = 8;
const POWER_BITS: u32 = 7;
const FRACTION_BITS: u32 = 53;
/// Adding it to a number of moderate size leaves that, rounded to a whole one, in the lowest bits.
const ROUNDING: f64 = (3u64 << 51) as f64;

/// What the polynomials are around.
struct Tables {
    /// Coefficients of the radius around the middle of each part of a binade, for uniform numbers below a half and then
    /// for those above, by what they are away from 0 and 1.
    radii: [[f64; 4]; 2 * RADII],
    /// Cosine and sine of the middle of each part of a turn.
    angles: [(f64, f64); 1 << ANGLE_BITS],
    /// Powers of 2 from 1 on.
    powers: [f64; 1 << POWER_BITS],
}

/// Parts of binades from the least numerator to a half of 2^53, which is the first of the last binade.
const RADII: usize = ((FRACTION_BITS - LEAST_BITS) as usize) << RADIUS_BITS;

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let middle = |place: usize, bits: u32| (place as f64 + 0.5) / f64::from(1u32 << bits);
    Tables {
        radii: std::array::from_fn(|place| {
            let (part, is_above) = (place % RADII, place >= RADII);
            let binade = libm::exp2(f64::from(LEAST_BITS) + (part >> RADIUS_BITS) as f64 - f64::from(FRACTION_BITS));
            let mantissa = 1.0 + middle(part % (1 << RADIUS_BITS), RADIUS_BITS);
            cubic(0.5 / f64::from(1u32 << RADIUS_BITS), |rest| {
                let away = binade * (mantissa + rest);
                let logarithm = if is_above { libm::log(away) } else { libm::log1p(-away) };
                libm::sqrt(-2.0 * logarithm)
            })
        }),
        angles: std::array::from_fn(|place| {
            let angle = TAU * middle(place, ANGLE_BITS);
            (libm::cos(angle), libm::sin(angle))
        }),
        powers: std::array::from_fn(|place| libm::exp2(place as f64 / f64::from(1u32 << POWER_BITS))),
    }
});

/// Coefficients of the cubic polynomial that equals `function` at the four Chebyshev nodes between -`half` and `half`
/// (Newton's divided differences).
fn cubic(half: f64, function: impl Fn(f64) -> f64) -> [f64; 4] {
    let nodes: [f64; 4] = std::array::from_fn(|node| half * libm::cos((2 * node + 1) as f64 * TAU / 16.0));
    let mut differences = nodes.map(function);
    for order in 1..4 {
        for node in (order..4).rev() {
            differences[node] = (differences[node] - differences[node - 1]) / (nodes[node] - nodes[node - order]);
        }
    }
    let mut coefficients = [0.0; 4];
    for node in (0..4).rev() {
        // Times (x - node), and the difference.
        for power in (1..4).rev() {
            coefficients[power] = coefficients[power - 1] - nodes[node] * coefficients[power];
        }
        coefficients[0] = differences[node] - nodes[node] * coefficients[0];
    }
    coefficients
}

/// A stream of random numbers for times, with the normal numbers that may be next computed ahead: nothing waits for them
/// then, and processors compute them beside what follows a draw.
#[derive(Clone, Debug)]
pub struct TimeDraws {
    random: Random,
    /// The next bits.
    words: [u64; 3],
    /// About what [`Random::normal`] would give now, and after one more number; no number where that is not known, as
    /// the second after a chance, which is mostly followed by a time.
    normals: [f64; 2],
}

impl TimeDraws {
    /// The numbers that `random` would give.
    #[must_use]
    pub fn new(mut random: Random) -> Self {
        let words = [random.bits(), random.bits(), random.bits()];
        let tables = &*TABLES;
        let normals = [normal(tables, words[0], words[1]), normal(tables, words[1], words[2])];
        Self { random, words, normals }
    }

    /// [`Random::chance`].
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 || probability >= 1.0 {
            return probability >= 1.0;
        }
        self.uniform() < probability
    }

    /// [`Random::uniform`].
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        let [first, second, third] = self.words;
        self.words = [second, third, self.random.bits()];
        self.normals = [self.normals[1], f64::NAN];
        uniform_of(first)
    }

    /// The whole part of `least + scale * exp(spread * normal)`, where `normal` is what [`Random::normal`] would give; 0
    /// if that is negative.
    #[inline]
    pub fn whole_log_normal(&mut self, least: f64, scale: f64, spread: f64) -> u64 {
        let [first, second, third] = self.words;
        let tables = &*TABLES;
        if self.normals[0].is_nan() {
            self.normals[0] = normal(tables, first, second);
        }
        let above = scale * power(tables, spread * self.normals[0]);
        self.words = [third, self.random.bits(), self.random.bits()];
        self.normals = [normal(tables, third, self.words[1]), normal(tables, self.words[1], self.words[2])];
        let value = least + above;
        let whole = value as i64;
        let margin = TOLERANCE * (least.abs() + above.abs());
        let fraction = value - whole as f64;
        // Neither holds if anything is not a number, or negative.
        if fraction > margin && fraction < 1.0 - margin && value < MOST {
            return whole as u64;
        }
        define(first, second, least, scale, spread)
    }
}

#[cold]
#[inline(never)]
fn define(first: u64, second: u64, least: f64, scale: f64, spread: f64) -> u64 {
    (least + scale * libm::exp(spread * definition_of_normal(first, second))) as u64
}

/// About the normal number that two draws of bits give; no number near the least and the largest, of which too little is
/// known.
#[inline]
fn normal(tables: &Tables, first: u64, second: u64) -> f64 {
    radius(tables, first >> (64 - FRACTION_BITS)) * cosine(tables, second)
}

/// The root of minus twice the logarithm of 1 less `numerator / 2^53`.
#[inline]
fn radius(tables: &Tables, numerator: u64) -> f64 {
    const FIRST: usize = ((1023 + LEAST_BITS) as usize) << RADIUS_BITS;
    const MANTISSA_BITS: u32 = 52;
    const REST: u64 = (1 << (MANTISSA_BITS - RADIUS_BITS)) - 1;
    let is_above = numerator >> (FRACTION_BITS - 1);
    let away = numerator.min((1 << FRACTION_BITS) - numerator);
    let bits = (away as i64 as f64).to_bits();
    let part = ((bits >> (MANTISSA_BITS - RADIUS_BITS)) as usize).wrapping_sub(FIRST);
    if part >= RADII {
        return f64::NAN;
    }
    let [constant, linear, square, cube] = tables.radii[part + is_above as usize * RADII];
    let mantissa = (bits & ((1 << MANTISSA_BITS) - 1)) | 1.0f64.to_bits();
    let rest = f64::from_bits(mantissa) - f64::from_bits((mantissa & !REST) | (REST / 2 + 1));
    (constant + linear * rest) + rest * rest * (square + cube * rest)
}

/// The cosine of as many turns as the highest 53 bits say.
#[inline]
fn cosine(tables: &Tables, bits: u64) -> f64 {
    const REST_BITS: u32 = FRACTION_BITS - ANGLE_BITS;
    const TURN: f64 = TAU / (1u64 << FRACTION_BITS) as f64;
    let (cosine, sine) = tables.angles[(bits >> (64 - ANGLE_BITS)) as usize];
    let rest = (bits >> (64 - FRACTION_BITS)) & ((1 << REST_BITS) - 1);
    let angle = (rest as i64 - (1 << (REST_BITS - 1))) as f64 * TURN;
    let square = angle * angle;
    (cosine - cosine * (square * 0.5)) - sine * (angle - angle * (square * (1.0 / 6.0)))
}

/// The exponential function between -64 and 64, and no number elsewhere.
#[inline]
fn power(tables: &Tables, exponent: f64) -> f64 {
    if exponent.abs() > MOST_EXPONENT {
        return f64::NAN;
    }
    const STEPS: f64 = (1u32 << POWER_BITS) as f64;
    let rounded = exponent * (STEPS / LN_2) + ROUNDING;
    let rest = exponent - (rounded - ROUNDING) * (LN_2 / STEPS);
    let steps = rounded.to_bits();
    let near_one = (1.0 + rest) + rest * rest * 0.5;
    let doublings = (steps >> POWER_BITS) << 52;
    f64::from_bits(tables.powers[steps as usize % (1 << POWER_BITS)].to_bits().wrapping_add(doublings)) * near_one
}

#[cfg(test)]
mod tests {
    use super::{definition_of_normal, normal, power, TimeDraws, LEAST_BITS, TABLES, TOLERANCE};
    use crate::random::Random;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    #[test]
    fn the_error_is_a_small_part_of_what_is_tolerated() {
        let mut random = Random::new(1, "error");
        let mut words: Vec<(u64, u64)> = (0..200_000).map(|_| (random.bits(), random.bits())).collect();
        // Where the radius is nearest to 0, where it is largest, and where cosines have their zeros and turns.
        words.extend((0..2_000).map(|step| (((1 << LEAST_BITS) + step) << 11, random.bits())));
        words.extend((0..2_000).map(|step| (((1 << 53) - (1 << LEAST_BITS) - step) << 11, random.bits())));
        words.extend((0..2_000).map(|step| (((1 << 52) - 1_000 + step) << 11, random.bits())));
        words.extend((0..=u64::from(u16::MAX)).map(|angle| (random.bits(), (angle << 48).wrapping_sub(angle % 3))));
        let mut largest: f64 = 0.0;
        for (first, second) in words {
            let exact = libm::exp(1.2 * definition_of_normal(first, second));
            let approximation = power(&TABLES, 1.2 * normal(&TABLES, first, second));
            if !approximation.is_nan() {
                largest = largest.max((approximation / exact - 1.0).abs());
            }
        }
        assert!(largest > 0.0 && largest < TOLERANCE / 2.0, "{largest:e}");
    }

    #[test]
    fn it_is_the_definition_a_million_times() {
        let (mut fast, mut slow) = (TimeDraws::new(Random::new(2, "equal")), Random::new(2, "equal"));
        for number in 0..1_000_000u32 {
            let (least, spread) = (f64::from(number % 5_000), f64::from(number % 13) / 10.0);
            let scale = f64::from(number % 997) * 40.0;
            let defined = (least + scale * libm::exp(spread * slow.normal())) as u64;
            assert_eq!(fast.whole_log_normal(least, scale, spread), defined, "{number}");
        }
    }

    proptest! {
        #[test]
        fn chances_and_times_may_come_in_any_order(seed in any::<u64>(), chances in prop::collection::vec(any::<bool>(), 1..60)) {
            let (mut fast, mut slow) = (TimeDraws::new(Random::new(seed, "any")), Random::new(seed, "any"));
            for (number, is_chance) in chances.into_iter().enumerate() {
                let probability = (number % 5) as f64 / 4.0; // 0 and 1 take no number
                if is_chance {
                    prop_assert_eq!(fast.chance(probability), slow.chance(probability));
                } else {
                    let defined = (3_000.0 + 4_000.0 * libm::exp(0.8 * slow.normal())) as u64;
                    prop_assert_eq!(fast.whole_log_normal(3_000.0, 4_000.0, 0.8), defined);
                }
            }
        }

        #[test]
        fn it_is_the_definition_for_any_numbers(
            seed in any::<u64>(), least in -1e3f64..1e13, scale in -1e3f64..1e13, spread in -100f64..100.0,
        ) {
            let (mut fast, mut slow) = (TimeDraws::new(Random::new(seed, "any")), Random::new(seed, "any"));
            let defined = (least + scale * libm::exp(spread * slow.normal())) as u64;
            prop_assert_eq!(fast.whole_log_normal(least, scale, spread), defined);
        }

        #[test]
        fn it_is_the_definition_for_any_float(
            seed in any::<u64>(), least in any::<f64>(), scale in any::<f64>(), spread in any::<f64>(),
        ) {
            let (mut fast, mut slow) = (TimeDraws::new(Random::new(seed, "any")), Random::new(seed, "any"));
            let defined = (least + scale * libm::exp(spread * slow.normal())) as u64;
            prop_assert_eq!(fast.whole_log_normal(least, scale, spread), defined);
        }
    }
}

//! The time that something with a processor takes: log-normally distributed above a least time, longer after a pause.

use crate::hop::Nanoseconds;
use crate::random::Random;

/// A time drawn from a log-normal distribution above a least one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessingTime {
    pub least_ns: f64,
    pub median_ns: f64,
    /// Standard deviation of the natural logarithm of what is above the least.
    pub spread: f64,
}

impl ProcessingTime {
    /// All of it `factor` times as long.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { least_ns: factor * self.least_ns, median_ns: factor * self.median_ns, ..self }
    }

    /// A time, with what is above the least `factor` times as long.
    pub fn draw(self, factor: f64, random: &mut Random) -> Nanoseconds {
        let above_ns = factor * (self.median_ns - self.least_ns) * libm::exp(self.spread * random.normal());
        (self.least_ns + above_ns) as Nanoseconds
    }
}

/// How a pause makes what follows it slower: caches fill with other things, processors sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cooling {
    /// The pause after which nothing gets slower any more.
    pub full_ns: f64,
    /// The power of the pause, as a share of `full_ns`, with which it grows until then.
    pub exponent: f64,
}

impl Cooling {
    /// How much a pause counts, from 0 to 1; all of it where there was nothing before.
    #[must_use]
    pub fn share(&self, pause_ns: Option<Nanoseconds>) -> f64 {
        let Some(pause_ns) = pause_ns else { return 1.0 };
        let share = (pause_ns as f64 / self.full_ns).min(1.0);
        if self.exponent == 1.0 {
            share
        } else {
            libm::pow(share, self.exponent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cooling, ProcessingTime};
    use crate::random::Random;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    #[test]
    fn half_of_the_times_lie_below_the_median() {
        let (time, mut random) =
            (ProcessingTime { least_ns: 3e3, median_ns: 7e3, spread: 0.8 }, Random::new(1, "times"));
        let drawn: Vec<_> = (0..10_000).map(|_| time.draw(1.0, &mut random)).collect();
        assert!(drawn.iter().all(|ns| *ns >= 3000));
        // Standard deviation of a count of halves: 50; four of them are allowed.
        assert!(drawn.iter().filter(|ns| **ns < 7000).count().abs_diff(5000) < 200);
    }

    proptest! {
        #[test]
        fn longer_pauses_count_more(exponent in 0.1..3.0_f64, pause in 0..200_000_000_u64, more in 0..100_000_000_u64) {
            let cooling = Cooling { full_ns: 1e8, exponent };
            let (short, long) = (cooling.share(Some(pause)), cooling.share(Some(pause + more)));
            prop_assert!((0.0..=1.0).contains(&short) && short <= long);
            prop_assert_eq!(cooling.share(None), 1.0);
        }
    }
}

//! The time that something with a processor takes: log-normally distributed above a least time, or as measured, and longer
//! after a pause.

use crate::hop::Nanoseconds;
use crate::random::Random;

/// Measured quantiles of a time.
pub const QUANTILES: usize = 33;

/// A time drawn from a log-normal distribution above a least one, or from measured quantiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessingTime {
    pub least_ns: f64,
    pub median_ns: f64,
    /// Standard deviation of the natural logarithm of what is above the least.
    pub spread: f64,
    /// Times in nanoseconds that equal shares of the times lie between, from the least to the greatest; drawn from these
    /// where there are any.
    pub quantiles_ns: Option<[f64; QUANTILES]>,
}

impl ProcessingTime {
    /// A log-normal distribution.
    #[must_use]
    pub const fn log_normal(least_ns: f64, median_ns: f64, spread: f64) -> Self {
        Self { least_ns, median_ns, spread, quantiles_ns: None }
    }

    /// A time, with what is above the least `factor` times as long.
    #[inline]
    pub fn draw(&self, factor: f64, random: &mut Random) -> Nanoseconds {
        self.draw_longer(1.0, factor, random)
    }

    /// The same where all of it is `longer` times as long.
    #[inline]
    pub fn draw_longer(&self, longer: f64, factor: f64, random: &mut Random) -> Nanoseconds {
        if let Some(quantiles_ns) = &self.quantiles_ns {
            return drawn_from(quantiles_ns, random.uniform(), longer * factor);
        }
        let (least_ns, median_ns) = (longer * self.least_ns, longer * self.median_ns);
        random.whole_log_normal(least_ns, factor * (median_ns - least_ns), self.spread)
    }

    /// The same for one of a run of acts, where there are measured quantiles.
    #[inline]
    pub fn draw_in_run(&self, longer: f64, factor: f64, run: &mut RunOfActs, random: &mut Random) -> Nanoseconds {
        match &self.quantiles_ns {
            Some(quantiles_ns) => drawn_from(quantiles_ns, run.next_share(random.uniform()), longer * factor),
            None => self.draw_longer(longer, factor, random),
        }
    }
}

/// Acts that follow one another on a processor whose caches are filled alike: where in its distribution the time of one
/// lies, the next one's does nearly.
///
/// The share of times that are shorter moves by a uniformly distributed step and is folded back at 0 and 1, so that it
/// stays uniformly distributed, and times as distributed as they are without runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOfActs {
    /// The longest step; with 1 the next share does not depend on the last.
    reach: f64,
    share: Option<f64>,
}

impl RunOfActs {
    /// `persistence` is 0 where acts are independent, and less than 1.
    #[must_use]
    pub fn new(persistence: f64) -> Self {
        Self { reach: 1.0 - persistence, share: None }
    }

    #[inline]
    fn next_share(&mut self, drawn: f64) -> f64 {
        if self.reach >= 1.0 {
            return drawn;
        }
        let share = self.share.map_or(drawn, |last| folded(last + self.reach * (2.0 * drawn - 1.0)));
        self.share = Some(share);
        share
    }
}

fn folded(share: f64) -> f64 {
    let positive = share.abs();
    if positive > 1.0 {
        2.0 - positive
    } else {
        positive
    }
}

/// All of a measured time is as much longer as the machine is slower: which part of it could not be shorter is not
/// measured.
fn drawn_from(quantiles_ns: &[f64; QUANTILES], share: f64, factor: f64) -> Nanoseconds {
    (factor * between(quantiles_ns, share)) as Nanoseconds
}

/// The quantile at `share`, between two neighbours by their logarithms, since tails are long.
fn between(quantiles_ns: &[f64; QUANTILES], share: f64) -> f64 {
    let place = share * (QUANTILES - 1) as f64;
    let below = (place as usize).min(QUANTILES - 2);
    let (low, high) = (quantiles_ns[below].max(1.0), quantiles_ns[below + 1].max(1.0));
    low * libm::pow(high / low, place - below as f64)
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
    #[inline]
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
    use super::{Cooling, ProcessingTime, RunOfActs};
    use crate::random::Random;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn draws(seed: u64) -> Random {
        Random::new(seed, "times")
    }

    #[test]
    fn half_of_the_times_lie_below_the_median() {
        let (time, mut random) = (ProcessingTime::log_normal(3e3, 7e3, 0.8), draws(1));
        let drawn: Vec<_> = (0..10_000).map(|_| time.draw(1.0, &mut random)).collect();
        assert!(drawn.iter().all(|ns| *ns >= 3000));
        // Standard deviation of a count of halves: 50; four of them are allowed.
        assert!(drawn.iter().filter(|ns| **ns < 7000).count().abs_diff(5000) < 200);
    }

    #[test]
    fn measured_times_are_drawn_between_their_quantiles() {
        let mut quantiles_ns = [1e4; super::QUANTILES];
        quantiles_ns[16..].fill(1e6); // half of the times are short, and few in between
        quantiles_ns[0] = 5e3;
        let time = ProcessingTime { quantiles_ns: Some(quantiles_ns), ..ProcessingTime::log_normal(0.0, 0.0, 0.0) };
        let mut random = draws(1);
        let drawn: Vec<_> = (0..3200).map(|_| time.draw(1.0, &mut random)).collect();
        assert!(drawn.iter().all(|ns| (5_000..=1_000_000).contains(ns)));
        // Standard deviations of the counts: 28 and 17; four of each are allowed.
        assert!(drawn.iter().filter(|ns| **ns < 10_001).count().abs_diff(1500) < 112);
        assert!(drawn.iter().filter(|ns| (10_001..999_999).contains(*ns)).count().abs_diff(100) < 68);
        assert_eq!(time.draw_longer(2.0, 1.0, &mut draws(2)) / 2, time.draw(1.0, &mut draws(2)));
    }

    #[test]
    fn a_slower_machine_takes_longer_for_all_of_a_measured_time() {
        let time = ProcessingTime {
            quantiles_ns: Some(std::array::from_fn(|number| 1e6 + 1e4 * number as f64)),
            ..ProcessingTime::log_normal(0.0, 0.0, 0.0)
        };
        let (usual, slower) = (time.draw(1.0, &mut draws(3)), time.draw(2.0, &mut draws(3)));
        assert!(slower.abs_diff(2 * usual) <= 1, "{usual} {slower}");
    }

    #[test]
    fn acts_of_a_run_are_alike_and_as_distributed_as_others() {
        let time = ProcessingTime {
            quantiles_ns: Some(std::array::from_fn(|number| 1e6 + 1e5 * number as f64)),
            ..ProcessingTime::log_normal(0.0, 0.0, 0.0)
        };
        let drawn = |persistence| {
            let (mut run, mut random) = (RunOfActs::new(persistence), draws(4));
            (0..20_000).map(|_| time.draw_in_run(1.0, 1.0, &mut run, &mut random) as f64).collect::<Vec<_>>()
        };
        let autocorrelation = |times: &[f64]| {
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let product = |pair: &[f64]| (pair[0] - mean) * (pair[1] - mean);
            let variance = times.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
            times.windows(2).map(product).sum::<f64>() / variance
        };
        let (alone, alike) = (drawn(0.0), drawn(0.5));
        assert!(autocorrelation(&alone).abs() < 0.03);
        // The sum of sin(pi k h) / (pi k h) / k^4 over odd k, with h = 1 - 0.5, times 96 / pi^4.
        assert!((autocorrelation(&alike) - 0.625).abs() < 0.03, "{}", autocorrelation(&alike));
        // Quarters of a uniform distribution; neighbours are alike, so that counts spread more than independent ones.
        for quarter in 1..4 {
            let below = alike.iter().filter(|one| **one < 1e6 + 8e5 * f64::from(quarter)).count();
            assert!(below.abs_diff(5_000 * quarter as usize) < 700, "{quarter} {below}");
        }
        let mut random = draws(4);
        assert!(alone.iter().all(|one| *one == time.draw(1.0, &mut random) as f64));
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

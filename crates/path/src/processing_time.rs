//! The time that something with a processor takes: log-normally distributed above a least time, or as measured, and longer
//! after a pause.

use crate::hop::Nanoseconds;
use crate::random::{LogNormal, Random};

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
}

/// A time that is drawn again and again.
#[derive(Clone, Debug)]
pub struct DrawnTime {
    least_ns: f64,
    /// What the median is above the least, and what that is multiplied by.
    above_ns: f64,
    multiple: LogNormal,
    quantiles_ns: Option<[f64; QUANTILES]>,
}

impl From<ProcessingTime> for DrawnTime {
    fn from(time: ProcessingTime) -> Self {
        let ProcessingTime { least_ns, median_ns, spread, quantiles_ns } = time;
        Self { least_ns, above_ns: median_ns - least_ns, multiple: LogNormal::new(spread), quantiles_ns }
    }
}

impl DrawnTime {
    /// A time, with what is above the least `factor` times as long.
    #[inline(always)]
    pub fn draw(&self, factor: f64, random: &mut Random) -> Nanoseconds {
        self.draw_longer(1.0, factor, random)
    }

    /// The same where all of it is `longer` times as long.
    #[inline(always)]
    pub fn draw_longer(&self, longer: f64, factor: f64, random: &mut Random) -> Nanoseconds {
        if let Some(quantiles_ns) = &self.quantiles_ns {
            return drawn_from(quantiles_ns, random.uniform(), longer * factor);
        }
        // Times are far from where signed numbers end, and conversion to unsigned ones takes twice as long.
        (longer * (self.least_ns + factor * self.above_ns * self.multiple.draw(random))) as i64 as Nanoseconds
    }

    /// The same for one of a run of acts, where there are measured quantiles.
    #[inline(always)]
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

/// Which acts find the processor taken by something else: each with the same chance, whichever were before.
#[derive(Clone, Debug)]
pub struct Interruptions {
    share: f64,
    /// Acts before the next one that is interrupted.
    acts_left: u64,
}

impl Interruptions {
    /// Of this share of acts.
    #[must_use]
    pub fn new(share: f64, random: &mut Random) -> Self {
        Self { share, acts_left: acts_between(share, random) }
    }

    /// Whether the next act is interrupted.
    #[inline(always)]
    pub fn interrupt(&mut self, random: &mut Random) -> bool {
        let interrupts = self.acts_left == 0;
        self.acts_left = if interrupts { acts_between(self.share, random) } else { self.acts_left - 1 };
        interrupts
    }
}

/// Acts until one that is interrupted, which are geometrically distributed.
#[inline(never)]
fn acts_between(share: f64, random: &mut Random) -> u64 {
    if share <= 0.0 {
        u64::MAX
    } else {
        (libm::log1p(-random.uniform()) / libm::log1p(-share.min(1.0))) as u64
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
#[inline(never)]
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
    #[inline(always)]
    pub fn share(&self, pause_ns: Option<Nanoseconds>) -> f64 {
        let Some(pause_ns) = pause_ns else { return 1.0 };
        // Conversion of unsigned numbers takes longer, and pauses are far from where signed ones end.
        let share = (pause_ns as i64 as f64 / self.full_ns).min(1.0);
        if self.exponent == 1.0 {
            share
        } else {
            libm::pow(share, self.exponent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cooling, DrawnTime, Interruptions, ProcessingTime, RunOfActs, QUANTILES};
    use crate::random::Random;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn draws(seed: u64) -> Random {
        Random::new(seed, "times")
    }

    fn measured(quantiles_ns: [f64; QUANTILES]) -> DrawnTime {
        ProcessingTime { quantiles_ns: Some(quantiles_ns), ..ProcessingTime::log_normal(0.0, 0.0, 0.0) }.into()
    }

    #[test]
    fn half_of_the_times_lie_below_the_median() {
        let (time, mut random) = (DrawnTime::from(ProcessingTime::log_normal(3e3, 7e3, 0.8)), draws(1));
        let drawn: Vec<_> = (0..10_000).map(|_| time.draw(1.0, &mut random)).collect();
        assert!(drawn.iter().all(|ns| *ns >= 3000));
        // Standard deviation of a count of halves: 50; four of them are allowed.
        assert!(drawn.iter().filter(|ns| **ns < 7000).count().abs_diff(5000) < 200);
    }

    #[test]
    fn measured_times_are_drawn_between_their_quantiles() {
        let mut quantiles_ns = [1e4; QUANTILES];
        quantiles_ns[16..].fill(1e6); // half of the times are short, and few in between
        quantiles_ns[0] = 5e3;
        let time = measured(quantiles_ns);
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
        let time = measured(std::array::from_fn(|number| 1e6 + 1e4 * number as f64));
        let (usual, slower) = (time.draw(1.0, &mut draws(3)), time.draw(2.0, &mut draws(3)));
        assert!(slower.abs_diff(2 * usual) <= 1, "{usual} {slower}");
    }

    #[test]
    fn acts_are_interrupted_each_with_the_same_chance() {
        let interrupted = |share| {
            let mut random = draws(5);
            let mut interruptions = Interruptions::new(share, &mut random);
            (0..100_000).map(|_| interruptions.interrupt(&mut random)).collect::<Vec<_>>()
        };
        let count = |acts: &[bool]| acts.iter().filter(|act| **act).count();
        assert_eq!((count(&interrupted(0.0)), count(&interrupted(1.0))), (0, 100_000));
        let acts = interrupted(0.1);
        // Standard deviations: 95, and 29 of neighbours that both are; four of each are allowed.
        assert!(count(&acts).abs_diff(10_000) < 380, "{}", count(&acts));
        let pairs = acts.windows(2).filter(|pair| pair[0] && pair[1]).count();
        assert!(pairs.abs_diff(1_000) < 140, "{pairs}");
    }

    #[test]
    fn acts_of_a_run_are_alike_and_as_distributed_as_others() {
        let time = measured(std::array::from_fn(|number| 1e6 + 1e5 * number as f64));
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

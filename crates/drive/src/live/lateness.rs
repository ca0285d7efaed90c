//! How late packets left, counted in bins of equal ratio.

use pepscope_path::Nanoseconds;

/// Each power of two is cut in so many bins: a bin is at most an eighth wider than its lower bound.
const BINS_A_POWER: usize = 8;
const BINS: usize = (64 - 2) * BINS_A_POWER;

/// Counts of spans of time.
#[derive(Clone, Debug)]
pub struct Lateness {
    bins: Vec<u64>,
    count: u64,
    sum_ns: u128,
    maximum_ns: Nanoseconds,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { bins: vec![0; BINS], count: 0, sum_ns: 0, maximum_ns: 0 }
    }
}

impl Lateness {
    #[inline]
    pub fn record(&mut self, late_ns: Nanoseconds) {
        self.bins[bin(late_ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(late_ns);
        self.maximum_ns = self.maximum_ns.max(late_ns);
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// 0 where nothing was counted.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum_ns as f64 / self.count as f64
    }

    #[must_use]
    pub fn maximum_ns(&self) -> Nanoseconds {
        self.maximum_ns
    }

    /// What a `share` (0-1) of all does not exceed, to an eighth above; 0 where nothing was counted.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Nanoseconds {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (index, count) in self.bins.iter().enumerate() {
            below += count;
            if below >= rank {
                return upper_ns(index).min(self.maximum_ns);
            }
        }
        self.maximum_ns
    }

    /// Bins that have any: the least span that is too long for it, and its count.
    pub fn bins(&self) -> impl Iterator<Item = (Nanoseconds, u64)> + '_ {
        self.bins.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, count)| (upper_ns(index), *count))
    }

    /// Takes the counts of `other`, without allocating.
    pub fn copy_from(&mut self, other: &Self) {
        self.bins.copy_from_slice(&other.bins);
        (self.count, self.sum_ns, self.maximum_ns) = (other.count, other.sum_ns, other.maximum_ns);
    }
}

/// Spans below eight nanoseconds have a bin each; then the three bits behind the leading one distinguish them.
#[inline]
fn bin(span_ns: Nanoseconds) -> usize {
    if span_ns < BINS_A_POWER as u64 {
        return span_ns as usize;
    }
    let power = span_ns.ilog2() as usize;
    let within = (span_ns >> (power - 3)) as usize & (BINS_A_POWER - 1);
    (power - 2) * BINS_A_POWER + within
}

fn upper_ns(index: usize) -> Nanoseconds {
    let next = index + 1;
    if next < BINS_A_POWER {
        return next as u64;
    }
    let power = next / BINS_A_POWER + 2;
    if power >= 64 {
        return Nanoseconds::MAX;
    }
    ((BINS_A_POWER + next % BINS_A_POWER) as u64) << (power - 3)
}

#[cfg(test)]
mod tests {
    use super::{bin, upper_ns, Lateness, BINS};

    #[test]
    fn every_span_has_the_bin_that_holds_it() {
        for span in (0..200).chain((3..64).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1])) {
            let index = bin(span);
            assert!(index < BINS && span < upper_ns(index), "{span}");
            assert!(index == 0 || span >= upper_ns(index - 1), "{span}");
        }
        assert!(bin(u64::MAX) == BINS - 1 && upper_ns(BINS - 1) == u64::MAX);
    }

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let mut lateness = Lateness::default();
        for microseconds in 1..=1000_u64 {
            lateness.record(microseconds * 1000);
        }
        for share in [0.5, 0.95, 0.99] {
            let exact = share * 1e6;
            let reported = lateness.quantile_ns(share) as f64;
            assert!(reported >= exact && reported <= exact * 1.125, "{reported}");
        }
        assert_eq!((lateness.quantile_ns(1.0), lateness.maximum_ns()), (1_000_000, 1_000_000));
        assert!((lateness.mean_ns() - 500_500.0).abs() < 1e-6);
        assert_eq!(lateness.bins().map(|(_, count)| count).sum::<u64>(), 1000);
    }

    #[test]
    fn nothing_counted_is_never_late() {
        let lateness = Lateness::default();
        assert_eq!((lateness.quantile_ns(0.99), lateness.count(), lateness.bins().count()), (0, 0, 0));
    }
}

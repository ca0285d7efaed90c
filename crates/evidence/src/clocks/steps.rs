//! A clock relation in pieces: the longest stretches of time in which one line separates the clouds, one after another.
//!
//! Each stretch is found by bisection over its last point, as the spared points make the answer no monotone function of
//! it: a gap that only sparing opens is not asked for while the clouds are separable, by however little. Bounds on the
//! gap by the drift 0 alone, taken in one pass over the points, decide most of the tests; where the clouds overlap much,
//! few points from the beginning on show it, and the others are not looked at.

use crate::clocks::order_statistics::Smallest;
use crate::clocks::point::{rounding_ns, Ceiling, Point};
use crate::clocks::separation::{separate, separate_most, Separation, Spared};

/// What a stretch is asked for.
#[derive(Clone, Copy, Debug)]
pub struct StepSearch {
    pub drift_limit: f64,
    pub spared: Spared,
    /// Drifts tried where points are spared; at least two.
    pub drift_steps: usize,
    /// Slack that each stretch has to leave.
    pub needed_ns: f64,
    /// The search ends without an answer where more steps are needed.
    pub most_steps: usize,
}

/// A stretch and the line between its clouds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    pub separation: Separation,
    pub start_ns: f64,
    pub end_ns: f64,
}

impl StepSearch {
    /// The stretches from the first point to the last.
    pub fn run(&self, lower: &Ceiling, upper: &Ceiling) -> Option<Vec<Stretch>> {
        let mut times: Vec<f64> = lower.points().iter().chain(upper.points()).map(|point| point.x_ns).collect();
        // Two clouds in order of time, which a stable sort merges.
        times.sort_by(f64::total_cmp);
        times.dedup();
        let rounding_ns = rounding_ns(lower.points(), self.drift_limit) + rounding_ns(upper.points(), self.drift_limit);
        // Most searches end without an answer, so that lines are looked for when all stretches are known.
        let mut found = Vec::new();
        let mut rest = times.as_slice();
        while let Some(&start_ns) = rest.first() {
            if found.len() > self.most_steps {
                return None;
            }
            let mut from = Beginning {
                search: self,
                start_ns,
                lower: Prefixes::new(lower.points(), start_ns, self.spared.lower),
                upper: Prefixes::new(upper.points(), start_ns, self.spared.upper),
                rounding_ns,
            };
            let (mut good, mut bad) = (0, rest.len());
            while bad - good > 1 {
                let middle = (good + bad) / 2;
                if from.holds_until(rest[middle]) {
                    good = middle;
                } else {
                    bad = middle;
                }
            }
            found.push((from, rest[good]));
            rest = &rest[good + 1..];
        }
        Some(found.iter().map(|(from, last_ns)| from.stretch(*last_ns)).collect())
    }
}

/// All stretches that begin at one time.
struct Beginning<'a> {
    search: &'a StepSearch,
    start_ns: f64,
    lower: Prefixes<'a>,
    upper: Prefixes<'a>,
    rounding_ns: f64,
}

impl Beginning<'_> {
    fn holds_until(&mut self, last_ns: f64) -> bool {
        let end_ns = last_ns + 1.0;
        self.decided_by_no_drift(end_ns).unwrap_or_else(|| self.separation(end_ns).slack_ns >= self.search.needed_ns)
    }

    fn stretch(&self, last_ns: f64) -> Stretch {
        let end_ns = last_ns + 1.0;
        Stretch { separation: self.separation(end_ns), start_ns: self.start_ns, end_ns }
    }

    fn separation(&self, end_ns: f64) -> Separation {
        let &StepSearch { drift_limit, spared, drift_steps, .. } = self.search;
        let (lower, upper) = (self.lower.until(end_ns), self.upper.until(end_ns));
        let exact = separate(lower, upper, drift_limit);
        separate_most(lower, upper, drift_limit, spared, drift_steps, exact)
    }

    /// Whether the slack is enough, where the gap at the drift 0 shows it: over the drifts it changes by no more than
    /// limit times duration.
    fn decided_by_no_drift(&mut self, end_ns: f64) -> Option<bool> {
        let &StepSearch { drift_limit, spared, needed_ns, .. } = self.search;
        if needed_ns <= 0.0 {
            return None;
        }
        let (lower, upper) = (self.lower.until(end_ns).len(), self.upper.until(end_ns).len());
        let most_change_ns = drift_limit * (end_ns - self.start_ns) + self.rounding_ns;
        // Heights only fall with more points: what few points show to be too narrow stays so.
        let can_be_narrow = lower > spared.lower && upper > spared.upper;
        let mut shown = if can_be_narrow { FIRST_POINTS } else { usize::MAX };
        while shown < lower.max(upper) {
            let (gap_ns, spared_gap_ns) = self.gaps_ns(lower.min(shown), upper.min(shown));
            if gap_ns + most_change_ns < 0.0 && spared_gap_ns + most_change_ns < needed_ns {
                return Some(false);
            }
            shown = shown.saturating_mul(4);
        }
        let (gap_ns, spared_gap_ns) = self.gaps_ns(lower, upper);
        if gap_ns >= needed_ns {
            return Some(true);
        }
        if gap_ns + most_change_ns >= 0.0 {
            return None;
        }
        if !can_be_narrow {
            return Some(spared != Spared::default());
        }
        (spared_gap_ns + most_change_ns < needed_ns).then_some(false)
    }

    /// The gap at the drift 0 between so many of the first points of both clouds, and where points are spared.
    fn gaps_ns(&mut self, lower: usize, upper: usize) -> (f64, f64) {
        let (low, high) = (self.lower.heights_ns(lower), self.upper.heights_ns(upper));
        (high.0 + low.0, high.1 + low.1)
    }
}

/// So many points of each cloud are looked at first.
const FIRST_POINTS: usize = 16;

/// A cloud from some time on, and for each number of its first points, as far as they were looked at, the least and the
/// first unspared height.
struct Prefixes<'a> {
    points: &'a [Point],
    smallest: Smallest,
    heights_ns: Vec<(f64, f64)>,
}

impl<'a> Prefixes<'a> {
    fn new(points: &'a [Point], start_ns: f64, spared: usize) -> Self {
        let points = &points[points.partition_point(|point| point.x_ns < start_ns)..];
        Self { points, smallest: Smallest::new(spared), heights_ns: vec![(f64::INFINITY, f64::INFINITY)] }
    }

    /// The least and the first unspared height of so many points.
    fn heights_ns(&mut self, count: usize) -> (f64, f64) {
        while self.heights_ns.len() <= count {
            let before = self.heights_ns.len() - 1;
            let y_ns = self.points[before].y_ns;
            self.smallest.push(y_ns);
            let least_ns = self.heights_ns[before].0.min(y_ns);
            self.heights_ns.push((least_ns, self.smallest.last().unwrap_or(f64::INFINITY)));
        }
        self.heights_ns[count]
    }

    fn until(&self, end_ns: f64) -> &'a [Point] {
        &self.points[..self.points.partition_point(|point| point.x_ns < end_ns)]
    }
}

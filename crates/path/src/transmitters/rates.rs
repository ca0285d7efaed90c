//! Rates that change over time, in steps.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::hop::{Nanoseconds, NEVER};
use crate::random::Random;
use crate::settings::SettingsError;

/// A rate and how long it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    pub duration_ns: Nanoseconds,
    /// 0 is an outage.
    pub rate_bit_s: u64,
}

/// What follows the last step of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterLastStep {
    #[default]
    Repeat,
    /// The last rate holds for ever.
    Hold,
}

/// A rate as a function of time, constant between its changes.
#[derive(Clone, Debug, PartialEq)]
pub enum RateProfile {
    Steps {
        steps: Vec<RateStep>,
        after: AfterLastStep,
    },
    /// Every `period_ns` a new rate, uniform in a band and independent of the others (seed 003, Figs 8 and 11).
    Random {
        period_ns: Nanoseconds,
        low_bit_s: u64,
        high_bit_s: u64,
    },
}

impl RateProfile {
    /// One rate for ever.
    #[must_use]
    pub fn constant(rate_bit_s: u64) -> Self {
        Self::Steps { steps: vec![RateStep { duration_ns: NEVER, rate_bit_s }], after: AfterLastStep::Hold }
    }

    fn check(&self) -> Result<(), SettingsError> {
        match self {
            Self::Steps { steps, after } => {
                if steps.iter().any(|step| step.duration_ns == 0) {
                    return Err(SettingsError::new("duration_ns of a rate step", 0, "at least 1 ns"));
                }
                let rate_bit_s = match after {
                    AfterLastStep::Repeat => steps.iter().map(|step| step.rate_bit_s).max(),
                    AfterLastStep::Hold => steps.last().map(|step| step.rate_bit_s),
                };
                match (rate_bit_s, after) {
                    (None, _) => Err(SettingsError::new("number of rate steps", 0, "at least 1")),
                    (Some(0), AfterLastStep::Repeat) => {
                        Err(SettingsError::new("highest rate_bit_s of the steps", 0, "at least 1 bit/s"))
                    }
                    (Some(0), AfterLastStep::Hold) => {
                        Err(SettingsError::new("rate_bit_s that holds for ever", 0, "at least 1 bit/s"))
                    }
                    _ => Ok(()),
                }
            }
            Self::Random { period_ns, low_bit_s, high_bit_s } => {
                if *period_ns == 0 {
                    return Err(SettingsError::new("period_ns of the rate", 0, "at least 1 ns"));
                }
                if low_bit_s > high_bit_s {
                    return Err(SettingsError::new("low_bit_s", low_bit_s, "at most high_bit_s"));
                }
                if *high_bit_s == 0 {
                    return Err(SettingsError::new("high_bit_s", 0, "at least 1 bit/s"));
                }
                Ok(())
            }
        }
    }
}

/// A span of time of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) end_ns: Nanoseconds,
    pub(crate) rate_bit_s: u64,
}

/// A profile that is cheap to copy.
#[derive(Clone, Debug)]
enum Source {
    Steps { steps: Arc<[RateStep]>, after: AfterLastStep },
    Random { period_ns: Nanoseconds, low_bit_s: u64, high_bit_s: u64 },
}

/// The spans of a profile, made when they are needed and stored until they are removed.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    source: Source,
    random: Random,
    next_step: usize,
    spans: VecDeque<Span>,
    /// The end of the spans that were drawn.
    made_until: Nanoseconds,
    /// The start of the first stored span.
    kept_from: Nanoseconds,
    /// Bits times nanoseconds a second that the profile offered before that.
    forgotten_work: u128,
}

impl Rates {
    pub(crate) fn new(profile: &RateProfile, seed: u64, name: &str) -> Result<Self, SettingsError> {
        profile.check()?;
        let source = match profile {
            RateProfile::Steps { steps, after } => Source::Steps { steps: steps.as_slice().into(), after: *after },
            &RateProfile::Random { period_ns, low_bit_s, high_bit_s } => {
                Source::Random { period_ns, low_bit_s, high_bit_s }
            }
        };
        let mut rates = Self {
            source,
            random: Random::new(seed, name),
            next_step: 0,
            spans: VecDeque::new(),
            made_until: 0,
            kept_from: 0,
            forgotten_work: 0,
        };
        rates.make_next();
        Ok(rates)
    }

    /// Drops what ended by `time`, which later calls must not ask for.
    #[inline]
    pub(crate) fn forget_before(&mut self, time: Nanoseconds) {
        while self.made_until <= time && self.made_until != NEVER {
            self.make_next();
        }
        while let Some(&Span { end_ns, rate_bit_s }) = self.spans.front() {
            if end_ns > time || end_ns == NEVER {
                break;
            }
            self.forgotten_work += u128::from(rate_bit_s) * u128::from(end_ns - self.kept_from);
            self.kept_from = end_ns;
            self.spans.pop_front();
        }
    }

    /// The span at `time`, when it begins (or later, if it did so before what is kept), and when the first that is kept
    /// ends.
    pub(crate) fn span_at(&mut self, time: Nanoseconds) -> (Span, Nanoseconds, Nanoseconds) {
        let index = self.index_at(time);
        let before = index.checked_sub(1).map_or(self.kept_from, |before| self.span(before).end_ns);
        (self.span(index), before, self.span(0).end_ns)
    }

    /// Makes spans up to and including the one at `time`.
    pub(crate) fn make_until(&mut self, time: Nanoseconds) {
        while self.made_until <= time && self.made_until != NEVER {
            self.make_next();
        }
    }

    /// The stored span with number `index`.
    #[inline]
    pub(crate) fn span(&mut self, index: usize) -> Span {
        while self.spans.len() <= index && self.made_until != NEVER {
            self.make_next();
        }
        let last = Span { end_ns: NEVER, rate_bit_s: 0 };
        self.spans.get(index).or(self.spans.back()).copied().unwrap_or(last)
    }

    /// Number of the stored span at `time`.
    #[inline]
    pub(crate) fn index_at(&mut self, time: Nanoseconds) -> usize {
        self.make_until(time);
        self.spans.partition_point(|span| span.end_ns <= time && span.end_ns != NEVER)
    }

    /// Bits times nanoseconds a second that the profile offers from `from` to `to`, both within the stored spans.
    pub(crate) fn work(&self, from: Nanoseconds, to: Nanoseconds) -> u128 {
        let first = self.spans.partition_point(|span| span.end_ns <= from);
        let mut work = 0;
        let mut position = from;
        for span in self.spans.range(first..) {
            if position >= to {
                break;
            }
            let end = span.end_ns.min(to);
            work += u128::from(span.rate_bit_s) * u128::from(end - position);
            position = end;
        }
        work
    }

    /// Bits times nanoseconds a second that the profile offers from the start to `until`, not before the stored spans.
    pub(crate) fn work_until(&self, until: Nanoseconds) -> u128 {
        let mut ahead = self.clone();
        ahead.forget_before(until);
        ahead.forgotten_work + ahead.work(ahead.kept_from, until)
    }

    /// The rate at `time`, which is not before the stored spans.
    pub(crate) fn rate_at(&self, time: Nanoseconds) -> u64 {
        let mut ahead = self.clone();
        let index = ahead.index_at(time);
        ahead.span(index).rate_bit_s
    }

    /// The rate of the earliest stored span.
    pub(crate) fn first_rate_bit_s(&self) -> u64 {
        self.spans.front().map_or(0, |span| span.rate_bit_s)
    }

    fn make_next(&mut self) {
        let (duration_ns, rate_bit_s) = match &self.source {
            Source::Steps { steps, after } => {
                let is_last = self.next_step + 1 == steps.len();
                let step = steps[self.next_step];
                self.next_step = if is_last { 0 } else { self.next_step + 1 };
                match (is_last, after) {
                    (true, AfterLastStep::Hold) => (NEVER, step.rate_bit_s),
                    _ => (step.duration_ns, step.rate_bit_s),
                }
            }
            Source::Random { period_ns, low_bit_s, high_bit_s } => {
                let rate = self.random.uniform_between(*low_bit_s as f64, *high_bit_s as f64);
                (*period_ns, libm::round(rate) as u64)
            }
        };
        self.made_until = self.made_until.saturating_add(duration_ns);
        self.spans.push_back(Span { end_ns: self.made_until, rate_bit_s });
    }
}

#[cfg(test)]
mod tests {
    use super::{AfterLastStep, RateProfile, RateStep, Rates};
    use crate::hop::{Nanoseconds, NEVER};

    fn steps(list: &[(Nanoseconds, u64)], after: AfterLastStep) -> RateProfile {
        let steps = list.iter().map(|&(duration_ns, rate_bit_s)| RateStep { duration_ns, rate_bit_s }).collect();
        RateProfile::Steps { steps, after }
    }

    #[test]
    fn lists_repeat_or_hold() {
        let at = |after, times: &[u64]| -> Vec<u64> {
            let rates = Rates::new(&steps(&[(10, 5), (20, 7)], after), 1, "rates").unwrap();
            times.iter().map(|&time| rates.rate_at(time)).collect()
        };
        assert_eq!(at(AfterLastStep::Repeat, &[0, 9, 10, 29, 30, 39, 40, 309]), [5, 5, 7, 7, 5, 5, 7, 5]);
        assert_eq!(at(AfterLastStep::Hold, &[0, 9, 10, 29, 30, NEVER]), [5, 5, 7, 7, 7, 7]);
    }

    #[test]
    fn random_rates_fill_their_band_and_do_not_depend_on_when_they_are_asked_for() {
        let profile = RateProfile::Random { period_ns: 100, low_bit_s: 1_000, high_bit_s: 3_000 };
        let mut rates = Rates::new(&profile, 9, "rates").unwrap();
        let far = rates.rate_at(5_050);
        let drawn: Vec<u64> = (0..50_000u64)
            .map(|period| {
                rates.forget_before(100 * period);
                rates.rate_at(100 * period)
            })
            .collect();
        assert_eq!(drawn[50], far);
        assert!(drawn.iter().all(|rate| (1_000..=3_000).contains(rate)));
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        let deviation = 2_000.0 / 12f64.sqrt();
        assert!((mean - 2_000.0).abs() < 4.0 * deviation / (drawn.len() as f64).sqrt(), "{mean}");
        assert!(rates.spans.len() < 3);
    }

    #[test]
    fn profiles_without_an_end_of_outage_are_refused() {
        let refused = |profile: RateProfile| Rates::new(&profile, 1, "rates").unwrap_err().to_string();
        assert_eq!(
            refused(steps(&[(10, 5), (10, 0)], AfterLastStep::Hold)),
            "rate_bit_s that holds for ever must be at least 1 bit/s, got 0"
        );
        refused(steps(&[(10, 0), (10, 0)], AfterLastStep::Repeat));
        refused(steps(&[(0, 5)], AfterLastStep::Repeat));
        refused(steps(&[], AfterLastStep::Repeat));
        refused(RateProfile::Random { period_ns: 0, low_bit_s: 1, high_bit_s: 1 });
        refused(RateProfile::Random { period_ns: 1, low_bit_s: 2, high_bit_s: 1 });
        refused(RateProfile::Random { period_ns: 1, low_bit_s: 0, high_bit_s: 0 });
    }
}

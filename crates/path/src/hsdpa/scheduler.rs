//! Who is served in an interval.

/// How the Node-B chooses among the terminals that it could serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerKind {
    /// One after the other.
    RoundRobin,
    /// Serves the terminal that reports the best channel.
    MaximumCarrierToInterference,
    /// Proportional fair: serves the terminal whose rate exceeds its own average most, R(t) / T(t) with T averaged over
    /// Tc intervals (seed 002, section IV).
    #[default]
    ProportionalFair,
    /// Serves the terminal whose channel is best by its own mean and deviation: (q - mean of q) / deviation of q.
    ///
    /// De Bruin, Heijenk, El Zarki and Zan, "Fair channel-dependent scheduling in CDMA systems" (2003), normalise what
    /// a terminal's channel would need by its own running mean and deviation, so that far terminals compete on equal
    /// terms. Here q is the reported indicator (decibels in steps of 1.02) and both averages are exponential over Tc
    /// intervals.
    FairChannelDependent,
}

/// The scheduler's state of one terminal.
#[derive(Clone, Debug)]
pub struct Standing {
    average_bits: f64,
    mean_quality: f64,
    quality_variance: f64,
    samples: f64,
    last_served: u64,
}

/// Chooses among the terminals of one cell.
#[derive(Clone, Debug)]
pub struct Scheduler {
    kind: SchedulerKind,
    averaging_ttis: f64,
    standings: Vec<Standing>,
    /// Order of service: greater is later. Breaks ties in favour of who has waited longest.
    services: u64,
}

/// One terminal that could be served now.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub user: usize,
    pub quality: u8,
    /// Bits of the transport format that its indicator stands for.
    pub bits: u32,
}

impl Scheduler {
    #[must_use]
    pub fn new(kind: SchedulerKind, averaging_ttis: f64, users: usize) -> Self {
        let standings = (0..users)
            .map(|user| Standing {
                average_bits: 1.0,
                mean_quality: 0.0,
                quality_variance: 0.0,
                samples: 0.0,
                last_served: user as u64,
            })
            .collect();
        Self { kind, averaging_ttis, standings, services: users as u64 }
    }

    /// Takes note of what a terminal reports, whether or not it has anything to receive.
    #[inline]
    pub fn report(&mut self, user: usize, quality: u8) {
        if self.kind != SchedulerKind::FairChannelDependent {
            return;
        }
        let Some(standing) = self.standings.get_mut(user) else {
            return;
        };
        // The first Tc reports weigh alike, so that the averages do not start from an arbitrary value.
        standing.samples = (standing.samples + 1.0).min(self.averaging_ttis);
        let weight = 1.0 / standing.samples;
        let deviation = f64::from(quality) - standing.mean_quality;
        standing.mean_quality += weight * deviation;
        standing.quality_variance = (1.0 - weight) * (standing.quality_variance + weight * deviation * deviation);
    }

    /// The index in `candidates` of the one to serve first; `None` if there is none.
    #[must_use]
    pub fn choose(&self, candidates: &[Candidate]) -> Option<usize> {
        let mut best: Option<(f64, u64, usize)> = None;
        for (index, candidate) in candidates.iter().enumerate() {
            let Some(standing) = self.standings.get(candidate.user) else {
                continue;
            };
            let merit = match self.kind {
                SchedulerKind::RoundRobin => 0.0,
                SchedulerKind::MaximumCarrierToInterference => f64::from(candidate.quality),
                SchedulerKind::ProportionalFair => f64::from(candidate.bits) / standing.average_bits,
                SchedulerKind::FairChannelDependent => standing.relative_quality(candidate.quality),
            };
            let better = best.is_none_or(|(best_merit, best_served, _)| {
                merit > best_merit || (merit == best_merit && standing.last_served < best_served)
            });
            if better {
                best = Some((merit, standing.last_served, index));
            }
        }
        best.map(|(_, _, index)| index)
    }

    /// Takes note that `user` is sent `bits` in this interval.
    pub fn serve(&mut self, user: usize, bits: u32) {
        if let Some(standing) = self.standings.get_mut(user) {
            standing.average_bits += f64::from(bits) / self.averaging_ttis;
            standing.last_served = self.services;
            self.services += 1;
        }
    }

    /// Updates averages by `ttis` intervals; call it once in each interval before [`Self::serve`].
    pub fn elapse(&mut self, ttis: u64) {
        if self.kind != SchedulerKind::ProportionalFair {
            return;
        }
        let kept = 1.0 - 1.0 / self.averaging_ttis;
        let kept = if ttis == 1 { kept } else { libm::pow(kept, ttis as f64) };
        for standing in &mut self.standings {
            // Never to zero: after a long pause a terminal is first, with a finite priority.
            standing.average_bits = (standing.average_bits * kept).max(1.0);
        }
    }
}

impl Standing {
    fn relative_quality(&self, quality: u8) -> f64 {
        let deviation = libm::sqrt(self.quality_variance);
        if deviation > 0.0 {
            (f64::from(quality) - self.mean_quality) / deviation
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidate, Scheduler, SchedulerKind};

    fn candidate(user: usize, quality: u8) -> Candidate {
        Candidate { user, quality, bits: u32::from(quality) * 100 }
    }

    /// Serves `ttis` intervals with qualities given by interval; the users served, in order.
    fn run(kind: SchedulerKind, ttis: usize, qualities: impl Fn(usize) -> Vec<u8>) -> Vec<usize> {
        let mut scheduler = Scheduler::new(kind, 500.0, qualities(0).len());
        (0..ttis)
            .map(|tti| {
                let candidates: Vec<Candidate> =
                    qualities(tti).into_iter().enumerate().map(|(user, quality)| candidate(user, quality)).collect();
                for candidate in &candidates {
                    scheduler.report(candidate.user, candidate.quality);
                }
                let chosen = candidates[scheduler.choose(&candidates).unwrap()];
                scheduler.elapse(1);
                scheduler.serve(chosen.user, chosen.bits);
                chosen.user
            })
            .collect()
    }

    #[test]
    fn round_robin_goes_round() {
        assert_eq!(run(SchedulerKind::RoundRobin, 7, |_| vec![1, 30, 15]), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn the_best_channel_takes_everything_and_equals_take_turns() {
        assert_eq!(run(SchedulerKind::MaximumCarrierToInterference, 4, |_| vec![10, 11, 5]), [1, 1, 1, 1]);
        assert_eq!(run(SchedulerKind::MaximumCarrierToInterference, 4, |_| vec![11, 11, 5]), [0, 1, 0, 1]);
    }

    #[test]
    fn fair_channel_dependence_prefers_the_relatively_better_one() {
        // User 0 swings between 20 and 24, user 1 between 5 and 7, in opposite phase.
        let served =
            run(SchedulerKind::FairChannelDependent, 1000, |tti| if tti % 2 == 0 { vec![24, 5] } else { vec![20, 7] });
        assert!(served[10..].chunks(2).all(|pair| pair == [0, 1]), "{:?}", &served[..20]);
    }

    #[test]
    fn proportional_fairness_gives_equal_shares_of_time_to_steady_channels() {
        let served = run(SchedulerKind::ProportionalFair, 20_000, |_| vec![5, 20]);
        let first = served[10_000..].iter().filter(|&&user| user == 0).count();
        assert!((4_900..=5_100).contains(&first), "{first}");
    }

    #[test]
    fn without_terminals_to_serve_there_is_no_choice() {
        assert_eq!(Scheduler::new(SchedulerKind::RoundRobin, 500.0, 3).choose(&[]), None);
    }
}

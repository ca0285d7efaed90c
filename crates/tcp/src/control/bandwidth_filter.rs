//! The greatest of what was measured in the last ten rounds.

/// BtlBwFilterLen (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.1.1.5).
const ROUNDS: usize = 10;

/// A maximum over a window of [`ROUNDS`] rounds, the present one included.
///
/// Only a new measurement removes an old one: while there is none (all samples were limited by the application), what
/// was known about the path stays known.
#[derive(Clone, Debug, Default)]
pub(super) struct BandwidthFilter {
    maxima: [u64; ROUNDS],
    round: u64,
    maximum: u64,
}

impl BandwidthFilter {
    /// Takes `value`, measured in `round`, which never goes back.
    pub(super) fn update(&mut self, round: u64, value: u64) {
        if round > self.round {
            for passed in self.round + 1..=round.min(self.round + ROUNDS as u64) {
                self.maxima[place_of(passed)] = 0;
            }
            self.round = round;
            self.maximum = self.maxima.iter().copied().max().unwrap_or(0);
        }
        let place = &mut self.maxima[place_of(round)];
        *place = value.max(*place);
        self.maximum = self.maximum.max(value);
    }

    pub(super) fn maximum(&self) -> u64 {
        self.maximum
    }
}

fn place_of(round: u64) -> usize {
    (round % ROUNDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::BandwidthFilter;

    #[test]
    fn a_maximum_lasts_ten_rounds() {
        let mut filter = BandwidthFilter::default();
        filter.update(0, 100);
        for round in 1..10 {
            filter.update(round, 40);
            assert_eq!(filter.maximum(), 100);
        }
        filter.update(10, 40);
        assert_eq!(filter.maximum(), 40);
    }

    #[test]
    fn no_sample_is_dropped_before_a_new_one() {
        let mut filter = BandwidthFilter::default();
        filter.update(0, 100);
        filter.update(5, 60);
        filter.update(14, 50);
        assert_eq!(filter.maximum(), 60);
        filter.update(1_000, 10);
        assert_eq!(filter.maximum(), 10);
    }
}

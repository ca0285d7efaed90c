//! Packets that a link loses: random loss, independent or in bursts.

use crate::random::Random;
use crate::settings::{check_probability, SettingsError};

/// Which packets of a direction are lost on the way, after they were sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossSettings {
    #[default]
    None,
    /// Each one independently of the others.
    Independent { probability: f64 },
    /// A chain of two states that moves once a packet (Gilbert 1960; Elliott 1963), begun in its stationary state.
    GilbertElliott(GilbertElliott),
    /// Exactly the packets with these numbers, counted from 0 over those sent, in increasing order.
    Listed { numbers: Vec<u64> },
}

/// Transition and loss probabilities of the two states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    pub good_to_bad: f64,
    pub bad_to_good: f64,
    pub loss_in_good: f64,
    pub loss_in_bad: f64,
}

impl GilbertElliott {
    /// Long-run share of packets sent in the bad state.
    #[must_use]
    pub fn share_of_bad(&self) -> f64 {
        self.good_to_bad / (self.good_to_bad + self.bad_to_good)
    }

    /// Long-run share of packets that are lost.
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        let bad = self.share_of_bad();
        (1.0 - bad) * self.loss_in_good + bad * self.loss_in_bad
    }

    /// Mean number of consecutive losses: the loss rate over the probability that a loss follows a delivery.
    #[must_use]
    pub fn mean_burst_packets(&self) -> f64 {
        let bad = self.share_of_bad();
        let delivered_good = (1.0 - bad) * (1.0 - self.loss_in_good);
        let delivered_bad = bad * (1.0 - self.loss_in_bad);
        let then_good = delivered_good * (1.0 - self.good_to_bad) + delivered_bad * self.bad_to_good;
        let then_bad = delivered_good * self.good_to_bad + delivered_bad * (1.0 - self.bad_to_good);
        self.loss_rate() / (then_good * self.loss_in_good + then_bad * self.loss_in_bad)
    }

    fn check(&self) -> Result<(), SettingsError> {
        check_probability("good_to_bad", self.good_to_bad)?;
        check_probability("bad_to_good", self.bad_to_good)?;
        check_probability("loss_in_good", self.loss_in_good)?;
        check_probability("loss_in_bad", self.loss_in_bad)?;
        if self.good_to_bad + self.bad_to_good <= 0.0 {
            return Err(SettingsError::new("good_to_bad + bad_to_good", 0, "above 0 for a stationary state"));
        }
        Ok(())
    }
}

/// Decides packet by packet.
#[derive(Clone, Debug)]
pub struct Loss {
    process: Process,
    random: Random,
}

#[derive(Clone, Debug)]
enum Process {
    None,
    Independent { probability: f64 },
    GilbertElliott { chain: GilbertElliott, is_bad: bool },
    Listed { numbers: Vec<u64>, sent: u64, listed: usize },
}

impl Loss {
    /// The losses of the component called `name` in the run with `seed`.
    ///
    /// # Errors
    /// Refuses what is no probability, a chain without a stationary state, and a list out of order.
    pub fn new(settings: &LossSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        let mut random = Random::new(seed, name);
        let process = match settings {
            LossSettings::None => Process::None,
            LossSettings::Independent { probability } => {
                check_probability("loss probability", *probability)?;
                Process::Independent { probability: *probability }
            }
            LossSettings::GilbertElliott(chain) => {
                chain.check()?;
                Process::GilbertElliott { chain: *chain, is_bad: random.chance(chain.share_of_bad()) }
            }
            LossSettings::Listed { numbers } => {
                if let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
                    return Err(SettingsError::new("a listed loss", pair[1], "above the number before it"));
                }
                Process::Listed { numbers: numbers.clone(), sent: 0, listed: 0 }
            }
        };
        Ok(Self { process, random })
    }

    /// Whether the packet sent now is lost.
    #[inline]
    pub fn loses_next(&mut self) -> bool {
        !matches!(self.process, Process::None) && self.decide()
    }

    fn decide(&mut self) -> bool {
        match &mut self.process {
            Process::None => false,
            Process::Independent { probability } => self.random.chance(*probability),
            Process::GilbertElliott { chain, is_bad } => {
                let lost = self.random.chance(if *is_bad { chain.loss_in_bad } else { chain.loss_in_good });
                let leaves = if *is_bad { chain.bad_to_good } else { chain.good_to_bad };
                *is_bad ^= self.random.chance(leaves);
                lost
            }
            Process::Listed { numbers, sent, listed } => {
                let lost = numbers.get(*listed) == Some(sent);
                *sent += 1;
                *listed += usize::from(lost);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GilbertElliott, Loss, LossSettings};

    fn outcomes(settings: &LossSettings, packets: u32) -> Vec<bool> {
        let mut loss = Loss::new(settings, 11, "loss").unwrap();
        (0..packets).map(|_| loss.loses_next()).collect()
    }

    /// Share of losses and mean length of their runs.
    fn rate_and_burst(outcomes: &[bool]) -> (f64, f64) {
        let lost = outcomes.iter().filter(|&&lost| lost).count() as f64;
        let bursts = outcomes.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        (lost / outcomes.len() as f64, lost / bursts)
    }

    #[test]
    fn listed_packets_and_no_others_are_lost() {
        let lost = outcomes(&LossSettings::Listed { numbers: vec![0, 3, 4] }, 6);
        assert_eq!(lost, [true, false, false, true, true, false]);
        assert!(!outcomes(&LossSettings::None, 100).contains(&true));
    }

    #[test]
    fn independent_losses_have_their_rate_and_short_bursts() {
        let (rate, burst) = rate_and_burst(&outcomes(&LossSettings::Independent { probability: 0.1 }, 200_000));
        assert!((rate - 0.1).abs() < 4.0 * (0.09f64 / 200_000.0).sqrt(), "{rate}");
        assert!((burst - 1.0 / 0.9).abs() < 0.02, "{burst}");
    }

    #[test]
    fn bursty_losses_meet_their_closed_forms() {
        let gilbert = GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.25, loss_in_good: 0.0, loss_in_bad: 1.0 };
        assert!((gilbert.mean_burst_packets() - 4.0).abs() < 1e-12); // 1 / bad_to_good
        let elliott = GilbertElliott { good_to_bad: 0.02, bad_to_good: 0.1, loss_in_good: 0.01, loss_in_bad: 0.6 };
        for chain in [gilbert, elliott] {
            let (rate, burst) = rate_and_burst(&outcomes(&LossSettings::GilbertElliott(chain), 2_000_000));
            // The rate's relative error is about sqrt(2 burst / losses): below 1 % here; three of those are allowed.
            assert!((rate / chain.loss_rate() - 1.0).abs() < 0.03, "{rate} {}", chain.loss_rate());
            assert!((burst / chain.mean_burst_packets() - 1.0).abs() < 0.03, "{burst} {}", chain.mean_burst_packets());
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        let refused = |settings: LossSettings| Loss::new(&settings, 1, "loss").unwrap_err().to_string();
        assert_eq!(
            refused(LossSettings::Independent { probability: 1.5 }),
            "loss probability must be a probability from 0 to 1, got 1.5"
        );
        refused(LossSettings::Independent { probability: f64::NAN });
        let frozen = GilbertElliott { good_to_bad: 0.0, bad_to_good: 0.0, loss_in_good: 0.0, loss_in_bad: 1.0 };
        refused(LossSettings::GilbertElliott(frozen));
        refused(LossSettings::GilbertElliott(GilbertElliott { loss_in_bad: -0.1, bad_to_good: 0.5, ..frozen }));
        refused(LossSettings::Listed { numbers: vec![3, 3] });
    }
}

//! Random Early Detection (Floyd and Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993), with its gentle form.

use crate::hop::Nanoseconds;
use crate::random::Random;
use crate::settings::SettingsError;

/// What RED is told, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSettings {
    /// The average queue below which nothing is dropped.
    pub least_packets: f64,
    /// The average queue at which `most_probability` is reached.
    pub most_packets: f64,
    pub most_probability: f64,
    /// Share of a new sample in the average.
    pub weight: f64,
    /// Between `most_packets` and twice as many the probability rises to 1; else all is dropped above.
    pub is_gentle: bool,
}

impl Default for RedSettings {
    fn default() -> Self {
        Self { least_packets: 5.0, most_packets: 15.0, most_probability: 0.1, weight: 0.002, is_gentle: true }
    }
}

impl RedSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if !(self.least_packets >= 0.0 && self.most_packets > self.least_packets && self.most_packets.is_finite()) {
            return Err(SettingsError::new("most_packets", self.most_packets, "above least_packets"));
        }
        Ok(())
    }
}

/// What happens to a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Enters,
    /// It is marked where its sender understands marks, else dropped.
    Warned,
    Dropped,
}

#[derive(Clone, Debug)]
pub(super) struct Red {
    settings: RedSettings,
    /// The time of a small packet on the idle line: so often an empty queue counts as a sample.
    packet_ns: f64,
    average: f64,
    /// Packets since the last that was dropped; None below `least_packets`.
    since_drop: Option<u64>,
    idle_since_ns: Option<Nanoseconds>,
}

impl Red {
    /// `packet_ns` is how long a typical packet takes to send.
    pub(super) fn new(settings: RedSettings, packet_ns: f64) -> Self {
        Self { settings, packet_ns, average: 0.0, since_drop: None, idle_since_ns: Some(0) }
    }

    /// What becomes of a packet that finds so many waiting.
    pub(super) fn arrives(&mut self, now: Nanoseconds, waiting: usize, random: &mut Random) -> Fate {
        let RedSettings { least_packets, most_packets, most_probability, weight, is_gentle } = self.settings;
        match self.idle_since_ns.take() {
            Some(since_ns) if waiting == 0 => {
                let samples = now.saturating_sub(since_ns) as f64 / self.packet_ns;
                self.average *= libm::pow(1.0 - weight, samples);
            }
            _ => self.average += weight * (waiting as f64 - self.average),
        }
        let average = self.average;
        let raw = if average < least_packets {
            self.since_drop = None;
            return Fate::Enters;
        } else if average < most_packets {
            most_probability * (average - least_packets) / (most_packets - least_packets)
        } else if is_gentle && average < 2.0 * most_packets {
            most_probability + (1.0 - most_probability) * (average - most_packets) / most_packets
        } else {
            self.since_drop = Some(0);
            return Fate::Dropped;
        };
        let since = self.since_drop.map_or(0, |count| count + 1);
        self.since_drop = Some(since);
        // Equation 2 of the paper: drops at even distances rather than in bunches.
        let left = 1.0 - since as f64 * raw;
        if left <= 0.0 || random.chance((raw / left).min(1.0)) {
            self.since_drop = Some(0);
            return Fate::Warned;
        }
        Fate::Enters
    }

    /// The queue is empty from now on.
    pub(super) fn idles(&mut self, now: Nanoseconds) {
        self.idle_since_ns.get_or_insert(now);
    }
}

#[cfg(test)]
mod tests {
    use super::{Fate, Red, RedSettings};
    use crate::random::Random;

    /// Floyd and Jacobson, figure 2 and section IV: with an average that stands, distances are uniform on 1 to 1 / p - 1,
    /// since the packet after a drop counts as the first.
    #[test]
    fn distances_of_drops_are_uniform() {
        let mut random = Random::new(1, "red");
        let mut red = Red::new(RedSettings { weight: 1.0, ..RedSettings::default() }, 1e6);
        red.arrives(0, 10, &mut random);
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..400_000 {
            gap += 1;
            if red.arrives(0, 10, &mut random) == Fate::Warned {
                gaps.push(gap);
                gap = 0;
            }
        }
        // The probability is 0.05: distances from 1 to 19.
        let mean = gaps.iter().map(|&one| f64::from(one)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 10.0).abs() < 0.15, "{mean}");
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&19)));
        for length in 1..=19 {
            let share = gaps.iter().filter(|&&one| one == length).count() as f64 / gaps.len() as f64;
            assert!((share - 1.0 / 19.0).abs() < 0.006, "{length}: {share}");
        }
    }

    #[test]
    fn the_average_follows_and_forgets() {
        let mut random = Random::new(1, "red");
        let settings = RedSettings { weight: 0.5, least_packets: 3.0, most_packets: 6.0, ..RedSettings::default() };
        let mut red = Red::new(RedSettings { is_gentle: false, ..settings }, 1e6);
        let fates: Vec<Fate> = [0, 4, 4, 20, 20].map(|waiting| red.arrives(0, waiting, &mut random)).to_vec();
        // Averages 0, 2, 3, 11.5, 15.75.
        assert_eq!(fates[..2], [Fate::Enters; 2]);
        assert_eq!(fates[3..], [Fate::Dropped; 2]);
        red.idles(0);
        // After three idle packets 15.75 / 8 = 1.97 are left.
        assert_eq!(red.arrives(3_000_000, 0, &mut random), Fate::Enters);
        assert!((red.average - 15.75 / 8.0).abs() < 1e-9);
    }
}

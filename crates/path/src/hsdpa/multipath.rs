//! Multipath channels and their reception by a Rake receiver.

use super::fading::Rayleigh;
use super::transport_format::from_db;
use crate::{Nanoseconds, Random};

const CHIP_NS: f64 = 1e9 / 3.84e6;

/// A tapped delay line: delay in nanoseconds and mean power in dB of each path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// ITU-R M.1225, table 3, indoor office A.
    IndoorA,
    /// ITU-R M.1225, table 4, outdoor to indoor and pedestrian A.
    PedestrianA,
    /// ITU-R M.1225, table 4, outdoor to indoor and pedestrian B.
    PedestrianB,
    /// ITU-R M.1225, table 5, vehicular A.
    VehicularA,
    /// 3GPP TR 25.943, table 5.3, rural area; its direct path fades here like the others.
    RuralArea,
    /// One path.
    SinglePath,
}

impl Profile {
    fn paths(self) -> &'static [(f64, f64)] {
        match self {
            Self::IndoorA => {
                &[(0.0, 0.0), (50.0, -3.0), (110.0, -10.0), (170.0, -18.0), (290.0, -26.0), (310.0, -32.0)]
            }
            Self::PedestrianA => &[(0.0, 0.0), (110.0, -9.7), (190.0, -19.2), (410.0, -22.8)],
            Self::PedestrianB => {
                &[(0.0, 0.0), (200.0, -0.9), (800.0, -4.9), (1200.0, -8.0), (2300.0, -7.8), (3700.0, -23.9)]
            }
            Self::VehicularA => {
                &[(0.0, 0.0), (310.0, -1.0), (710.0, -9.0), (1090.0, -10.0), (1730.0, -15.0), (2510.0, -20.0)]
            }
            Self::RuralArea => &[
                (0.0, -5.2),
                (42.0, -6.4),
                (101.0, -8.4),
                (129.0, -9.3),
                (149.0, -10.0),
                (245.0, -13.1),
                (312.0, -15.3),
                (410.0, -18.5),
                (469.0, -20.4),
                (528.0, -22.4),
            ],
            Self::SinglePath => &[(0.0, 0.0)],
        }
    }

    /// Mean powers of the paths that a receiver of `fingers` fingers separates, strongest first, and of the rest; the sum is 1.
    ///
    /// Paths that fall into one chip interval (260 ns) cannot be resolved: independent Gaussian paths then add up to one
    /// with the sum of their powers. For seed 002's table 1 this leaves -18.1 dB of pedestrian A unrecovered by one finger.
    #[must_use]
    pub fn taps(self, fingers: usize) -> (Vec<f64>, f64) {
        let mut taps: Vec<(i64, f64)> = Vec::new();
        for &(delay_ns, power_db) in self.paths() {
            let chip = libm::round(delay_ns / CHIP_NS) as i64;
            match taps.iter_mut().find(|tap| tap.0 == chip) {
                Some(tap) => tap.1 += from_db(power_db),
                None => taps.push((chip, from_db(power_db))),
            }
        }
        let total: f64 = taps.iter().map(|tap| tap.1).sum();
        let mut powers: Vec<f64> = taps.into_iter().map(|tap| tap.1 / total).collect();
        powers.sort_by(|left, right| right.total_cmp(left));
        let missed = powers.iter().skip(fingers).sum();
        powers.truncate(fingers);
        (powers, missed)
    }
}

/// The fading paths between one terminal and its serving cell.
#[derive(Clone, Debug)]
pub struct Multipath {
    fingers: Vec<(f64, Rayleigh)>,
    unrecovered: Option<(f64, Rayleigh)>,
}

/// Powers of one interval, relative to the mean power received from the serving cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    /// Power that the fingers receive.
    pub collected: f64,
    /// Total power that arrives.
    pub arriving: f64,
    /// Sum over fingers of power times the own-cell power that reaches the terminal by other paths.
    self_interference: f64,
}

impl Received {
    /// Power of a channel without fading.
    pub const UNFADED: Self = Self { collected: 1.0, arriving: 1.0, self_interference: 0.0 };

    /// Signal-to-interference ratio of a transmission with the cell's whole power, after combining with the pilot's
    /// weights; `outside` is the power of other cells and noise, relative to the serving cell's mean power.
    ///
    /// Finger i receives g_i S against (T - g_i) S + I, T being all power that arrives from the serving cell; weighted by
    /// its pilot amplitude it adds g_i to the signal's amplitude and g_i (T - g_i + I) to the noise: seed 002, equation (3).
    #[must_use]
    pub fn rake_sinr(&self, outside: f64) -> f64 {
        self.collected * self.collected / (self.self_interference + self.collected * outside).max(f64::MIN_POSITIVE)
    }
}

impl Multipath {
    #[must_use]
    pub fn new(profile: Profile, fingers: usize, doppler_hz: f64, step: Nanoseconds, random: &mut Random) -> Self {
        let (powers, missed) = profile.taps(fingers);
        let fingers = powers.into_iter().map(|power| (power, Rayleigh::new(doppler_hz, step, random))).collect();
        let unrecovered = (missed > 0.0).then(|| (missed, Rayleigh::new(doppler_hz, step, random)));
        Self { fingers, unrecovered }
    }

    /// Goes to step number `step` at once.
    pub fn seek(&mut self, step: u64) {
        for (_, path) in self.fingers.iter_mut().chain(&mut self.unrecovered) {
            path.seek(step);
        }
    }

    /// Goes one step on.
    pub fn advance(&mut self) {
        for (_, path) in self.fingers.iter_mut().chain(&mut self.unrecovered) {
            path.advance();
        }
    }

    /// What arrives now.
    #[must_use]
    pub fn received(&self) -> Received {
        let missed = self.unrecovered.as_ref().map_or(0.0, |(power, path)| power * path.power());
        let (mut collected, mut squares) = (0.0, 0.0);
        for (power, path) in &self.fingers {
            let gain = power * path.power();
            collected += gain;
            squares += gain * gain;
        }
        let arriving = collected + missed;
        let self_interference = (collected * arriving - squares).max(0.0);
        Received { collected, arriving, self_interference }
    }
}

#[cfg(test)]
mod tests {
    use super::{Multipath, Profile, Received};
    use crate::{Random, MILLISECOND};

    #[test]
    fn table_1_of_seed_002_recovers_what_its_fingers_can() {
        let taps = |profile: Profile, fingers| {
            let (powers, missed) = profile.taps(fingers);
            assert!((powers.iter().sum::<f64>() + missed - 1.0).abs() < 1e-12);
            (powers.len(), 10.0 * libm::log10(missed))
        };
        let (fingers, missed_db) = taps(Profile::PedestrianA, 1);
        assert_eq!(fingers, 1);
        assert!((missed_db + 18.1).abs() < 0.1, "{missed_db}");
        assert_eq!(taps(Profile::PedestrianB, 5).0, 5);
        assert_eq!(taps(Profile::VehicularA, 4).0, 4);
        assert_eq!(taps(Profile::SinglePath, 1), (1, f64::NEG_INFINITY));
    }

    #[test]
    fn one_path_meets_no_interference_of_its_own_cell() {
        let received = Received { collected: 0.5, arriving: 0.5, self_interference: 0.0 };
        assert!((received.rake_sinr(0.1) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn two_equal_paths_limit_each_other() {
        // Two fingers of 1/2: signal 1, noise 2 * 1/2 * 1/2.
        let received = Received { collected: 1.0, arriving: 1.0, self_interference: 0.5 };
        assert!((received.rake_sinr(0.0) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn dispersion_caps_the_ratio_where_a_single_path_does_not() {
        let mean = |profile, fingers| {
            let mut random = Random::new(2, "multipath");
            let mut total = 0.0;
            for _ in 0..2000 {
                let multipath = Multipath::new(profile, fingers, 10.0, 2 * MILLISECOND, &mut random);
                total += libm::log10(multipath.received().rake_sinr(1e-3));
            }
            10.0 * total / 2000.0
        };
        assert!(mean(Profile::SinglePath, 1) > mean(Profile::PedestrianB, 5) + 15.0);
    }
}

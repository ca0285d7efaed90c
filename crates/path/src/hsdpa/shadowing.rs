//! Log-normal shadowing, correlated along the way and between sites.

use crate::Random;

/// Loss by obstacles on one terminal's paths to a number of sites.
///
/// Along the way the correlation is exp(-distance / correlation distance) (Gudmundson, "Correlation model for shadow
/// fading in mobile radio systems", Electronics Letters, 1991). A part common to all sites makes any two sites correlate;
/// sectors of a site share one value (seed 002, table 2: 0.5 between sites, 1.0 between sectors).
#[derive(Clone, Debug)]
pub struct Shadowing {
    near_terminal: f64,
    near_sites: Vec<f64>,
    weight_terminal: f64,
    weight_site: f64,
    correlation_distance_m: f64,
    random: Random,
}

impl Shadowing {
    /// Starts with a random value: standard deviation in dB, correlation between sites in [0, 1], correlation distance in metres.
    #[must_use]
    pub fn new(
        sites: usize,
        deviation_db: f64,
        site_correlation: f64,
        correlation_distance_m: f64,
        random: Random,
    ) -> Self {
        let mut shadowing = Self {
            near_terminal: 0.0,
            near_sites: vec![0.0; sites],
            weight_terminal: deviation_db * libm::sqrt(site_correlation),
            weight_site: deviation_db * libm::sqrt(1.0 - site_correlation),
            correlation_distance_m,
            random,
        };
        shadowing.travel(f64::INFINITY);
        shadowing
    }

    /// Advances by `metres`.
    pub fn travel(&mut self, metres: f64) {
        let kept = libm::exp(-metres / self.correlation_distance_m);
        let fresh = libm::sqrt(1.0 - kept * kept);
        for value in self.near_sites.iter_mut().chain([&mut self.near_terminal]) {
            *value = kept * *value + fresh * self.random.normal();
        }
    }

    /// Loss on the path to site number `site`, in dB; a negative value is a gain.
    #[must_use]
    pub fn loss_db(&self, site: usize) -> f64 {
        let near_site = self.near_sites.get(site).copied().unwrap_or(0.0);
        self.weight_terminal * self.near_terminal + self.weight_site * near_site
    }
}

#[cfg(test)]
mod tests {
    use super::Shadowing;
    use crate::Random;

    #[test]
    fn deviation_and_correlations_are_as_asked() {
        let (deviation, draws) = (8.0, 20_000);
        let mut shadowing = Shadowing::new(2, deviation, 0.5, 50.0, Random::new(4, "shadowing"));
        let (mut squares, mut between_sites, mut along) = (0.0, 0.0, 0.0);
        for _ in 0..draws {
            shadowing.travel(f64::INFINITY);
            let here = shadowing.loss_db(0);
            squares += here * here;
            between_sites += here * shadowing.loss_db(1);
            shadowing.travel(25.0);
            along += here * shadowing.loss_db(0);
        }
        let variance = deviation * deviation;
        let draws = f64::from(draws);
        assert!((squares / draws / variance - 1.0).abs() < 0.04);
        assert!((between_sites / draws / variance - 0.5).abs() < 0.04);
        assert!((along / draws / variance - libm::exp(-0.5)).abs() < 0.04);
    }

    #[test]
    fn many_small_steps_decorrelate_like_one_large_one() {
        let draws = 4000;
        let mut along = 0.0;
        let mut shadowing = Shadowing::new(1, 1.0, 0.0, 50.0, Random::new(6, "shadowing"));
        for _ in 0..draws {
            let here = shadowing.loss_db(0);
            for _ in 0..100 {
                shadowing.travel(0.25);
            }
            along += here * shadowing.loss_db(0);
        }
        assert!((along / f64::from(draws) - libm::exp(-0.5)).abs() < 0.08);
    }
}

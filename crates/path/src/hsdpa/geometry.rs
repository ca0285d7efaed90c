//! Nineteen three-sector sites on a hexagonal torus: no site is at an edge.

use core::f64::consts::PI;

use crate::Random;

/// A centre, six sites around it and twelve around those.
pub const SITES: usize = 19;
pub const SECTORS_A_SITE: usize = 3;

/// A place in the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub x_m: f64,
    pub y_m: f64,
}

/// The places of sites and the directions of their sectors.
#[derive(Clone, Debug)]
pub struct Layout {
    site_distance_m: f64,
    sites: [Point; SITES],
    images: [Point; 7],
    boresight_deg: f64,
}

/// The position of a terminal relative to a site, by the shortest way on the torus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bearing {
    pub distance_m: f64,
    /// Counter-clockwise from the x axis, in degrees.
    pub angle_deg: f64,
}

impl Layout {
    /// Sites `site_distance_m` apart; the first of the three sectors points to `boresight_deg`.
    #[must_use]
    pub fn new(site_distance_m: f64, boresight_deg: f64) -> Self {
        let mut sites = [Point::default(); SITES];
        let mut places = sites.iter_mut();
        for ring in 0i32..=2 {
            for (q, r) in grid().filter(|&(q, r)| ring_of(q, r) == ring) {
                if let Some(place) = places.next() {
                    *place = grid_point(q, r, site_distance_m);
                }
            }
        }
        // A cluster of 3² + 3 * 2 + 2² = 19 sites tiles the plane by the vector (3, 2) and its turns by 60 degrees.
        let mut images = [Point::default(); 7];
        let (mut q, mut r) = (3, 2);
        for image in images.iter_mut().skip(1) {
            *image = grid_point(q, r, site_distance_m);
            (q, r) = (-r, q + r);
        }
        Self { site_distance_m, sites, images, boresight_deg }
    }

    #[must_use]
    pub fn site(&self, site: usize) -> Point {
        self.sites.get(site).copied().unwrap_or_default()
    }

    /// Gain from `site` to `place`.
    #[must_use]
    pub fn bearing(&self, site: usize, place: Point) -> Bearing {
        let from = self.site(site);
        let mut nearest = (f64::INFINITY, 0.0, 0.0);
        for image in &self.images {
            let (x, y) = (place.x_m - from.x_m + image.x_m, place.y_m - from.y_m + image.y_m);
            let square = x * x + y * y;
            if square < nearest.0 {
                nearest = (square, x, y);
            }
        }
        Bearing { distance_m: libm::sqrt(nearest.0), angle_deg: libm::atan2(nearest.2, nearest.1) * 180.0 / PI }
    }

    /// Gain in dB of `sector`'s antenna towards `angle_deg`, relative to its greatest one.
    #[must_use]
    pub fn antenna_gain_db(&self, sector: usize, angle_deg: f64) -> f64 {
        antenna_gain_db(angle_deg - self.boresight_deg - 360.0 / SECTORS_A_SITE as f64 * sector as f64)
    }

    /// A place drawn uniformly from the hexagon around `site`.
    #[must_use]
    pub fn draw_near(&self, site: usize, random: &mut Random) -> Point {
        let half = self.site_distance_m / 2.0;
        let reach = self.site_distance_m / libm::sqrt(3.0);
        loop {
            let x = random.uniform_between(-reach, reach);
            let y = random.uniform_between(-reach, reach);
            let inside = [0.0, PI / 3.0, 2.0 * PI / 3.0]
                .iter()
                .all(|&angle| libm::fabs(x * libm::cos(angle) + y * libm::sin(angle)) <= half);
            if inside {
                let centre = self.site(site);
                return Point { x_m: centre.x_m + x, y_m: centre.y_m + y };
            }
        }
    }
}

/// Pattern of a 70 degree antenna in dB, relative to its greatest gain: -min(12 (angle / 70)², 20) (3GPP TR 25.996,
/// 4.5.1).
#[must_use]
pub fn antenna_gain_db(angle_deg: f64) -> f64 {
    let turned = libm::fmod(angle_deg, 360.0);
    let angle = if turned > 180.0 {
        turned - 360.0
    } else if turned < -180.0 {
        turned + 360.0
    } else {
        turned
    };
    let ratio = angle / 70.0;
    -(12.0 * ratio * ratio).min(20.0)
}

fn grid() -> impl Iterator<Item = (i32, i32)> {
    (-2..=2).flat_map(|q| (-2..=2).map(move |r| (q, r)))
}

/// How many rings around the centre a site of the grid is.
fn ring_of(q: i32, r: i32) -> i32 {
    q.abs().max(r.abs()).max((q + r).abs())
}

fn grid_point(q: i32, r: i32, site_distance_m: f64) -> Point {
    let (q, r) = (f64::from(q), f64::from(r));
    Point { x_m: site_distance_m * (q + r / 2.0), y_m: site_distance_m * r * libm::sqrt(3.0) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::{antenna_gain_db, Layout, Point, SECTORS_A_SITE, SITES};
    use crate::Random;

    #[test]
    fn every_site_has_the_same_neighbours() {
        let layout = Layout::new(2800.0, 30.0);
        let root_of_three = libm::sqrt(3.0);
        for site in 0..SITES {
            let mut distances: Vec<f64> = (0..SITES)
                .filter(|&other| other != site)
                .map(|other| layout.bearing(site, layout.site(other)).distance_m / 2800.0)
                .collect();
            distances.sort_by(f64::total_cmp);
            let expected = [1.0, root_of_three, 2.0].into_iter().flat_map(|distance| [distance; 6]);
            for (distance, expected) in distances.iter().zip(expected) {
                assert!((distance - expected).abs() < 1e-9, "site {site}: {distances:?}");
            }
        }
    }

    #[test]
    fn a_place_far_out_is_seen_around_the_edge() {
        let layout = Layout::new(1000.0, 30.0);
        let shifted = Point { x_m: 1000.0 * (3.0 + 1.0) + 10.0, y_m: 1000.0 * 2.0 * libm::sqrt(3.0) / 2.0 };
        let bearing = layout.bearing(0, shifted);
        assert!((bearing.distance_m - 10.0).abs() < 1e-6);
        assert!(bearing.angle_deg.abs() < 1e-6);
    }

    #[test]
    fn the_pattern_is_three_decibels_down_at_half_its_width() {
        assert!((antenna_gain_db(35.0) + 3.0).abs() < 1e-9);
        assert!((antenna_gain_db(-325.0) + 3.0).abs() < 1e-9);
        assert!((antenna_gain_db(180.0) + 20.0).abs() < 1e-9);
        let layout = Layout::new(1000.0, 30.0);
        for sector in 0..SECTORS_A_SITE {
            assert!(layout.antenna_gain_db(sector, 30.0 + 120.0 * sector as f64).abs() < 1e-9);
        }
    }

    #[test]
    fn places_near_a_site_are_nearest_to_it() {
        let layout = Layout::new(1000.0, 30.0);
        let mut random = Random::new(1, "places");
        for site in 0..SITES {
            for _ in 0..50 {
                let place = layout.draw_near(site, &mut random);
                let own = layout.bearing(site, place).distance_m;
                assert!((0..SITES).all(|other| layout.bearing(other, place).distance_m >= own - 1e-9));
            }
        }
    }
}

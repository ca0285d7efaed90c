//! What one terminal receives, interval by interval.

use super::fading::doppler_hz;
use super::geometry::{Layout, Point, SECTORS_A_SITE, SITES};
use super::multipath::{Multipath, Received};
use super::settings::{CellularSettings, Placement, Radio, SingleCellSettings, UserSettings};
use super::shadowing::Shadowing;
use super::transport_format::from_db;
use crate::{Nanoseconds, Random};

/// Thermal noise in the 3.84 MHz of one carrier, in dBm: -174 dBm/Hz + 10 log10(3.84e6).
const THERMAL_NOISE_DBM: f64 = -108.16;

/// Shadowing moves on after this share of its correlation distance: the step's deviation is then a tenth of the whole one,
/// less than one channel quality indicator.
const SHADOWING_STEP: f64 = 0.005;

/// The channel between a terminal and the cell that serves it.
#[derive(Clone, Debug)]
pub struct Channel {
    multipath: Option<Multipath>,
    shadowing: Option<Shadowing>,
    surroundings: Surroundings,
    metres_a_tti: f64,
    ttis_a_shadowing_step: u64,
    next_shadowing: u64,
    tti: u64,
}

#[derive(Clone, Debug)]
enum Surroundings {
    Cells {
        serving_site: usize,
        /// Gains without shadowing: of the serving sector, and of all three sectors of each site together.
        serving_gain: f64,
        site_gains: Box<[f64; SITES]>,
        other_cell_load: f64,
        /// Noise relative to a sector's power.
        noise: f64,
        /// Interference of other cells and noise, relative to the serving cell's mean received power.
        outside: f64,
    },
    Alone {
        link_gain: f64,
        shadowing_gain: f64,
        power_mw: f64,
        intra_cell_mw: f64,
        inter_cell_mw: f64,
    },
    Mean {
        sinr: f64,
    },
}

/// A terminal's channel and the number of the cell (3 * site + sector) that it counts to.
pub struct Placed {
    pub channel: Channel,
    pub cell: usize,
}

impl Channel {
    /// Puts a terminal where its settings say. `name` and `seed` give it random numbers of its own.
    #[must_use]
    pub fn place(radio: &Radio, user: &UserSettings, tti: Nanoseconds, seed: u64, name: &str) -> Placed {
        let carrier_hz = match radio {
            Radio::Cellular(cellular) => cellular.carrier_hz,
            Radio::SingleCell(single) => single.carrier_hz,
        };
        let mut fading_random = Random::new(seed, &format!("{name}/fading"));
        let doppler_hz = user.doppler_hz.unwrap_or_else(|| doppler_hz(user.speed_km_h, carrier_hz));
        let multipath =
            user.profile.map(|profile| Multipath::new(profile, user.fingers, doppler_hz, tti, &mut fading_random));
        let place_random = Random::new(seed, &format!("{name}/place"));
        let shadowing_random = Random::new(seed, &format!("{name}/shadowing"));
        let (surroundings, shadowing, cell) = match (radio, user.placement) {
            (_, Placement::MeanSinr(sinr_db)) => (Surroundings::Mean { sinr: from_db(sinr_db) }, None, 0),
            (Radio::Cellular(cellular), placement) => among_cells(cellular, placement, place_random, shadowing_random),
            (Radio::SingleCell(single), placement) => alone(single, placement, shadowing_random),
        };
        let metres_a_tti = user.speed_km_h / 3.6 * tti as f64 * 1e-9;
        let correlation_distance_m = match radio {
            Radio::Cellular(cellular) => cellular.shadowing.correlation_distance_m,
            Radio::SingleCell(single) => single.shadowing.correlation_distance_m,
        };
        let ttis_a_shadowing_step = if metres_a_tti > 0.0 {
            libm::floor(SHADOWING_STEP * correlation_distance_m / metres_a_tti).max(1.0) as u64
        } else {
            u64::MAX
        };
        let mut channel = Self {
            multipath,
            shadowing,
            surroundings,
            metres_a_tti,
            ttis_a_shadowing_step,
            next_shadowing: ttis_a_shadowing_step,
            tti: 0,
        };
        channel.shadow();
        Placed { channel, cell }
    }

    /// Goes to interval number `tti`, not backwards.
    pub fn go_to(&mut self, tti: u64) {
        if tti == self.tti + 1 {
            if let Some(multipath) = &mut self.multipath {
                multipath.advance();
            }
        } else if tti != self.tti {
            if let Some(multipath) = &mut self.multipath {
                multipath.seek(tti);
            }
        }
        self.tti = tti;
        if tti >= self.next_shadowing {
            let since = tti - (self.next_shadowing - self.ttis_a_shadowing_step);
            self.next_shadowing = tti.saturating_add(self.ttis_a_shadowing_step);
            if let Some(shadowing) = &mut self.shadowing {
                shadowing.travel(since as f64 * self.metres_a_tti);
            }
            self.shadow();
        }
    }

    /// Signal-to-interference ratio of a transmission with all of the cell's power.
    #[must_use]
    pub fn sinr(&self) -> f64 {
        let received = self.multipath.as_ref().map_or(Received::UNFADED, Multipath::received);
        match &self.surroundings {
            Surroundings::Cells { outside, .. } => received.rake_sinr(*outside),
            Surroundings::Alone { link_gain, shadowing_gain, power_mw, intra_cell_mw, inter_cell_mw } => {
                let gain = link_gain * shadowing_gain * received.collected;
                power_mw * gain / (intra_cell_mw * gain + inter_cell_mw)
            }
            Surroundings::Mean { sinr } => sinr * received.collected,
        }
    }

    /// Brings what depends on shadowing up to date.
    fn shadow(&mut self) {
        let Some(shadowing) = &self.shadowing else {
            return;
        };
        match &mut self.surroundings {
            Surroundings::Cells { serving_site, serving_gain, site_gains, other_cell_load, noise, outside } => {
                let (mut serving, mut all) = (0.0, 0.0);
                for (site, gain) in site_gains.iter().enumerate() {
                    let shadowing_gain = from_db(-shadowing.loss_db(site));
                    all += gain * shadowing_gain;
                    if site == *serving_site {
                        serving = *serving_gain * shadowing_gain;
                    }
                }
                *outside = (*other_cell_load * (all - serving) + *noise) / serving;
            }
            Surroundings::Alone { shadowing_gain, .. } => *shadowing_gain = from_db(-shadowing.loss_db(0)),
            Surroundings::Mean { .. } => {}
        }
    }
}

fn among_cells(
    cellular: &CellularSettings,
    placement: Placement,
    mut random: Random,
    shadowing_random: Random,
) -> (Surroundings, Option<Shadowing>, usize) {
    let layout = Layout::new(cellular.site_distance_m, cellular.boresight_deg);
    let place = match placement {
        Placement::At(place) => place,
        _ => {
            let site = random.below(SITES as u32) as usize;
            layout.draw_near(site, &mut random)
        }
    };
    let shadowing = Shadowing::new(
        SITES,
        cellular.shadowing.deviation_db,
        cellular.site_correlation,
        cellular.shadowing.correlation_distance_m,
        shadowing_random,
    );
    let gains = sector_gains(cellular, &layout, place);
    let (mut best, mut serving) = (0.0, (0, 0));
    for (site, sectors) in gains.iter().enumerate() {
        let shadowing_gain = from_db(-shadowing.loss_db(site));
        for (sector, gain) in sectors.iter().enumerate() {
            if gain * shadowing_gain > best {
                best = gain * shadowing_gain;
                serving = (site, sector);
            }
        }
    }
    let noise_dbm = THERMAL_NOISE_DBM + cellular.noise_figure_db;
    let surroundings = Surroundings::Cells {
        serving_site: serving.0,
        serving_gain: gains[serving.0][serving.1],
        site_gains: Box::new(gains.map(|sectors| sectors.iter().sum())),
        other_cell_load: cellular.other_cell_load,
        noise: from_db(noise_dbm - cellular.total_power_dbm),
        outside: 0.0,
    };
    let cell = match placement {
        Placement::InSector { site, sector } => SECTORS_A_SITE * site + sector,
        _ => SECTORS_A_SITE * serving.0 + serving.1,
    };
    (surroundings, Some(shadowing), cell)
}

/// Gain of each sector of each site at `place`, without shadowing.
fn sector_gains(cellular: &CellularSettings, layout: &Layout, place: Point) -> [[f64; SECTORS_A_SITE]; SITES] {
    let mut gains = [[0.0; SECTORS_A_SITE]; SITES];
    for (site, sectors) in gains.iter_mut().enumerate() {
        let bearing = layout.bearing(site, place);
        let site_db = cellular.antenna_gain_dbi - cellular.path_loss.loss_db(bearing.distance_m);
        for (sector, gain) in sectors.iter_mut().enumerate() {
            *gain = from_db(site_db + layout.antenna_gain_db(sector, bearing.angle_deg));
        }
    }
    gains
}

fn alone(
    single: &SingleCellSettings,
    placement: Placement,
    random: Random,
) -> (Surroundings, Option<Shadowing>, usize) {
    let distance_m = match placement {
        Placement::Distance(metres) => metres,
        _ => single.path_loss.minimum_distance_m,
    };
    let shadowing =
        Shadowing::new(1, single.shadowing.deviation_db, 0.0, single.shadowing.correlation_distance_m, random);
    let surroundings = Surroundings::Alone {
        link_gain: from_db(single.antenna_gain_dbi - single.path_loss.loss_db(distance_m)),
        shadowing_gain: 1.0,
        power_mw: from_db(single.power_dbm),
        intra_cell_mw: from_db(single.intra_cell_interference_dbm),
        inter_cell_mw: from_db(single.inter_cell_interference_dbm),
    };
    (surroundings, Some(shadowing), 0)
}

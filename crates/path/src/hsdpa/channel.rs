//! Reception of one terminal in each interval.

use super::fading::doppler_hz;
use super::geometry::{Layout, Point, SECTORS_A_SITE, SITES};
use super::multipath::{Multipath, Received};
use super::settings::{Bearer, CellularSettings, Placement, Radio, SingleCellSettings, UserSettings};
use super::shadowing::Shadowing;
use super::transport_format::from_db;
use crate::{Nanoseconds, Random};

/// Thermal noise in the 3.84 MHz of one carrier, in dBm: -174 dBm/Hz + 10 log10(3.84e6).
const THERMAL_NOISE_DBM: f64 = -108.16;

/// Shadowing is updated after this share of its correlation distance: the step's deviation is then a tenth of the whole one,
/// less than one channel quality indicator.
const SHADOWING_STEP: f64 = 0.005;

/// Sectors within this many dB of the best one send a dedicated channel as well, up to [`MOST_LEGS`] beside it.
const HANDOVER_WINDOW_DB: f64 = 5.0;
const MOST_LEGS: usize = 2;

/// The channel between a terminal and the cell that serves it.
#[derive(Clone, Debug)]
pub struct Channel {
    multipath: Option<Multipath>,
    /// Other sectors that send its dedicated channel; none for a terminal of the shared channel.
    legs: Vec<Leg>,
    shadowing: Option<Shadowing>,
    surroundings: Surroundings,
    metres_a_tti: f64,
    ttis_a_shadowing_step: u64,
    next_shadowing: u64,
    tti: u64,
}

/// Another sector that sends the same dedicated channel (soft handover).
#[derive(Clone, Debug)]
struct Leg {
    site: usize,
    /// The gain without shadowing.
    gain: f64,
    /// Mean received power relative to the serving sector's.
    ratio: f64,
    multipath: Option<Multipath>,
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
    /// Places a terminal by its settings. `name` and `seed` give it its own random numbers.
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
        let Site { surroundings, shadowing, cell, mut legs } = match (radio, user.placement) {
            (_, Placement::MeanSinr(sinr_db)) => Site {
                surroundings: Surroundings::Mean { sinr: from_db(sinr_db) },
                shadowing: None,
                cell: 0,
                legs: Vec::new(),
            },
            (Radio::Cellular(cellular), placement) => among_cells(cellular, placement, place_random, shadowing_random),
            (Radio::SingleCell(single), placement) => alone(single, placement, shadowing_random),
        };
        if !matches!(user.bearer, Bearer::Dedicated { .. }) {
            legs.clear();
        }
        for leg in &mut legs {
            leg.multipath =
                user.profile.map(|profile| Multipath::new(profile, user.fingers, doppler_hz, tti, &mut fading_random));
        }
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
            legs,
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

    /// Advances to interval number `tti`, fastest to the next one. Fast fading may go back, shadowing does not.
    pub fn go_to(&mut self, tti: u64) {
        let paths = self.multipath.iter_mut().chain(self.legs.iter_mut().filter_map(|leg| leg.multipath.as_mut()));
        if tti == self.tti + 1 {
            paths.for_each(Multipath::advance);
        } else if tti != self.tti {
            paths.for_each(|multipath| multipath.seek(tti));
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

    /// The quality of a dedicated channel, which every leg sends with the same share of its power.
    ///
    /// The interference of a leg's signal is the power of the serving sector and all others, less its own, orthogonal part.
    #[must_use]
    pub fn dedicated_sinr(&self) -> f64 {
        let mut sinr = self.sinr();
        if let Surroundings::Cells { outside, .. } = &self.surroundings {
            let serving = self.multipath.as_ref().map_or(Received::UNFADED, Multipath::received).arriving;
            for leg in &self.legs {
                let received = leg.multipath.as_ref().map_or(Received::UNFADED, Multipath::received);
                let others = (serving + outside - leg.ratio).max(0.0);
                sinr += received.rake_sinr(others / leg.ratio);
            }
        }
        sinr
    }

    /// Updates the values that depend on shadowing.
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
                for leg in &mut self.legs {
                    leg.ratio = leg.gain * from_db(-shadowing.loss_db(leg.site)) / serving;
                }
            }
            Surroundings::Alone { shadowing_gain, .. } => *shadowing_gain = from_db(-shadowing.loss_db(0)),
            Surroundings::Mean { .. } => {}
        }
    }
}

/// Interference and noise around a terminal.
struct Site {
    surroundings: Surroundings,
    shadowing: Option<Shadowing>,
    cell: usize,
    legs: Vec<Leg>,
}

fn among_cells(
    cellular: &CellularSettings,
    placement: Placement,
    mut random: Random,
    shadowing_random: Random,
) -> Site {
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
    let mut sectors: Vec<(f64, usize, usize)> = Vec::with_capacity(SITES * SECTORS_A_SITE);
    for (site, of_site) in gains.iter().enumerate() {
        let shadowing_gain = from_db(-shadowing.loss_db(site));
        sectors.extend(of_site.iter().enumerate().map(|(sector, gain)| (gain * shadowing_gain, site, sector)));
    }
    sectors.sort_by(|left, right| right.0.total_cmp(&left.0));
    let (best, serving_site, serving_sector) = sectors[0];
    let legs = sectors[1..=MOST_LEGS]
        .iter()
        .filter(|(gain, ..)| *gain >= best * from_db(-HANDOVER_WINDOW_DB))
        .map(|&(_, site, sector)| Leg { site, gain: gains[site][sector], ratio: 0.0, multipath: None })
        .collect();
    let noise_dbm = THERMAL_NOISE_DBM + cellular.noise_figure_db;
    let surroundings = Surroundings::Cells {
        serving_site,
        serving_gain: gains[serving_site][serving_sector],
        site_gains: Box::new(gains.map(|sectors| sectors.iter().sum())),
        other_cell_load: cellular.other_cell_load,
        noise: from_db(noise_dbm - cellular.total_power_dbm),
        outside: 0.0,
    };
    let cell = match placement {
        Placement::InSector { site, sector } => SECTORS_A_SITE * site + sector,
        _ => SECTORS_A_SITE * serving_site + serving_sector,
    };
    Site { surroundings, shadowing: Some(shadowing), cell, legs }
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

fn alone(single: &SingleCellSettings, placement: Placement, random: Random) -> Site {
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
    Site { surroundings, shadowing: Some(shadowing), cell: 0, legs: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::Channel;
    use crate::hsdpa::presets::{data_and_speech, four_terminals, SpeechChannel};
    use crate::hsdpa::scheduler::SchedulerKind;
    use crate::hsdpa::settings::{HsdpaSettings, Placement, Radio, UserSettings};
    use crate::hsdpa::transport_format::to_db;
    use crate::MILLISECOND;

    fn place(settings: &HsdpaSettings, user: &UserSettings, name: &str) -> Channel {
        Channel::place(&settings.radio, user, 2 * MILLISECOND, 1, name).channel
    }

    #[test]
    fn a_single_cell_follows_its_formula() {
        let mut settings = four_terminals(SchedulerKind::RoundRobin);
        if let Radio::SingleCell(single) = &mut settings.radio {
            single.shadowing.deviation_db = 0.0;
        }
        // 38 dBm, 17 dBi, 30 dBm, -70 dBm; by hand: L = 128.1 + 37.6 log10 R - 17.
        for (user, expected_db) in settings.users.iter().zip([7.99, 7.43, 5.10, 1.60]) {
            let user = UserSettings { profile: None, ..user.clone() };
            let sinr_db = to_db(place(&settings, &user, "terminal").sinr());
            assert!((sinr_db - expected_db).abs() < 0.01, "{sinr_db}");
        }
    }

    #[test]
    fn a_terminal_near_its_antenna_gets_little_interference() {
        let mut settings = data_and_speech(0, SpeechChannel::Shared, 1);
        if let Radio::Cellular(cellular) = &mut settings.radio {
            cellular.shadowing.deviation_db = 0.0;
        }
        let at = |metres: f64| {
            let angle = 30f64.to_radians();
            let place = crate::hsdpa::geometry::Point { x_m: metres * angle.cos(), y_m: metres * angle.sin() };
            UserSettings { placement: Placement::At(place), profile: None, ..UserSettings::default() }
        };
        let ratio_db = |metres| to_db(place(&settings, &at(metres), "terminal").sinr());
        assert!(ratio_db(100.0) > 12.0);
        // At the corner between three sites, 1617 m out: three sectors alike, each 0 dB off its axis.
        assert!((-5.0..-2.0).contains(&ratio_db(2800.0 / 3f64.sqrt())), "{}", ratio_db(2800.0 / 3f64.sqrt()));
    }

    #[test]
    fn the_area_has_the_geometry_of_a_loaded_network() {
        let settings = data_and_speech(0, SpeechChannel::Shared, 1);
        let user = UserSettings { profile: None, ..settings.users[0].clone() };
        let mut ratios_db: Vec<f64> =
            (0..1000).map(|number| to_db(place(&settings, &user, &format!("{number}")).sinr())).collect();
        ratios_db.sort_by(f64::total_cmp);
        // Bounds of what three-sector macro cells at full load show in the literature: median 2 to 5 dB, 5 % at -5 to -3.
        assert!((1.0..5.0).contains(&ratios_db[500]), "{}", ratios_db[500]);
        assert!((-6.0..-3.0).contains(&ratios_db[50]), "{}", ratios_db[50]);
    }

    #[test]
    fn soft_handover_helps_dedicated_channels_alone() {
        let shared = data_and_speech(40, SpeechChannel::Shared, 1);
        let dedicated = data_and_speech(40, SpeechChannel::Dedicated, 1);
        let mut helped = 0;
        for number in 1..=40 {
            let name = format!("{number}");
            let one = place(&shared, &shared.users[number], &name);
            let other = place(&dedicated, &dedicated.users[number], &name);
            assert!((one.sinr() - other.sinr()).abs() < 1e-12);
            assert!((one.dedicated_sinr() - one.sinr()).abs() < 1e-12);
            helped += i32::from(other.dedicated_sinr() > other.sinr());
        }
        assert!((5..35).contains(&helped), "{helped}");
    }
}

//! The seed papers' set-ups.

use super::hybrid_arq::HybridArqSettings;
use super::multipath::Profile;
use super::scheduler::SchedulerKind;
use super::settings::{
    Bearer, CellularSettings, DedicatedSettings, Framing, HsdpaSettings, PathLoss, Placement, Radio, ShadowingSettings,
    SingleCellSettings, UplinkSettings, UserSettings,
};
use super::transport_format::Category;
use crate::{QueueLimit, Random, MILLISECOND};

/// T1 that outlasts four transmissions 12 ms apart (3GPP TS 25.331, 10.3.5.7a, offers 60 ms).
const REORDERING_TTIS: u32 = 30;

impl Default for CellularSettings {
    /// Seed 002, table 2. `total_power_dbm` is its 42.3 dBm of transmitted power; its 20 W are 43.0.
    fn default() -> Self {
        Self {
            site_distance_m: 2800.0,
            boresight_deg: 30.0,
            path_loss: PathLoss::default(),
            shadowing: ShadowingSettings::default(),
            site_correlation: 0.5,
            total_power_dbm: 42.3,
            common_share: 0.2,
            antenna_gain_dbi: 14.0,
            noise_figure_db: 9.0,
            carrier_hz: 2e9,
            other_cell_load: 1.0,
            dedicated: DedicatedSettings::default(),
        }
    }
}

impl Default for SingleCellSettings {
    /// Seed 003, table 1: 38 dBm, 17 dBi, intra-cell interference 30. Its inter-cell "6" cannot be dBm at a terminal (it would
    /// drown every signal by 40 dB); EURANE's own default of -70 dBm stands in.
    fn default() -> Self {
        Self {
            power_dbm: 38.0,
            antenna_gain_dbi: 17.0,
            intra_cell_interference_dbm: 30.0,
            inter_cell_interference_dbm: -70.0,
            path_loss: PathLoss::default(),
            shadowing: ShadowingSettings::default(),
            carrier_hz: 2e9,
        }
    }
}

/// Four terminals in one cell: 3 km/h at 100 m, 3 km/h at 300 m, 30 km/h at 500 m, 9 km/h at 700 m (seed 003, table 1).
///
/// Indicators are three intervals old and a queue holds 200 frames of 40 bytes (section 5). EURANE's terminals take five codes.
#[must_use]
pub fn four_terminals(scheduler: SchedulerKind) -> HsdpaSettings {
    let terminal = |speed_km_h, distance_m, profile| UserSettings {
        placement: Placement::Distance(distance_m),
        speed_km_h,
        profile: Some(profile),
        fingers: usize::MAX,
        category: Category::OneToSix,
        queue: QueueLimit::Frames(200),
        ..UserSettings::default()
    };
    HsdpaSettings {
        tti: 2 * MILLISECOND,
        quality_delay_ttis: 3,
        scheduler,
        averaging_ttis: 500.0,
        users_a_tti: 1,
        codes: 15,
        hybrid_arq: HybridArqSettings::default(),
        reordering_ttis: REORDERING_TTIS,
        radio: Radio::SingleCell(SingleCellSettings::default()),
        users: vec![
            terminal(3.0, 100.0, Profile::IndoorA),
            terminal(3.0, 300.0, Profile::PedestrianA),
            terminal(30.0, 500.0, Profile::VehicularA),
            terminal(9.0, 700.0, Profile::RuralArea),
        ],
        uplink: UplinkSettings::default(),
        report_period: None,
    }
}

/// Which channel speech takes in [`data_and_speech`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeechChannel {
    Shared,
    Dedicated,
}

/// One data terminal, number 0, and `speech_terminals` others in a cell of nineteen sites (seed 002: 9, 19 or 29).
///
/// `seed` draws each terminal's channel model by the probabilities of table 1.
#[must_use]
pub fn data_and_speech(speech_terminals: usize, channel: SpeechChannel, seed: u64) -> HsdpaSettings {
    let mut random = Random::new(seed, "channel models");
    let mut terminal = |bearer, queue| {
        let (profile, fingers, speed_km_h, doppler_hz) = match random.uniform() {
            draw if draw < 0.3 => (Profile::PedestrianA, 1, 3.0, None),
            draw if draw < 0.6 => (Profile::PedestrianB, 5, 10.0, None),
            draw if draw < 0.8 => (Profile::VehicularA, 4, 30.0, None),
            draw if draw < 0.9 => (Profile::PedestrianA, 1, 120.0, None),
            _ => (Profile::SinglePath, 1, 0.0, Some(1.5)),
        };
        UserSettings {
            placement: Placement::InSector { site: 0, sector: 0 },
            speed_km_h,
            profile: Some(profile),
            fingers,
            doppler_hz,
            bearer,
            queue,
            ..UserSettings::default()
        }
    };
    let mut users = vec![terminal(Bearer::default(), QueueLimit::Frames(2000))];
    let speech = match channel {
        SpeechChannel::Shared => Bearer::Unacknowledged(Framing::speech()),
        SpeechChannel::Dedicated => Bearer::Dedicated { compressed_header_bytes: Some(3) },
    };
    users.extend((0..speech_terminals).map(|_| terminal(speech, QueueLimit::Packets(50))));
    HsdpaSettings {
        tti: 2 * MILLISECOND,
        quality_delay_ttis: 3,
        scheduler: SchedulerKind::ProportionalFair,
        averaging_ttis: 500.0,
        users_a_tti: 4,
        codes: 15,
        hybrid_arq: HybridArqSettings::default(),
        reordering_ttis: REORDERING_TTIS,
        radio: Radio::Cellular(CellularSettings::default()),
        users,
        uplink: UplinkSettings::default(),
        report_period: None,
    }
}

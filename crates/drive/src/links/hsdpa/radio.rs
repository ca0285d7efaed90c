//! `radio` of HSDPA: where signal and interference come from.

use pepscope_path::hsdpa::settings::{
    CellularSettings, DedicatedSettings, PathLoss, Radio, ShadowingSettings, SingleCellSettings,
};

use crate::fields::{Fields, Read};

const DECIBELS: std::ops::RangeInclusive<f64> = -300.0..=300.0;

/// Reads the radio by `kind`: `cellular`, nineteen wrap-around sites of three sectors (seed 002), or `single-cell`, one
/// cell in constant surroundings (seed 003). Both have
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `path_loss_intercept_db`, `path_loss_slope_db` | -300-300 | 128.1, 37.6 | intercept + slope log10(distance / km) |
/// | `minimum_distance_m` | 0.1-1e6 | 35 | least distance between a terminal and a site |
/// | `shadowing_deviation_db` | 0-30 | 8 | 8.9 in seed 002's text |
/// | `shadowing_correlation_m` | 0.1-1e6 | 50 | |
/// | `carrier_hz` | 1e6-1e11 | 2e9 | |
/// | `antenna_gain_dbi` | -300-300 | 14; single cell: 17 | |
///
/// `cellular`:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `site_distance_m` | 1-1e6 | 2800 | |
/// | `boresight_deg` | -360-360 | 30 | where the first sector of each site looks |
/// | `site_correlation` | 0-1 | 0.5 | of shadowing between sites |
/// | `total_power_dbm` | -300-300 | 42.3 | of a sector |
/// | `common_share` | 0-1 | 0.2 | of it that pilot and common channels take |
/// | `noise_figure_db` | -300-300 | 9 | of a terminal |
/// | `other_cell_load` | 0-1 | 1 | share of their power that other sectors transmit |
/// | `speech_target_db`, `speech_greatest_share`, `speech_block_error_rate` | -300-300, 0-1, 0-1 | -18.8, 0.1, 0.01 | of dedicated channels: Ec/N0 that power control keeps, most of a sector's power, errors it leaves |
///
/// `single-cell`:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `power_dbm` | -300-300 | 38 | |
/// | `intra_cell_interference_dbm` | -300-300 | 30 | where it leaves the antenna |
/// | `inter_cell_interference_dbm` | -300-300 | -70 | where it reaches the terminal |
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_radio(fields: &mut Fields, usual: &Radio) -> Read<Radio> {
    let single_is_usual = matches!(usual, Radio::SingleCell(_));
    let mut kinds = [("cellular", false), ("single-cell", true)];
    kinds.sort_by_key(|(_, single)| *single != single_is_usual);
    let is_single = fields.choice("kind", &kinds)?;
    let path_loss = PathLoss {
        intercept_db: fields.number("path_loss_intercept_db", DECIBELS, 128.1)?,
        slope_db: fields.number("path_loss_slope_db", DECIBELS, 37.6)?,
        minimum_distance_m: fields.number("minimum_distance_m", 0.1..=1e6, 35.0)?,
    };
    let shadowing = ShadowingSettings {
        deviation_db: fields.number("shadowing_deviation_db", 0.0..=30.0, 8.0)?,
        correlation_distance_m: fields.number("shadowing_correlation_m", 0.1..=1e6, 50.0)?,
    };
    let carrier_hz = fields.number("carrier_hz", 1e6..=1e11, 2e9)?;
    if is_single {
        let paper = SingleCellSettings::default();
        return Ok(Radio::SingleCell(SingleCellSettings {
            power_dbm: fields.number("power_dbm", DECIBELS, paper.power_dbm)?,
            antenna_gain_dbi: fields.number("antenna_gain_dbi", DECIBELS, paper.antenna_gain_dbi)?,
            intra_cell_interference_dbm: fields.number(
                "intra_cell_interference_dbm",
                DECIBELS,
                paper.intra_cell_interference_dbm,
            )?,
            inter_cell_interference_dbm: fields.number(
                "inter_cell_interference_dbm",
                DECIBELS,
                paper.inter_cell_interference_dbm,
            )?,
            path_loss,
            shadowing,
            carrier_hz,
        }));
    }
    let paper = CellularSettings::default();
    let speech = DedicatedSettings::default();
    Ok(Radio::Cellular(CellularSettings {
        site_distance_m: fields.number("site_distance_m", 1.0..=1e6, paper.site_distance_m)?,
        boresight_deg: fields.number("boresight_deg", -360.0..=360.0, paper.boresight_deg)?,
        path_loss,
        shadowing,
        site_correlation: fields.number("site_correlation", 0.0..=1.0, paper.site_correlation)?,
        total_power_dbm: fields.number("total_power_dbm", DECIBELS, paper.total_power_dbm)?,
        common_share: fields.number("common_share", 0.0..=1.0, paper.common_share)?,
        antenna_gain_dbi: fields.number("antenna_gain_dbi", DECIBELS, paper.antenna_gain_dbi)?,
        noise_figure_db: fields.number("noise_figure_db", DECIBELS, paper.noise_figure_db)?,
        carrier_hz,
        other_cell_load: fields.number("other_cell_load", 0.0..=1.0, paper.other_cell_load)?,
        dedicated: DedicatedSettings {
            target_db: fields.number("speech_target_db", DECIBELS, speech.target_db)?,
            greatest_share: fields.number("speech_greatest_share", 0.0..=1.0, speech.greatest_share)?,
            block_error_rate: fields.number("speech_block_error_rate", 0.0..=1.0, speech.block_error_rate)?,
            ..speech
        },
    }))
}

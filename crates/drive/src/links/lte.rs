//! LTE cells: an LTE or NR cell.

use pepscope_path::hsdpa::settings::Recovery;
use pepscope_path::lte::settings::{
    FadingRateSettings, LteHybridArqSettings, LteUserSettings, RateSettings, RequestSettings,
};
use pepscope_path::lte::{Lte, LteSettings, SlotPattern};
use pepscope_path::{Datagram, QueueLimit, SettingsError};

use super::buffer::{read_limit, read_marking, PACKETS_OR_BYTES};
use super::Link;
use crate::fields::{nanoseconds, Fields, Read};

pub use pepscope_path::lte::LteSettings as Settings;

/// 240 ms at the default downlink rate, a typical buffer of base stations.
const QUEUE_BYTES: u64 = 1_500_000;
/// Ten of a special slot's 14 symbols.
const SPECIAL_DOWN_SHARE: f64 = 0.714;

impl Link for LteSettings {
    const KIND: &'static str = "lte";
    type Model<P: Datagram> = Lte<P>;

    /// Reads an LTE or NR cell:
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `terminals` | list | one | see [`read_terminals`]; place in the list = `user` of the traffic |
    /// | `transmission_time_interval_s` | 1e-5-1 | 0.001 | 0.0005 for NR at 30 kHz |
    /// | `hybrid_arq` | table | | see [`read_hybrid_arq`] |
    /// | `reordering_timeout_s` | 0-10 | 0.04 | how long a missing block is waited for |
    /// | `acknowledged_mode` | true, false | true | RLC repeats what hybrid ARQ lost |
    /// | `status_delay_s` | 0-10 | 0.02 | until RLC's repetition waits for transmission |
    /// | `maximum_transmissions` | 1-255 | 8 | by RLC, before a packet is given up |
    /// | `slots` | 1-100 letters D, S, U | none | time-division duplex: what each interval is for, `DDDSU` being usual for NR; without it each direction has a band of its own |
    /// | `special_down_share` | 0-1 | 0.714 | of an interval S, data down; the rest is the switch |
    /// | `requests` | table | | leave to send up: `period_s` (1e-5-10, default 0.01), `grant_delay_s` (1e-5-10, default 0.008), `first_grant_bytes` (1-1e6, default 200) |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        let tti = fields.seconds("transmission_time_interval_s", 1e-5..=1.0, 0.001)?;
        let hybrid_arq = fields.section("hybrid_arq", read_hybrid_arq)?;
        let reordering_timeout = fields.seconds("reordering_timeout_s", 0.0..=10.0, 0.04)?;
        let recovery = Recovery {
            status_delay: fields.seconds("status_delay_s", 0.0..=10.0, 0.02)?,
            maximum_transmissions: fields.integer("maximum_transmissions", 1..=255, 8)? as u8,
            window_frames: u32::MAX,
            discard_after: None,
        };
        let recovery = fields.flag("acknowledged_mode", true)?.then_some(recovery);
        let requests = fields.section("requests", |requests| {
            Ok(RequestSettings {
                period: requests.seconds("period_s", 1e-5..=10.0, 0.01)?,
                grant_delay: requests.seconds("grant_delay_s", 1e-5..=10.0, 0.008)?,
                first_grant_bytes: requests.integer("first_grant_bytes", 1..=1_000_000, 200)? as u32,
            })
        })?;
        let slots = read_slots(fields)?;
        fields.default_tables("terminals", &[[]] as &[[(&str, &str); 0]]);
        let groups = fields.sections("terminals", read_terminals)?;
        let users = groups.into_iter().flat_map(|(count, user)| std::iter::repeat_n(user, count)).collect();
        let settings = Self { tti, hybrid_arq, reordering_timeout, recovery, requests, slots, users };
        settings.check().map_err(|error| fields.refused_by(&error))?;
        Ok(settings)
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Lte<P>, SettingsError> {
        Lte::new(self, seed, name)
    }

    fn terminals(&self) -> Option<usize> {
        Some(self.users.len())
    }
}

fn read_slots(fields: &mut Fields) -> Read<Option<SlotPattern>> {
    let letters = fields.optional_text("slots", "1 to 100 letters D, S and U, with at least one D and one U")?;
    let special_down_share = fields.number("special_down_share", 0.0..=1.0, SPECIAL_DOWN_SHARE)?;
    let Some(letters) = letters else { return Ok(None) };
    SlotPattern::new(&letters, special_down_share).map(Some).map_err(|error| fields.refused_by(&error))
}

/// Reads hybrid ARQ of the cell:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `round_trip_s` | 1e-5-1 | 0.008 | from a transmission to its repetition |
/// | `decoding_s` | 1e-5-1 | 0.004 | from the start of a transmission until it is decoded |
/// | `maximum_transmissions` | 1-16 | 4 | of a block |
/// | `block_error_rate` | 0-1 | 0.1 | of first transmissions |
/// | `combining_ratio` | 0-1 | 0.1 | by how much each repetition fails less often |
///
/// # Errors
/// If a field is outside its range.
fn read_hybrid_arq(fields: &mut Fields) -> Read<LteHybridArqSettings> {
    Ok(LteHybridArqSettings {
        round_trip: fields.seconds("round_trip_s", 1e-5..=1.0, 0.008)?,
        decoding: fields.seconds("decoding_s", 1e-5..=1.0, 0.004)?,
        maximum_transmissions: fields.integer("maximum_transmissions", 1..=16, 4)? as u8,
        block_error_rate: fields.number("block_error_rate", 0.0..=1.0, 0.1)?,
        combining_ratio: fields.number("combining_ratio", 0.0..=1.0, 0.1)?,
    })
}

/// Reads terminals that are alike: `count` (1-1000, default 1), `down` and `up`, each
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `rate_bit_s` | 1-1e11 | 5e7 down, 1e7 up | what the terminal could be sent if it had every interval |
/// | `fading` | table | none | instead of a fixed rate, see [`read_fading`] |
/// | `queue_packets`, `queue_bytes` | 0-1e9, at most one | 1500000 bytes | packets of which a part was never sent |
/// | `marking` (down only) | table | none | `threshold_packets` (0-1e6), `weight` (0-1, default 0.002): congestion warning |
///
/// # Errors
/// If a field is outside its range.
fn read_terminals(fields: &mut Fields) -> Read<(usize, LteUserSettings)> {
    let count = fields.integer("count", 1..=1000, 1)? as usize;
    let (down, down_queue, marking) = fields.section("down", |down| {
        let (rate, queue) = read_side(down, &FADING_DOWN, 50_000_000)?;
        Ok((rate, queue, read_marking(down)?))
    })?;
    let (up, up_queue) = fields.section("up", |up| read_side(up, &FADING_UP, 10_000_000))?;
    Ok((count, LteUserSettings { down, up, down_queue, up_queue, marking }))
}

fn read_side(fields: &mut Fields, usual: &FadingRateSettings, rate_bit_s: u64) -> Read<(RateSettings, QueueLimit)> {
    let fixed = fields.is_given("rate_bit_s");
    let fading = fields.optional_section("fading", |fading| read_fading(fading, usual))?;
    let rate = match fading {
        Some(_) if fixed => {
            return Err(fields.refuse("fading", "a table", "absent where there is rate_bit_s"));
        }
        Some(fading) => RateSettings::Fading(fading),
        None => RateSettings::Fixed { rate_bit_s: fields.integer("rate_bit_s", 1..=100_000_000_000, rate_bit_s)? },
    };
    Ok((rate, read_limit(fields, PACKETS_OR_BYTES, QueueLimit::Bytes(QUEUE_BYTES))?))
}

/// 3GPP TR 36.942, A.1: down.
const FADING_DOWN: FadingRateSettings = FadingRateSettings {
    bandwidth_hz: 10e6,
    layers: 2,
    mean_sinr_db: 12.0,
    deviation_db: 4.0,
    correlation: 1_000_000_000,
    attenuation: 0.6,
    most_bit_s_hz: 4.4,
};
/// 3GPP TR 36.942, A.1: up.
const FADING_UP: FadingRateSettings =
    FadingRateSettings { layers: 1, attenuation: 0.4, most_bit_s_hz: 2.0, ..FADING_DOWN };

/// Reads a slowly varying channel under ideal link adaptation (3GPP TR 36.942, A.1):
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `bandwidth_hz` | 1-1e10 | 1e7 | |
/// | `layers` | 1-8 | 2 down, 1 up | |
/// | `mean_sinr_db`, `deviation_db` | -50-80, 0-30 | 12, 4 | of a Gaussian process |
/// | `correlation_s` | 1e-6-1e6 | 1 | its correlation over a time t is exp(-t / this) |
/// | `attenuation` | 0-1 | 0.6 down, 0.4 up | of Shannon's bound |
/// | `most_bit_s_hz` | 0-20 | 4.4 down, 2.0 up | |
///
/// # Errors
/// If a field is outside its range.
fn read_fading(fields: &mut Fields, usual: &FadingRateSettings) -> Read<FadingRateSettings> {
    Ok(FadingRateSettings {
        bandwidth_hz: fields.number("bandwidth_hz", 1.0..=1e10, usual.bandwidth_hz)?,
        layers: fields.integer("layers", 1..=8, usual.layers.into())? as u8,
        mean_sinr_db: fields.number("mean_sinr_db", -50.0..=80.0, usual.mean_sinr_db)?,
        deviation_db: fields.number("deviation_db", 0.0..=30.0, usual.deviation_db)?,
        correlation: nanoseconds(fields.number("correlation_s", 1e-6..=1e6, 1.0)?),
        attenuation: fields.number("attenuation", 0.0..=1.0, usual.attenuation)?,
        most_bit_s_hz: fields.number("most_bit_s_hz", 0.0..=20.0, usual.most_bit_s_hz)?,
    })
}

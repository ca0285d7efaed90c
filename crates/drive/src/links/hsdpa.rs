//! HSDPA cells: UMTS cells with high-speed downlink packet access (seeds 002 and 003).

mod radio;
mod terminal;

use pepscope_path::hsdpa::hybrid_arq::{Combining, HybridArqSettings};
use pepscope_path::hsdpa::presets::{data_and_speech, four_terminals, SpeechChannel};
use pepscope_path::hsdpa::scheduler::SchedulerKind;
use pepscope_path::hsdpa::settings::{Bearer, UplinkSettings};
use pepscope_path::hsdpa::{Hsdpa, HsdpaSettings};
use pepscope_path::{Datagram, MarkingSettings, Nanoseconds, QueueLimit, SettingsError};

use super::buffer::{read_limit, read_marking, PACKETS_BYTES_OR_FRAMES};
use super::Link;
use crate::fields::{Fields, Read};
use radio::read_radio;
use terminal::read_terminals;

pub use self::HsdpaDescription as Settings;

/// Cells as described; which channel models their terminals have is for the seed to say where a preset draws them.
#[derive(Clone, Debug)]
pub struct HsdpaDescription {
    settings: HsdpaSettings,
    preset: Preset,
    /// The queue of a preset's data terminals.
    queue: QueueLimit,
    marking: Option<MarkingSettings>,
    discard_after: Option<Nanoseconds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preset {
    None,
    FourTerminals,
    DataAndSpeech(usize, SpeechChannel),
}

impl Link for HsdpaDescription {
    const KIND: &'static str = "hsdpa";
    type Model<P: Datagram> = Hsdpa<P>;

    /// Reads HSDPA cells. A preset gives every field its default, and the terminals:
    ///
    /// | `preset` | what it is |
    /// |---|---|
    /// | `none` | seed 002's cells and parameters; `terminals` as listed |
    /// | `four-terminals` | seed 003, table 1: four terminals at 100, 300, 500 and 700 m, one cell; Round-Robin |
    /// | `data-and-speech` | seed 002, tables 1, 2 and 4: terminal 0 gets data, `speech_terminals` others (0-1000, default 9) speak over the `shared` or a `dedicated` channel each (`speech_channel`); Proportional Fair |
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `scheduler` | `proportional-fair`, `round-robin`, `maximum-carrier-to-interference`, `fair-channel-dependent` | preset's | whom the Node-B serves |
    /// | `averaging_ttis` | 1-1e9 | 500 | Tc of the scheduler's averages |
    /// | `users_a_tti` | 1-15 | 4; `four-terminals`: 1 | terminals that may share an interval |
    /// | `codes` | 1-15 | 15 | HS-PDSCH codes of a cell |
    /// | `transmission_time_interval_s` | 0.0001-1 | 0.002 | TTI |
    /// | `quality_delay_ttis` | 0-15 | 3 | age of a channel quality indicator when it is used |
    /// | `reordering_ttis` | 0-10000 | 30 | T1: how long a missing block is waited for |
    /// | `hybrid_arq` | table | | see [`read_hybrid_arq`] |
    /// | `radio` | table | preset's | see [`read_radio`] |
    /// | `uplink` | table | | a channel a terminal: `rate_bit_s` (1-1e9, default 64000), `delay_s` (0-10, default 0.03), `queue_packets` (1-1e6, default 1000) |
    /// | `report_period_s` | 0.0001-1000 | none | how often queues are reported to a window-adaptation proxy (seed 003: Ts) |
    /// | `queue_packets`, `queue_bytes`, `queue_frames` | 0-1e9, at most one | preset's | at the Node-B, of each data terminal of a preset |
    /// | `marking` | table | none | of the same: `threshold_packets` (0-1e6), `weight` (0-1, default 0.002) |
    /// | `discard_s` | 0.001-1000 | none | of the same: age at which RLC gives a packet up (timer based SDU discard) |
    /// | `terminals` | list | one | without a preset: see [`read_terminals`] |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        let preset = read_preset(fields)?;
        let base = match preset {
            Preset::FourTerminals => four_terminals(SchedulerKind::RoundRobin),
            _ => data_and_speech(0, SpeechChannel::Shared, 0),
        };
        let scheduler = read_scheduler(fields, base.scheduler)?;
        let averaging_ttis = fields.number("averaging_ttis", 1.0..=1e9, base.averaging_ttis)?;
        let users_a_tti = fields.integer("users_a_tti", 1..=15, base.users_a_tti.into())? as u8;
        let codes = fields.integer("codes", 1..=15, base.codes.into())? as u8;
        let tti = fields.seconds("transmission_time_interval_s", 1e-4..=1.0, seconds(base.tti))?;
        let quality_delay_ttis = fields.integer("quality_delay_ttis", 0..=15, base.quality_delay_ttis.into())? as u32;
        let reordering_ttis = fields.integer("reordering_ttis", 0..=10_000, base.reordering_ttis.into())? as u32;
        let hybrid_arq = fields.section("hybrid_arq", read_hybrid_arq)?;
        let radio = fields.section("radio", |radio| read_radio(radio, &base.radio))?;
        let uplink = fields.section("uplink", |uplink| {
            Ok(UplinkSettings {
                rate_bit_s: uplink.integer("rate_bit_s", 1..=1_000_000_000, base.uplink.rate_bit_s)?,
                delay: uplink.seconds("delay_s", 0.0..=10.0, seconds(base.uplink.delay))?,
                queue_packets: uplink.integer("queue_packets", 1..=1_000_000, base.uplink.queue_packets as u64)?
                    as usize,
            })
        })?;
        let report_period = fields.optional_seconds("report_period_s", 1e-4..=1000.0)?;
        let (mut users, mut queue, mut marking, mut discard_after) = (base.users, QueueLimit::Unlimited, None, None);
        if preset == Preset::None {
            fields.default_tables("terminals", &[[]] as &[[(&str, &str); 0]]);
            let groups = fields.sections("terminals", read_terminals)?;
            users = groups.into_iter().flat_map(|(count, user)| std::iter::repeat_n(user, count)).collect();
        } else {
            let usual = users.first().map_or(QueueLimit::Unlimited, |user| user.queue);
            queue = read_limit(fields, PACKETS_BYTES_OR_FRAMES, usual)?;
            marking = read_marking(fields)?;
            discard_after = fields.optional_seconds("discard_s", 0.001..=1000.0)?;
        }
        let settings = HsdpaSettings {
            tti,
            quality_delay_ttis,
            scheduler,
            averaging_ttis,
            users_a_tti,
            codes,
            hybrid_arq,
            reordering_ttis,
            radio,
            users,
            uplink,
            report_period,
        };
        let description = Self { settings, preset, queue, marking, discard_after };
        description.settings(0).check().map_err(|error| fields.refused_by(&error))?;
        Ok(description)
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Hsdpa<P>, SettingsError> {
        Hsdpa::new(&self.settings(seed), seed, name)
    }

    fn terminals(&self) -> Option<usize> {
        Some(match self.preset {
            Preset::DataAndSpeech(speaking, _) => speaking + 1,
            _ => self.settings.users.len(),
        })
    }
}

fn read_preset(fields: &mut Fields) -> Read<Preset> {
    let preset = fields.choice(
        "preset",
        &[
            ("none", Preset::None),
            ("four-terminals", Preset::FourTerminals),
            ("data-and-speech", Preset::DataAndSpeech(0, SpeechChannel::Shared)),
        ],
    )?;
    let Preset::DataAndSpeech(..) = preset else {
        return Ok(preset);
    };
    let terminals = fields.integer("speech_terminals", 0..=1000, 9)? as usize;
    let channel = fields
        .choice("speech_channel", &[("shared", SpeechChannel::Shared), ("dedicated", SpeechChannel::Dedicated)])?;
    Ok(Preset::DataAndSpeech(terminals, channel))
}

fn read_scheduler(fields: &mut Fields, usual: SchedulerKind) -> Read<SchedulerKind> {
    let mut schedulers = [
        ("proportional-fair", SchedulerKind::ProportionalFair),
        ("round-robin", SchedulerKind::RoundRobin),
        ("maximum-carrier-to-interference", SchedulerKind::MaximumCarrierToInterference),
        ("fair-channel-dependent", SchedulerKind::FairChannelDependent),
    ];
    schedulers.sort_by_key(|(_, scheduler)| *scheduler != usual);
    fields.choice("scheduler", &schedulers)
}

/// Reads hybrid ARQ of the shared channel:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `processes` | 1-8 | 6 | of a terminal |
/// | `round_trip_ttis` | 1-1000 | 6 | from a transmission to its repetition |
/// | `decoding_ttis` | 1-1000 | 4 | from the start of a transmission until it is decoded |
/// | `maximum_transmissions` | 1-16 | 4 | of a block |
/// | `combining` | `incremental-redundancy`, `chase`, `nothing` | `incremental-redundancy` | what the receiver makes of earlier transmissions |
///
/// # Errors
/// If a field is outside its range.
fn read_hybrid_arq(fields: &mut Fields) -> Read<HybridArqSettings> {
    let usual = HybridArqSettings::default();
    Ok(HybridArqSettings {
        processes: fields.integer("processes", 1..=8, usual.processes.into())? as u8,
        round_trip_ttis: fields.integer("round_trip_ttis", 1..=1000, usual.round_trip_ttis.into())? as u32,
        decoding_ttis: fields.integer("decoding_ttis", 1..=1000, usual.decoding_ttis.into())? as u32,
        maximum_transmissions: fields.integer("maximum_transmissions", 1..=16, usual.maximum_transmissions.into())?
            as u8,
        combining: fields.choice(
            "combining",
            &[
                ("incremental-redundancy", Combining::IncrementalRedundancy),
                ("chase", Combining::Chase),
                ("nothing", Combining::Nothing),
            ],
        )?,
    })
}

impl HsdpaDescription {
    /// The cells in the run with `seed`.
    #[must_use]
    pub fn settings(&self, seed: u64) -> HsdpaSettings {
        let mut settings = self.settings.clone();
        if let Preset::DataAndSpeech(terminals, channel) = self.preset {
            settings.users = data_and_speech(terminals, channel, seed).users;
        }
        if self.preset != Preset::None {
            for user in &mut settings.users {
                if let Bearer::Acknowledged(_, recovery) = &mut user.bearer {
                    recovery.discard_after = self.discard_after;
                    (user.queue, user.marking) = (self.queue, self.marking);
                }
            }
        }
        settings
    }
}

fn seconds(time: Nanoseconds) -> f64 {
    time as f64 * 1e-9
}

//! `[record]`: what is written down.

use std::net::IpAddr;

use pepscope_path::{Direction, Nanoseconds, NEVER, SECOND};

use crate::capture::addresses::{TranslatedPorts, Translation};
use crate::capture::clock::{ClockSettings, Step};
use crate::capture::coalescing::{CoalescingSettings, MOST_BYTES};
use crate::capture::pcapng::LinkType;
use crate::capture::tap::TapSettings;
use crate::fields::{nanoseconds, Fields, Read, ScenarioError, MOST_SECONDS};

/// Enough for the headers with all options that are usual, and the first bytes of the payload.
const DEFAULT_SNAP_BYTES: u64 = 96;
/// A segment is recognised by so many bytes of its payload (crates/connections, `payload_hash`). The rest of what these
/// captures would hold are pseudo-random bytes without information.
const RECOGNISABLE_BYTES: u64 = 16;
const MOST_PAYLOAD_BYTES: u64 = 65_535;

/// What a simulation leaves behind besides its totals.
#[derive(Clone, Debug)]
pub struct Record {
    /// `taps`: captures, if they are written at all. Default: `server` and `mobile`.
    pub taps: Vec<TapDescription>,
    /// `series_interval_s` (0.0001-1e7): how often windows, queues and rates are sampled; default: never.
    pub series_interval_ns: Option<Nanoseconds>,
    /// `one_way_delays` (default false): keep every arrival, not only summaries.
    pub one_way_delays: bool,
}

/// A capture and where it is made.
#[derive(Clone, Debug)]
pub struct TapDescription {
    /// Hops between the server and the tap.
    pub after_hop: usize,
    pub settings: TapSettings,
}

impl Record {
    /// Reads
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `start_time_s` | 0-4e9 | 1700000000 | what a right clock shows at the start, in seconds since 1970 |
    /// | `series_interval_s` | 0.0001-1e7 | never | how often windows, queues and rates are sampled |
    /// | `one_way_delays` | true, false | false | keep every arrival, not only summaries |
    /// | `taps` | list | `server` and `mobile` | see [`read_tap`] |
    ///
    /// # Errors
    /// If a field is outside its range, or two taps have one name.
    pub(super) fn read(fields: &mut Fields, hops: usize) -> Read<Self> {
        let epoch_ns = fields.integer("start_time_s", 0..=4_000_000_000, 1_700_000_000)? * SECOND;
        let series_interval_ns = fields.optional_seconds("series_interval_s", 1e-4..=MOST_SECONDS)?;
        let one_way_delays = fields.flag("one_way_delays", false)?;
        fields.default_tables("taps", &[[("name", "server")], [("name", "mobile")]]);
        let taps: Vec<TapDescription> = fields.sections("taps", |tap| read_tap(tap, hops, epoch_ns))?;
        for (index, tap) in taps.iter().enumerate() {
            if taps[..index].iter().any(|other| other.settings.name == tap.settings.name) {
                let name = &tap.settings.name;
                return Err(fields.refuse(
                    &format!("taps[{index}].name"),
                    name,
                    "different from the other taps' names",
                ));
            }
        }
        Ok(Self { taps, series_interval_ns, one_way_delays })
    }
}

/// Reads one tap:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `name` | letters, digits, `-`, `_` | required | also of its file, NAME.pcapng |
/// | `after_hop` | 0-number of hops | by name: `server` 0, `mobile` all | hops between the server and the tap |
/// | `link_type` | `raw`, `ethernet`, `ipv4`, `ipv6` | `raw` | how frames begin |
/// | `snap_bytes` | 0-262144 | 96 | most captured bytes of a frame, 0 for all |
/// | `payload_bytes` | 0-65535 | 16, or all where `snap_bytes` is given | most captured bytes of a TCP payload that does not begin with a request's or answer's text |
/// | `clock` | table | a right clock | see [`read_clock`] |
/// | `loss_probability` | 0-1 | 0 | packets that the capture misses |
/// | `coalescing` | table | none | `within_s` (0-1, default 0.0005), `most_bytes` (1000-65535, default 65535) |
/// | `nat` | table | none | `address` (required): what mobiles appear as here; `ports`: `counted` (default) from `first_port` (1-65535, default 20000) on, or `kept`, the mobiles' own |
/// | `from_s`, `until_s` | 0-1e7 | whole run | when the capture starts and stops, in true time |
///
/// # Errors
/// If a field is outside its range or `name` is no name.
fn read_tap(fields: &mut Fields, hops: usize, epoch_ns: u64) -> Read<TapDescription> {
    let allowed = "a name of letters, digits, - and _";
    let missing = ScenarioError::Missing { field: fields.path("name"), allowed: allowed.to_owned() };
    let name = fields.optional_text("name", allowed)?.ok_or(missing)?;
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_usual) {
        return Err(fields.refuse("name", format!("{name:?}"), allowed));
    }
    let after_hop = match name.as_str() {
        "server" => fields.integer("after_hop", 0..=hops as u64, 0)?,
        "mobile" => fields.integer("after_hop", 0..=hops as u64, hops as u64)?,
        _ => fields.required_integer("after_hop", 0..=hops as u64)?,
    } as usize;
    let sending = match after_hop {
        0 => Some(Direction::Down),
        all if all == hops => Some(Direction::Up),
        _ => None,
    };
    let from_ns = fields.seconds("from_s", 0.0..=MOST_SECONDS, 0.0)?;
    let until_ns = fields.optional_seconds("until_s", 0.0..=MOST_SECONDS)?.unwrap_or(NEVER);
    let description = match (after_hop, hops - after_hop) {
        (0, _) => "beside the server".to_owned(),
        (_, 0) => "beside the mobile".to_owned(),
        (before, _) => format!("behind hop {before} of {hops}, seen from the server"),
    };
    let snap_bytes = fields.optional_integer("snap_bytes", 0..=262_144)?;
    let default_payload_bytes = if snap_bytes.is_some() { MOST_PAYLOAD_BYTES } else { RECOGNISABLE_BYTES };
    let snap_bytes = snap_bytes.unwrap_or(DEFAULT_SNAP_BYTES);
    fields.resolve("snap_bytes", snap_bytes);
    let payload_bytes = fields.integer("payload_bytes", 0..=MOST_PAYLOAD_BYTES, default_payload_bytes)?;
    let settings = TapSettings {
        description,
        link_type: fields.choice(
            "link_type",
            &[
                ("raw", LinkType::Raw),
                ("ethernet", LinkType::Ethernet),
                ("ipv4", LinkType::Ipv4),
                ("ipv6", LinkType::Ipv6),
            ],
        )?,
        snap_bytes: snap_bytes as u32,
        payload_bytes: payload_bytes as u16,
        clock: fields.section("clock", |clock| read_clock(clock, epoch_ns))?,
        loss_probability: fields.number("loss_probability", 0.0..=1.0, 0.0)?,
        coalescing: fields.optional_section("coalescing", |coalescing| {
            Ok(CoalescingSettings {
                within_ns: coalescing.seconds("within_s", 0.0..=1.0, 0.0005)?,
                most_bytes: coalescing.integer("most_bytes", 1000..=u64::from(MOST_BYTES), MOST_BYTES.into())? as u32,
                sending,
            })
        })?,
        translation: fields.optional_section("nat", read_translation)?,
        from_ns,
        until_ns,
        name,
    };
    Ok(TapDescription { after_hop, settings })
}

/// Reads a clock:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `offset_s` | -1e6-1e6 | 0 | how far it is ahead at the start |
/// | `drift_ppm` | -1000-1000 | 0 | what it gains on true time |
/// | `steps` | list of `at_s` (0-1e7), `by_s` (-1e6-1e6) | none | jumps, in order of true time |
/// | `granularity_s` | 1e-9-1 | 1e-9 | readings are rounded down to multiples of it |
///
/// # Errors
/// If a field is outside its range or the steps are out of order.
fn read_clock(fields: &mut Fields, epoch_ns: u64) -> Read<ClockSettings> {
    let offset_ns = signed_nanoseconds(fields.number("offset_s", -1e6..=1e6, 0.0)?);
    let drift_ppm = fields.number("drift_ppm", -1000.0..=1000.0, 0.0)?;
    let granularity_ns = fields.seconds("granularity_s", 1e-9..=1.0, 1e-9)?;
    let steps: Vec<Step> = fields.sections("steps", |step| {
        Ok(Step {
            at_ns: nanoseconds(step.required_number("at_s", 0.0..=MOST_SECONDS)?),
            by_ns: signed_nanoseconds(step.required_number("by_s", -1e6..=1e6)?),
        })
    })?;
    if let Some(index) = steps.windows(2).position(|pair| pair[0].at_ns > pair[1].at_ns) {
        let at_s = steps[index + 1].at_ns as f64 * 1e-9;
        return Err(fields.refuse(&format!("steps[{}].at_s", index + 1), at_s, "not before the step before it"));
    }
    let drift_parts_per_trillion = (drift_ppm * 1e6).round() as i64;
    Ok(ClockSettings { epoch_ns, offset_ns, drift_parts_per_trillion, steps, granularity_ns })
}

fn read_translation(fields: &mut Fields) -> Read<Translation> {
    let allowed = "an IPv4 or IPv6 address";
    let missing = ScenarioError::Missing { field: fields.path("address"), allowed: allowed.to_owned() };
    let text = fields.optional_text("address", allowed)?.ok_or(missing)?;
    let address: IpAddr = text.parse().map_err(|_| fields.refuse("address", format!("{text:?}"), allowed))?;
    let keeps_ports = fields.choice("ports", &[("counted", false), ("kept", true)])?;
    let ports = if keeps_ports {
        TranslatedPorts::Kept
    } else {
        TranslatedPorts::CountedFrom(fields.integer("first_port", 1..=65_535, 20_000)? as u16)
    };
    Ok(Translation { address, ports })
}

fn signed_nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

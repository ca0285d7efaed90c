//! `kind = "wired"` and `kind = "variable-rate"`: links of a path.

use pepscope_path::{
    parse_csv, parse_mahimahi, parse_two_columns, AfterLastStep, CsvColumns, CsvTime, GilbertElliott, LineSettings,
    LossSettings, Places, QueueLimit, QueueSettings, RadioFrames, RateHolds, RateProfile, RateStep, ReportSettings,
    Service, ServiceRule, TraceError, VariableRateSettings, VaryingLineSettings, WiredSettings,
    MAHIMAHI_OPPORTUNITY_BYTES, MAHIMAHI_OVERHEAD_BYTES,
};

use super::buffer::{read_marking, ONE_LIMIT};
use super::error::ScenarioError;
use super::fields::{nanoseconds, Fields, Read};
use super::record::MOST_SECONDS;

const MOST_BIT_S: u64 = 1_000_000_000_000;
const MOST_DELAY_S: f64 = 1000.0;

/// Reads a wired link: `down` and `up` (default: as `down`, with losses of its own), each
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `rate_bit_s` | 1-1e12 | unlimited | of IP packets |
/// | `delay_s` | 0-1000 | 0 | from the last bit out to the last bit in |
/// | `queue_packets`, `queue_bytes` | 0-1e9, at most one | unlimited | what the drop-tail buffer holds |
/// | `queue_counts_service` | true, false | false | whether the packet in service takes a place (ns-2: true) |
/// | `marking` | table | none | `threshold_packets` (0-1e6), `weight` (0-1, default 0.002): congestion warning |
/// | `loss` | table | none | see [`read_loss`] |
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_wired(fields: &mut Fields) -> Read<WiredSettings> {
    fields.default_to_sibling("up", "down");
    Ok(WiredSettings { down: fields.section("down", read_line)?, up: fields.section("up", read_line)? })
}

fn read_line(fields: &mut Fields) -> Read<LineSettings> {
    Ok(LineSettings {
        rate_bit_s: fields.optional_integer("rate_bit_s", 1..=MOST_BIT_S)?,
        delay_ns: fields.seconds("delay_s", 0.0..=MOST_DELAY_S, 0.0)?,
        queue: read_queue(fields)?,
        loss: read_loss_of(fields)?,
    })
}

/// Reads a link of variable rate: `down`, `up` (default: as `down`, with random numbers of its own) and `reports`
/// (`period_s` 0.0001-1000, `user` 0-65535; default none): what it tells a window-adaptation proxy of the down queue.
/// Each direction has the fields of [`read_wired`] but `rate_bit_s`, and
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `rates` | table | unlimited | see [`read_rates`] |
/// | `service` | `exact`, `frozen` | `exact` | what a change of rate does to the packet in service |
/// | `radio_frame_bytes` | 1-65535 | none | packets are sent in whole frames of this size |
/// | `queue_frames` | 0-1e9 | | limit of the buffer in radio frames |
///
/// # Errors
/// If a field is outside its range or a trace cannot be read.
pub(super) fn read_variable_rate(fields: &mut Fields) -> Read<VariableRateSettings> {
    fields.default_to_sibling("up", "down");
    Ok(VariableRateSettings {
        down: fields.section("down", read_varying_line)?,
        up: fields.section("up", read_varying_line)?,
        reports: fields.optional_section("reports", |reports| {
            Ok(ReportSettings {
                period_ns: reports.seconds("period_s", 1e-4..=1000.0, 0.025)?,
                user: reports.integer("user", 0..=65_535, 0)? as u16,
            })
        })?,
    })
}

fn read_varying_line(fields: &mut Fields) -> Read<VaryingLineSettings> {
    let rule = fields.choice("service", &[("exact", ServiceRule::Exact), ("frozen", ServiceRule::Frozen)])?;
    let frame_bytes = fields.optional_integer("radio_frame_bytes", 1..=65_535)?;
    let radio_frames = frame_bytes.map(|bytes| RadioFrames { frame_bytes: bytes as u32 });
    let service = fields.optional_section("rates", read_rates)?.map_or(Service::Unlimited, |rates| match rates {
        Rates::Profile(profile) => Service::Rates { profile, rule, radio_frames },
        Rates::Opportunities(service) => service,
    });
    let queue = read_queue(fields)?;
    let frames = fields.optional_integer("queue_frames", 0..=1_000_000_000)?;
    let queue = match (frames, queue.limit) {
        (None, _) => queue,
        (Some(frames), QueueLimit::Unlimited) => QueueSettings { limit: QueueLimit::Frames(frames as u32), ..queue },
        (Some(frames), _) => return Err(fields.refuse("queue_frames", frames, ONE_LIMIT)),
    };
    Ok(VaryingLineSettings {
        service,
        delay_ns: fields.seconds("delay_s", 0.0..=MOST_DELAY_S, 0.0)?,
        queue,
        loss: read_loss_of(fields)?,
    })
}

fn read_queue(fields: &mut Fields) -> Read<QueueSettings> {
    let packets = fields.optional_integer("queue_packets", 0..=1_000_000_000)?;
    let bytes = fields.optional_integer("queue_bytes", 0..=1_000_000_000)?;
    let limit = match (packets, bytes) {
        (None, None) => QueueLimit::Unlimited,
        (Some(packets), None) => QueueLimit::Packets(packets as u32),
        (None, Some(bytes)) => QueueLimit::Bytes(bytes),
        (Some(_), Some(bytes)) => return Err(fields.refuse("queue_bytes", bytes, ONE_LIMIT)),
    };
    let counts_service = fields.flag("queue_counts_service", false)?;
    let marking = read_marking(fields)?;
    let places = if counts_service { Places::WaitingAndInService } else { Places::Waiting };
    let queue = QueueSettings { limit, places, marking };
    queue.check().map_err(|error| fields.refused_by(&error))?;
    Ok(queue)
}

fn read_loss_of(fields: &mut Fields) -> Read<LossSettings> {
    Ok(fields.optional_section("loss", read_loss)?.unwrap_or_default())
}

/// Reads losses by `kind`: `independent` (`probability`); `gilbert-elliott` (`good_to_bad`, `bad_to_good`,
/// `loss_in_good` default 0, `loss_in_bad` default 1; all probabilities a packet); `listed` (`packets`: numbers of the
/// packets sent, from 0, increasing).
///
/// # Errors
/// If a field is outside its range.
fn read_loss(fields: &mut Fields) -> Read<LossSettings> {
    Ok(match fields.kind(&["independent", "gilbert-elliott", "listed"])? {
        "independent" => LossSettings::Independent { probability: fields.required_number("probability", 0.0..=1.0)? },
        "gilbert-elliott" => LossSettings::GilbertElliott(GilbertElliott {
            good_to_bad: fields.required_number("good_to_bad", 0.0..=1.0)?,
            bad_to_good: fields.required_number("bad_to_good", 0.0..=1.0)?,
            loss_in_good: fields.number("loss_in_good", 0.0..=1.0, 0.0)?,
            loss_in_bad: fields.number("loss_in_bad", 0.0..=1.0, 1.0)?,
        }),
        _ => LossSettings::Listed { numbers: fields.optional_integers("packets", 0..=u64::MAX)?.unwrap_or_default() },
    })
}

enum Rates {
    Profile(RateProfile),
    Opportunities(Service),
}

/// Reads rates by `kind`:
///
/// | kind | fields |
/// |---|---|
/// | `constant` | `rate_bit_s` (1-1e12) |
/// | `steps` | `steps`: list of `duration_s` (1e-6-1e7), `rate_bit_s` (0-1e12); `after`: `repeat` (default), `hold` |
/// | `random` | `period_s` (1e-6-1e7), `low_bit_s`, `high_bit_s` (0-1e12): uniform, new each period |
/// | `mahimahi` | `text`; `opportunity_bytes` (1-1e6, default 1504), `overhead_bytes` (0-1000, default 4) |
/// | `two-columns` | `text` (seconds, Mbit/s); `rate_holds`: `from-its-time` (default), `until-its-time`; `after` |
/// | `csv` | `text`; `rate_column`, `rate_unit_bit_s` (default 1); `time_column`, `time_unit_s` (default 1), or `interval_s`; `rate_holds`; `after` |
///
/// # Errors
/// If a field is outside its range or the text is no such trace.
fn read_rates(fields: &mut Fields) -> Read<Rates> {
    let profile = match fields.kind(&["constant", "steps", "random", "mahimahi", "two-columns", "csv"])? {
        "constant" => RateProfile::constant(fields.required_integer("rate_bit_s", 1..=MOST_BIT_S)?),
        "steps" => {
            let steps = fields.sections("steps", |step| {
                Ok(RateStep {
                    duration_ns: nanoseconds(step.required_number("duration_s", 1e-6..=MOST_SECONDS)?),
                    rate_bit_s: step.required_integer("rate_bit_s", 0..=MOST_BIT_S)?,
                })
            })?;
            RateProfile::Steps { steps, after: read_after(fields)? }
        }
        "random" => RateProfile::Random {
            period_ns: nanoseconds(fields.required_number("period_s", 1e-6..=MOST_SECONDS)?),
            low_bit_s: fields.required_integer("low_bit_s", 0..=MOST_BIT_S)?,
            high_bit_s: fields.required_integer("high_bit_s", 0..=MOST_BIT_S)?,
        },
        "mahimahi" => {
            let mut opportunities = read_trace(fields, parse_mahimahi)?;
            let default = u64::from(MAHIMAHI_OPPORTUNITY_BYTES);
            opportunities.opportunity_bytes = fields.integer("opportunity_bytes", 1..=1_000_000, default)? as u32;
            let default = u64::from(MAHIMAHI_OVERHEAD_BYTES);
            opportunities.overhead_bytes = fields.integer("overhead_bytes", 0..=1000, default)? as u32;
            return Ok(Rates::Opportunities(Service::Opportunities(opportunities)));
        }
        "two-columns" => {
            let holds = read_holds(fields)?;
            let steps = read_trace(fields, |text| parse_two_columns(text, holds))?;
            RateProfile::Steps { steps, after: read_after(fields)? }
        }
        _ => {
            let holds = read_holds(fields)?;
            let columns = read_csv_columns(fields)?;
            let steps = read_trace(fields, |text| parse_csv(text, &columns, holds))?;
            RateProfile::Steps { steps, after: read_after(fields)? }
        }
    };
    Ok(Rates::Profile(profile))
}

fn read_csv_columns(fields: &mut Fields) -> Read<CsvColumns> {
    let interval_ns = fields.optional_seconds("interval_s", 1e-6..=MOST_SECONDS)?;
    let time = match interval_ns {
        Some(interval_ns) => CsvTime::Every { interval_ns },
        None => CsvTime::Column {
            name: fields.text("time_column", "time")?,
            unit_s: fields.number("time_unit_s", 1e-9..=1e6, 1.0)?,
        },
    };
    Ok(CsvColumns {
        time,
        rate: fields.text("rate_column", "rate")?,
        rate_unit_bit_s: fields.number("rate_unit_bit_s", 1e-3..=1e12, 1.0)?,
    })
}

fn read_trace<T>(fields: &mut Fields, parse: impl FnOnce(&str) -> Result<T, TraceError>) -> Read<T> {
    let text = fields.long_text("text")?;
    parse(&text).map_err(|error| ScenarioError::Unreadable { field: fields.path("text"), cause: error.to_string() })
}

fn read_after(fields: &mut Fields) -> Read<AfterLastStep> {
    fields.choice("after", &[("repeat", AfterLastStep::Repeat), ("hold", AfterLastStep::Hold)])
}

fn read_holds(fields: &mut Fields) -> Read<RateHolds> {
    fields
        .choice("rate_holds", &[("from-its-time", RateHolds::FromItsTime), ("until-its-time", RateHolds::UntilItsTime)])
}

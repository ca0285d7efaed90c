//! Rates over time and traces of them.

use pepscope_path::{
    parse_csv, parse_mahimahi, parse_two_columns, AfterLastStep, CsvColumns, CsvTime, RateHolds, RateProfile, RateStep,
    Service, TraceError, MAHIMAHI_OPPORTUNITY_BYTES, MAHIMAHI_OVERHEAD_BYTES,
};

use super::super::MOST_BIT_S;
use crate::fields::{nanoseconds, Fields, Read, ScenarioError, MOST_SECONDS};

/// How the rate of a link of variable rate is given.
pub(super) enum Rates {
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
pub(super) fn read_rates(fields: &mut Fields) -> Read<Rates> {
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

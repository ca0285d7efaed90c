//! `times`: how long a machine and its programs take.

use std::ops::RangeInclusive;

use pepscope_path::{Cooling, ProcessingTime, QUANTILES};
use pepscope_tcp::ProcessingSettings;

use crate::fields::{Fields, Read};

const MOST_TIME_S: f64 = 10.0;
const FACTORS: RangeInclusive<f64> = 1.0..=1000.0;

/// Reads how long a machine takes; the defaults are those of one machine (docs/models/hosts.md), `pepscope host-times`
/// measures those of another one. `times = { file = "times.toml" }` reads them from a file beside the scenario; what
/// stands beside `file` goes before.
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `receiving` | [`time_of`] | 3, 7 us, 0.8 | from the arrival of a packet until the kernel has answered it, where packets come in close succession |
/// | `receiving_data` | [`time_of`] | as `receiving` | the same of data |
/// | `receiving_out_of_order` | [`time_of`] | as `receiving_data` | the same of data behind a gap, for which the kernel wakes no program |
/// | `opening` | [`time_of`] | 14, 17 us, 0.5 | the same of a SYN or SYN-ACK |
/// | `first_opening` | [`time_of`] | as `opening` after a long pause | the same of one that is the first packet of all, for which there is no route at hand |
/// | `cooling_s` | 1e-6-1000 | 0.02 | after such a pause without packets the kernel takes longest |
/// | `cooling_exponent` | 0.05-5 | 1 | it grows with this power of the pause until then |
/// | `cold_receiving`, `cold_opening` | 1-1000 | 4, 2.1 | by these factors |
/// | `first_data` | 1-1000 | 1 | `receiving` is so many times as long for the first data of a connection |
/// | `interrupted_share` | 0-1 | 0.015 | of packets before which something else has the processor |
/// | `interruption` | [`time_of`] | 20, 100 us, 1.2 | for so long, instead of `receiving` |
/// | `persistence` | 0-0.99 | 0 | how much the kernel's times of neighbouring packets are alike, where they have `quantiles_s` |
/// | `sending` | [`time_of`] | 2, 3.4 us, 0.75 | from one packet that leaves to the next one |
/// | `sending_in_burst` | [`time_of`] | 0.5, 1 us, 0.6 | and to the next one of the same burst |
/// | `sending_second` | [`time_of`] | as `sending_in_burst` | and from the first one of a burst to the second |
/// | `reading` | [`time_of`] | 40, 110 us, 0.6 | until a program that only reads has read |
/// | `waking` | [`time_of`] | 150, 330 us, 0.5 | until a program acts on what it got |
/// | `connected`, `accepted` | [`time_of`] | 140, 230 us, 0.9; 420, 620 us, 0.5 | until a program first acts on a connection: one that connected, one that accepted |
/// | `closing` | [`time_of`] | as `reading`, or `waking` for one that acts | until a program has seen the end of what it gets |
/// | `machine_spread` | 0-2 | 0.35 | standard deviation of the logarithm of a factor of the run: all times above the least, and how much later the kernel answers after a pause |
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_times(fields: &mut Fields) -> Read<ProcessingSettings> {
    let usual = ProcessingSettings::default();
    let cold = |fields: &mut Fields, name, default| fields.number(name, FACTORS, default);
    Ok(ProcessingSettings {
        receiving: read_time(fields, "receiving", usual.receiving)?,
        receiving_data: fields.optional_section("receiving_data", |time| time_of(time, usual.receiving))?,
        receiving_out_of_order: fields
            .optional_section("receiving_out_of_order", |time| time_of(time, usual.receiving))?,
        opening: read_time(fields, "opening", usual.opening)?,
        first_opening: fields.optional_section("first_opening", |time| time_of(time, usual.opening))?,
        cooling: read_cooling(fields, usual.cooling)?,
        cold_receiving: cold(fields, "cold_receiving", usual.cold_receiving)?,
        cold_opening: cold(fields, "cold_opening", usual.cold_opening)?,
        first_data: cold(fields, "first_data", usual.first_data)?,
        interrupted_share: fields.number("interrupted_share", 0.0..=1.0, usual.interrupted_share)?,
        interruption: read_time(fields, "interruption", usual.interruption)?,
        persistence: fields.number("persistence", 0.0..=0.99, usual.persistence)?,
        sending: read_time(fields, "sending", usual.sending)?,
        sending_second: fields.optional_section("sending_second", |time| time_of(time, usual.sending_in_burst))?,
        sending_in_burst: read_time(fields, "sending_in_burst", usual.sending_in_burst)?,
        reading: read_time(fields, "reading", usual.reading)?,
        waking: read_time(fields, "waking", usual.waking)?,
        connected: read_time(fields, "connected", usual.connected)?,
        accepted: read_time(fields, "accepted", usual.accepted)?,
        closing: fields.optional_section("closing", |time| time_of(time, usual.reading))?,
        machine_spread: fields.number("machine_spread", 0.0..=2.0, usual.machine_spread)?,
    })
}

/// The times of a machine that takes any; it is refused for one that takes none.
///
/// # Errors
/// What [`read_times`] refuses, and times that would have no effect.
pub(super) fn read_times_where(fields: &mut Fields, takes_time: bool) -> Read<Option<ProcessingSettings>> {
    if takes_time {
        return fields.section("times", read_times).map(Some);
    }
    match fields.given_value("times") {
        Some(value) => Err(fields.refuse("times", value, "absent where takes_time is false")),
        None => fields.optional_section("times", read_times),
    }
}

/// Reads how a pause makes things slower: `cooling_s` and `cooling_exponent`.
///
/// # Errors
/// If a field is outside its range.
pub(crate) fn read_cooling(fields: &mut Fields, usual: Cooling) -> Read<Cooling> {
    Ok(Cooling {
        full_ns: parts_of_nanoseconds(fields.number("cooling_s", 1e-6..=1000.0, usual.full_ns / 1e9)?),
        exponent: fields.number("cooling_exponent", 0.05..=5.0, usual.exponent)?,
    })
}

fn read_time(fields: &mut Fields, name: &'static str, usual: ProcessingTime) -> Read<ProcessingTime> {
    fields.section(name, |time| time_of(time, usual))
}

/// Reads a time that is log-normally distributed above a least one:
///
/// | field | unit, range | meaning |
/// |---|---|---|
/// | `least_s` | 0-10 | |
/// | `median_s` | `least_s`-10 | |
/// | `spread` | 0-4 | standard deviation of the natural logarithm of what is above the least |
/// | `quantiles_s` | 2-1000 numbers of 0-10, none less than the one before | instead of these: times that equal shares of the times lie between, from the least to the greatest |
///
/// # Errors
/// If a field is outside its range.
pub(crate) fn time_of(fields: &mut Fields, usual: ProcessingTime) -> Read<ProcessingTime> {
    let mut seconds =
        |name, usual_ns: f64| fields.number(name, 0.0..=MOST_TIME_S, usual_ns / 1e9).map(parts_of_nanoseconds);
    let (least_ns, median_ns) = (seconds("least_s", usual.least_ns)?, seconds("median_s", usual.median_ns)?);
    if median_ns < least_ns {
        let allowed = format!("at least least_s, which is {}", least_ns / 1e9);
        return Err(fields.refuse("median_s", median_ns / 1e9, allowed));
    }
    let spread = fields.number("spread", 0.0..=4.0, usual.spread)?;
    let quantiles_ns = read_quantiles(fields)?;
    Ok(ProcessingTime { quantiles_ns, ..ProcessingTime::log_normal(least_ns, median_ns, spread) })
}

fn read_quantiles(fields: &mut Fields) -> Read<Option<[f64; QUANTILES]>> {
    let Some(given_s) = fields.optional_numbers("quantiles_s", 0.0..=MOST_TIME_S)? else { return Ok(None) };
    if !(2..=1000).contains(&given_s.len()) || !given_s.is_sorted() {
        let allowed = "2 to 1000 numbers, none less than the one before";
        return Err(fields.refuse("quantiles_s", format!("{given_s:?}"), allowed));
    }
    let mut quantiles_ns = [0.0; QUANTILES];
    for (number, quantile_ns) in quantiles_ns.iter_mut().enumerate() {
        let place = number as f64 * (given_s.len() - 1) as f64 / (QUANTILES - 1) as f64;
        let below = (place as usize).min(given_s.len() - 2);
        let share = place - below as f64;
        *quantile_ns = parts_of_nanoseconds((1.0 - share) * given_s[below] + share * given_s[below + 1]);
    }
    Ok(Some(quantiles_ns))
}

/// Seconds in nanoseconds and millionths of these, so that 3e-6 is 3000 and what is written as the default is the same.
fn parts_of_nanoseconds(seconds: f64) -> f64 {
    (seconds * 1e15).round() / 1e6
}

//! Traces of links, from text.

use core::fmt;

use crate::hop::{Nanoseconds, SECOND};
use crate::transmitters::opportunities::Opportunities;
use crate::transmitters::rates::RateStep;

/// A trace that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Counted from 1; 0 if the text as a whole is at fault.
    pub line: usize,
    pub fault: TraceFault,
}

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceFault {
    Empty,
    BlankLine,
    NotMilliseconds(String),
    GoesBack,
    ZeroLength,
    NotTwoColumns(usize),
    NotANumber(String),
    NegativeRate(String),
    TooLarge(String),
    OnlyOneTime,
    NoColumn(String),
    TooFewFields { found: usize, wanted: usize },
    BadUnit(String),
}

impl fmt::Display for TraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(formatter, "line {} of the trace ", self.line)?;
        } else {
            formatter.write_str("the trace ")?;
        }
        match &self.fault {
            TraceFault::Empty => formatter.write_str("has no data"),
            TraceFault::BlankLine => formatter.write_str("is blank"),
            TraceFault::NotMilliseconds(text) => write!(formatter, "must have whole milliseconds, got {text:?}"),
            TraceFault::GoesBack => formatter.write_str("has a time before that of the line above"),
            TraceFault::ZeroLength => formatter.write_str("ends at time 0, so it lasts no time at all"),
            TraceFault::NotTwoColumns(count) => write!(formatter, "must have two columns, got {count}"),
            TraceFault::NotANumber(text) => write!(formatter, "must have a number, got {text:?}"),
            TraceFault::NegativeRate(text) => write!(formatter, "must have a rate of at least 0, got {text}"),
            TraceFault::TooLarge(text) => write!(formatter, "has a value that is too large, {text}"),
            TraceFault::OnlyOneTime => formatter.write_str("has one time only, so no rate has a length"),
            TraceFault::NoColumn(name) => write!(formatter, "has no column called {name:?}"),
            TraceFault::TooFewFields { found, wanted } => {
                write!(formatter, "has {found} fields, but column {wanted} is needed")
            }
            TraceFault::BadUnit(text) => write!(formatter, "cannot be read in units of {text}, which must be above 0"),
        }
    }
}

impl std::error::Error for TraceError {}

/// Which span of time the rate of a line is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateHolds {
    /// A rate holds from the time of its line to that of the next line. The last rate holds as long as the one before it.
    #[default]
    FromItsTime,
    /// From the time of the line before to its own, as Pensieve's simulator plays its traces: a measurement of what has
    /// been. The first line only gives the start.
    UntilItsTime,
}

/// Reads mahimahi's format: one delivery opportunity a line, in whole milliseconds.
///
/// # Errors
/// Refuses what mahimahi refuses: blank lines, anything but digits, times that go back, a trace that ends at 0.
pub fn parse_mahimahi(text: &str) -> Result<Opportunities, TraceError> {
    let mut times_ms: Vec<u64> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_error = |fault| TraceError { line: index + 1, fault };
        if line.is_empty() {
            return Err(line_error(TraceFault::BlankLine));
        }
        let is_digits = line.bytes().all(|byte| byte.is_ascii_digit());
        let time_ms = match line.parse::<u32>() {
            Ok(time_ms) if is_digits => u64::from(time_ms),
            Err(_) if is_digits => return Err(line_error(TraceFault::TooLarge(line.to_owned()))),
            _ => return Err(line_error(TraceFault::NotMilliseconds(line.to_owned()))),
        };
        if times_ms.last().is_some_and(|&last| time_ms < last) {
            return Err(line_error(TraceFault::GoesBack));
        }
        times_ms.push(time_ms);
    }
    match times_ms.last() {
        None => Err(TraceError { line: 0, fault: TraceFault::Empty }),
        Some(0) => Err(TraceError { line: times_ms.len(), fault: TraceFault::ZeroLength }),
        Some(_) => Ok(Opportunities::of_mahimahi(times_ms)),
    }
}

/// Reads two columns apart by blanks, tabs or a comma: seconds and Mbit/s. Blank lines and lines that begin with `#`
/// are passed over; the first time need not be 0.
///
/// # Errors
/// Names the first line that does not fit.
pub fn parse_two_columns(text: &str, holds: RateHolds) -> Result<Vec<RateStep>, TraceError> {
    let mut samples = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_error = |fault| TraceError { line: index + 1, fault };
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let is_separator = |character: char| character == ',' || character.is_whitespace();
        let columns: Vec<&str> = content.split(is_separator).filter(|field| !field.is_empty()).collect();
        let &[time, rate] = columns.as_slice() else {
            return Err(line_error(TraceFault::NotTwoColumns(columns.len())));
        };
        let time_ns = time_ns(time, 1.0).map_err(line_error)?;
        let rate_bit_s = rate_bit_s(rate, 1e6).map_err(line_error)?;
        samples.push(Sample { line: index + 1, time_ns, rate_bit_s });
    }
    steps(&samples, holds)
}

/// The times of a CSV file.
#[derive(Clone, Debug, PartialEq)]
pub enum CsvTime {
    /// A column has the times, in units of `unit_s` seconds.
    Column { name: String, unit_s: f64 },
    /// Nowhere: one row every so many nanoseconds.
    Every { interval_ns: Nanoseconds },
}

/// Which columns of a CSV file to read.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvColumns {
    pub time: CsvTime,
    pub rate: String,
    /// Bits a second of the rate's unit: 1000 for kbit/s.
    pub rate_unit_bit_s: f64,
}

/// Reads a CSV file with a line of column names (RFC 4180, without line breaks inside fields).
///
/// # Errors
/// Names a missing column, or the first line that does not fit.
pub fn parse_csv(text: &str, columns: &CsvColumns, holds: RateHolds) -> Result<Vec<RateStep>, TraceError> {
    for unit in [Some(columns.rate_unit_bit_s), columns.time.unit_s()].into_iter().flatten() {
        if !(unit > 0.0 && unit.is_finite()) {
            return Err(TraceError { line: 0, fault: TraceFault::BadUnit(unit.to_string()) });
        }
    }
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (index, header) = lines.next().ok_or(TraceError { line: 0, fault: TraceFault::Empty })?;
    let names = csv_fields(header.trim_start_matches('\u{feff}'));
    let column = |name: &str| {
        let position = names.iter().position(|candidate| candidate.trim() == name);
        position.ok_or_else(|| TraceError { line: index + 1, fault: TraceFault::NoColumn(name.to_owned()) })
    };
    let rate_column = column(&columns.rate)?;
    let time_column = match &columns.time {
        CsvTime::Column { name, unit_s } => Some((column(name)?, *unit_s)),
        CsvTime::Every { .. } => None,
    };
    let mut samples = Vec::new();
    for (index, line) in lines {
        let line_error = |fault| TraceError { line: index + 1, fault };
        let fields = csv_fields(line);
        let field = |column: usize| {
            let missing = TraceFault::TooFewFields { found: fields.len(), wanted: column + 1 };
            fields.get(column).map(|field| field.trim()).ok_or_else(|| line_error(missing))
        };
        let time_ns = match time_column {
            Some((column, unit_s)) => time_ns(field(column)?, unit_s).map_err(line_error)?,
            None => 0,
        };
        let rate_bit_s = rate_bit_s(field(rate_column)?, columns.rate_unit_bit_s).map_err(line_error)?;
        samples.push(Sample { line: index + 1, time_ns, rate_bit_s });
    }
    match columns.time {
        CsvTime::Column { .. } => steps(&samples, holds),
        CsvTime::Every { interval_ns: 0 } => Err(TraceError { line: 0, fault: TraceFault::ZeroLength }),
        CsvTime::Every { interval_ns } if !samples.is_empty() => {
            let step = |sample: &Sample| RateStep { duration_ns: interval_ns, rate_bit_s: sample.rate_bit_s };
            Ok(samples.iter().map(step).collect())
        }
        CsvTime::Every { .. } => Err(TraceError { line: 0, fault: TraceFault::Empty }),
    }
}

impl CsvTime {
    fn unit_s(&self) -> Option<f64> {
        match self {
            Self::Column { unit_s, .. } => Some(*unit_s),
            Self::Every { .. } => None,
        }
    }
}

struct Sample {
    line: usize,
    time_ns: Nanoseconds,
    rate_bit_s: u64,
}

/// Steps between the times of `samples`; those of no length are left out.
fn steps(samples: &[Sample], holds: RateHolds) -> Result<Vec<RateStep>, TraceError> {
    let mut steps = Vec::with_capacity(samples.len());
    for pair in samples.windows(2) {
        let duration_ns = pair[1]
            .time_ns
            .checked_sub(pair[0].time_ns)
            .ok_or(TraceError { line: pair[1].line, fault: TraceFault::GoesBack })?;
        let rate_bit_s = match holds {
            RateHolds::FromItsTime => pair[0].rate_bit_s,
            RateHolds::UntilItsTime => pair[1].rate_bit_s,
        };
        if duration_ns > 0 {
            steps.push(RateStep { duration_ns, rate_bit_s });
        }
    }
    match (holds, samples.last(), steps.last().copied()) {
        (_, None, _) => Err(TraceError { line: 0, fault: TraceFault::Empty }),
        (_, Some(_), None) => Err(TraceError { line: 0, fault: TraceFault::OnlyOneTime }),
        (RateHolds::UntilItsTime, _, _) => Ok(steps),
        (RateHolds::FromItsTime, Some(last), Some(before)) => {
            steps.push(RateStep { duration_ns: before.duration_ns, rate_bit_s: last.rate_bit_s });
            Ok(steps)
        }
    }
}

fn number(text: &str) -> Result<f64, TraceFault> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(TraceFault::NotANumber(text.to_owned())),
    }
}

fn time_ns(text: &str, unit_s: f64) -> Result<Nanoseconds, TraceFault> {
    let time_ns = libm::round(number(text)? * unit_s * SECOND as f64);
    if time_ns < 0.0 {
        return Err(TraceFault::NotANumber(text.to_owned()));
    }
    // 2^53 ns are 104 days as a span; absolute times of day are larger and lose less than a microsecond.
    if time_ns >= 2f64.powi(63) {
        return Err(TraceFault::TooLarge(text.to_owned()));
    }
    Ok(time_ns as Nanoseconds)
}

fn rate_bit_s(text: &str, unit_bit_s: f64) -> Result<u64, TraceFault> {
    let rate_bit_s = libm::round(number(text)? * unit_bit_s);
    if rate_bit_s < 0.0 {
        return Err(TraceFault::NegativeRate(text.to_owned()));
    }
    if rate_bit_s >= 2f64.powi(53) {
        return Err(TraceFault::TooLarge(text.to_owned()));
    }
    Ok(rate_bit_s as u64)
}

/// The fields of one line; quotation marks enclose commas, and are doubled inside.
fn csv_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                if let Some(field) = fields.last_mut() {
                    field.push('"');
                }
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => {
                if let Some(field) = fields.last_mut() {
                    field.push(character);
                }
            }
        }
    }
    fields
}

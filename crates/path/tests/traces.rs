//! Traces from text, and what is said of damaged ones.
#![allow(clippy::unwrap_used)]

use pepscope_path::{
    parse_csv, parse_mahimahi, parse_two_columns, CsvColumns, CsvTime, RateHolds, RateStep, TraceError, MILLISECOND,
    SECOND,
};
use proptest::prelude::{prop_assert, proptest};

fn step(duration_ns: u64, rate_bit_s: u64) -> RateStep {
    RateStep { duration_ns, rate_bit_s }
}

fn message<T: std::fmt::Debug>(result: Result<T, TraceError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn mahimahi_is_one_opportunity_a_line() {
    let trace = parse_mahimahi("0\n3\n3\r\n10\n").unwrap();
    assert_eq!(trace.times_ms, [0, 3, 3, 10]);
    assert_eq!((trace.opportunity_bytes, trace.overhead_bytes), (1_504, 4));
}

#[test]
fn damaged_mahimahi_traces_are_refused_by_line() {
    assert_eq!(message(parse_mahimahi("")), "the trace has no data");
    assert_eq!(message(parse_mahimahi("1\n\n2\n")), "line 2 of the trace is blank");
    assert_eq!(message(parse_mahimahi("1\n2.5\n")), "line 2 of the trace must have whole milliseconds, got \"2.5\"");
    assert_eq!(message(parse_mahimahi("+1\n")), "line 1 of the trace must have whole milliseconds, got \"+1\"");
    assert_eq!(message(parse_mahimahi("5\n4\n")), "line 2 of the trace has a time before that of the line above");
    assert_eq!(message(parse_mahimahi("0\n0\n")), "line 2 of the trace ends at time 0, so it lasts no time at all");
    assert_eq!(
        message(parse_mahimahi("4294967296\n")),
        "line 1 of the trace has a value that is too large, 4294967296"
    );
}

#[test]
fn two_columns_hold_from_or_until_their_time() {
    let text = "# seconds Mbit/s\n0.5 1.5\n\n1.0\t0\n3.0, 2\n";
    let from = parse_two_columns(text, RateHolds::FromItsTime).unwrap();
    assert_eq!(from, [step(SECOND / 2, 1_500_000), step(2 * SECOND, 0), step(2 * SECOND, 2_000_000)]);
    let until = parse_two_columns(text, RateHolds::UntilItsTime).unwrap();
    assert_eq!(until, [step(SECOND / 2, 0), step(2 * SECOND, 2_000_000)]);
}

#[test]
fn damaged_columns_are_refused_by_line() {
    let refused = |text| message(parse_two_columns(text, RateHolds::FromItsTime));
    assert_eq!(refused("0 1\n1\n"), "line 2 of the trace must have two columns, got 1");
    assert_eq!(refused("0 1\n1 x\n"), "line 2 of the trace must have a number, got \"x\"");
    assert_eq!(refused("0 1\n1 NaN\n"), "line 2 of the trace must have a number, got \"NaN\"");
    assert_eq!(refused("0 1\n1 -2\n"), "line 2 of the trace must have a rate of at least 0, got -2");
    assert_eq!(refused("0 1\n1 1e300\n"), "line 2 of the trace has a value that is too large, 1e300");
    assert_eq!(refused("1 1\n0 1\n"), "line 2 of the trace has a time before that of the line above");
    assert_eq!(refused("1 1\n"), "the trace has one time only, so no rate has a length");
    assert_eq!(refused("# nothing\n"), "the trace has no data");
}

fn columns(time: CsvTime) -> CsvColumns {
    CsvColumns { time, rate: "DL_bitrate".to_owned(), rate_unit_bit_s: 1_000.0 }
}

#[test]
fn csv_columns_are_found_by_name() {
    let text = "Timestamp,\"Cell, name\",DL_bitrate\n1000,\"a \"\"b\"\", c\",384\n1500,,64.5\n";
    let timed = columns(CsvTime::Column { name: "Timestamp".to_owned(), unit_s: 0.001 });
    let read = parse_csv(text, &timed, RateHolds::FromItsTime).unwrap();
    assert_eq!(read, [step(500 * MILLISECOND, 384_000), step(500 * MILLISECOND, 64_500)]);
    let regular = columns(CsvTime::Every { interval_ns: SECOND });
    assert_eq!(
        parse_csv(text, &regular, RateHolds::FromItsTime).unwrap(),
        [step(SECOND, 384_000), step(SECOND, 64_500)]
    );
}

#[test]
fn damaged_csv_is_refused_by_line_and_column() {
    let refused = |text, columns: &CsvColumns| message(parse_csv(text, columns, RateHolds::FromItsTime));
    let regular = columns(CsvTime::Every { interval_ns: SECOND });
    assert_eq!(refused("a,b\n1,2\n", &regular), "line 1 of the trace has no column called \"DL_bitrate\"");
    assert_eq!(refused("a,DL_bitrate\n1\n", &regular), "line 2 of the trace has 1 fields, but column 2 is needed");
    assert_eq!(refused("a,DL_bitrate\n1,-\n", &regular), "line 2 of the trace must have a number, got \"-\"");
    assert_eq!(refused("a,DL_bitrate\n", &regular), "the trace has no data");
    let zero = CsvColumns { rate_unit_bit_s: 0.0, ..regular };
    assert_eq!(refused("a,DL_bitrate\n1,2\n", &zero), "the trace cannot be read in units of 0, which must be above 0");
}

proptest! {
    #[test]
    fn no_text_stops_a_parser(text in "[0-9a-z,.\"\n\r\t #-]{0,80}") {
        let _ = parse_mahimahi(&text);
        let regular = columns(CsvTime::Every { interval_ns: 1 });
        let timed = CsvColumns { rate: "a".to_owned(), time: CsvTime::Column { name: "b".to_owned(), unit_s: 1.0 }, ..regular };
        let _ = parse_csv(&format!("a,b\n{text}"), &timed, RateHolds::FromItsTime);
        for holds in [RateHolds::FromItsTime, RateHolds::UntilItsTime] {
            if let Ok(steps) = parse_two_columns(&text, holds) {
                prop_assert!(steps.iter().all(|step| step.duration_ns > 0));
                prop_assert!(!steps.is_empty());
            }
        }
    }
}

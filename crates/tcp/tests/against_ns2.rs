//! Tahoe, Reno, NewReno and SACK against ns-2 on one to four losses in a window, as in Fall and Floyd's comparison.

#![allow(clippy::expect_used)] // helpers of tests are not tests to clippy

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::wire::{End, Wire};
use pepscope_path::{MILLISECOND, SECOND};
use pepscope_tcp::{Recovery, RetransmissionSettings, Settings};

const SEGMENT_BYTES: u16 = 960;
const SEGMENTS: u64 = 100;
const WINDOW_SEGMENTS: u64 = 28;
/// Twice the delay, and what a full window takes to send is far less.
const ROUND_S: f64 = 0.2002;

/// Fall and Floyd's.
const PATTERNS: [&[u64]; 4] = [&[14], &[14, 28], &[14, 26, 28], &[14, 24, 26, 28]];
/// ns-2's full TCP has no limited transmit, so that 28 leaves only after the first repair.
const PATTERNS_WITHOUT_LIMITED_TRANSMIT: [&[u64]; 4] = [&[14], &[14, 26], &[14, 24, 26], &[14, 22, 24, 26]];
const SENDERS: [(Recovery, &str, &str, &str); 4] = [
    (Recovery::Tahoe, "tahoe", "TCP", "TCPSink"),
    (Recovery::Reno, "reno", "TCP/Reno", "TCPSink"),
    (Recovery::NewReno, "newreno", "TCP/Newreno", "TCPSink"),
    (Recovery::Sack, "sack", "TCP/FullTcp/Sack", "TCP/FullTcp/Sack"),
];

/// Segments by round; rounds are counted from that of segment 1.
type Rounds = BTreeMap<i64, Vec<u64>>;

fn patterns(recovery: Recovery) -> [&'static [u64]; 4] {
    if recovery == Recovery::Sack {
        PATTERNS_WITHOUT_LIMITED_TRANSMIT
    } else {
        PATTERNS
    }
}

fn golden_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn golden_path(name: &str, dropped: &[u64]) -> PathBuf {
    golden_directory().join(format!("{name}-{}-losses.txt", dropped.len()))
}

/// Puts transmissions (time in seconds, number) into rounds. ns-2's number 0 is its SYN.
fn rounds(transmissions: impl Iterator<Item = (f64, u64)>) -> Rounds {
    let mut rounds = Rounds::new();
    let mut begin = None;
    for (time, segment) in transmissions.filter(|(_, segment)| (1..=SEGMENTS).contains(segment)) {
        let begin = *begin.get_or_insert(time);
        rounds.entry(((time - begin) / ROUND_S).round() as i64).or_default().push(segment);
    }
    rounds
}

fn read_golden(text: &str) -> Rounds {
    rounds(text.lines().map(|line| {
        let (time, segment) = line.split_once(' ').expect("a time and a number");
        (time.parse().expect("a time"), segment.parse().expect("a number"))
    }))
}

fn our_rounds(recovery: Recovery, dropped: &[u64]) -> Rounds {
    let bytes = u64::from(SEGMENT_BYTES);
    let settings = Settings {
        maximum_segment_size: SEGMENT_BYTES,
        receive_buffer_bytes: WINDOW_SEGMENTS * bytes,
        initial_window_segments: 1,
        initial_slow_start_threshold_bytes: WINDOW_SEGMENTS * bytes,
        window_scale: None,
        timestamps: false,
        delayed_acknowledgement: None,
        limited_transmit: recovery != Recovery::Sack,
        retransmission: RetransmissionSettings::CLASSIC,
        recovery,
        ..Settings::default()
    };
    let mut wire = Wire::new(settings, settings);
    wire.delay = 100 * MILLISECOND;
    wire.byte_time = 80;
    wire.open();
    wire.lose_from_server(dropped);
    wire.write(End::Server, 1, 0, SEGMENTS * bytes);
    wire.run(30 * SECOND);
    assert!(wire.server.is_drained());
    rounds(
        wire.sent
            .iter()
            .filter(|sent| sent.from == End::Server && sent.segment.payload_bytes > 0)
            .map(|sent| (sent.at as f64 / 1e9, u64::from(sent.segment.sequence - 1) / bytes + 1)),
    )
}

/// (round, segment) of what is sent for the second time or later.
fn retransmissions(rounds: &Rounds) -> Vec<(i64, u64)> {
    let mut seen = BTreeSet::new();
    rounds
        .iter()
        .flat_map(|(round, segments)| segments.iter().map(move |segment| (*round, *segment)))
        .filter(|(_, segment)| !seen.insert(*segment))
        .collect()
}

fn show(rounds: &Rounds) -> String {
    rounds.iter().map(|(round, segments)| format!("{round}: {segments:?}\n")).collect()
}

enum Comparison {
    /// All segments, new ones too, in the same order and rounds.
    Everything,
    /// What is sent again, and in which round. ns-2's Reno halves the window where RFC 5681 halves what is in flight,
    /// and its full TCP grows by another rounding: new data differs by a segment or two after the repair.
    Retransmissions,
}

#[track_caller]
fn same_as_ns2(recovery: Recovery, name: &str, comparison: &Comparison) {
    for dropped in patterns(recovery) {
        let golden = std::fs::read_to_string(golden_path(name, dropped)).expect("a golden file");
        let theirs = read_golden(&golden);
        let ours = our_rounds(recovery, dropped);
        let is_same = match comparison {
            Comparison::Everything => ours == theirs,
            Comparison::Retransmissions => retransmissions(&ours) == retransmissions(&theirs),
        };
        assert!(is_same, "{name} with {dropped:?} lost\nns-2:\n{}\nours:\n{}", show(&theirs), show(&ours));
    }
}

#[test]
fn tahoe_retransmits_as_in_ns2() {
    same_as_ns2(Recovery::Tahoe, "tahoe", &Comparison::Everything);
}

#[test]
fn reno_retransmits_as_in_ns2() {
    same_as_ns2(Recovery::Reno, "reno", &Comparison::Retransmissions);
}

#[test]
fn newreno_retransmits_as_in_ns2() {
    same_as_ns2(Recovery::NewReno, "newreno", &Comparison::Everything);
}

#[test]
fn sack_retransmits_as_in_ns2() {
    same_as_ns2(Recovery::Sack, "sack", &Comparison::Retransmissions);
}

/// Where ns-2 is installed: the golden files are what it prints.
#[test]
fn golden_files_are_what_ns2_prints() {
    let script = golden_directory().join("drops.tcl");
    for (recovery, name, agent, sink) in SENDERS {
        for dropped in patterns(recovery) {
            let numbers = dropped.iter().map(u64::to_string);
            let run = Command::new("ns").arg(&script).args([agent, sink]).args(numbers).output();
            let Ok(output) = run else { return };
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let golden = std::fs::read_to_string(golden_path(name, dropped)).expect("a golden file");
            assert_eq!(String::from_utf8_lossy(&output.stdout), golden, "{name} with {dropped:?} lost");
        }
    }
}

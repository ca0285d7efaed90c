//! Scenarios from their JSON to what they leave behind.
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use pepscope_drive::scenario::Scenario;
use pepscope_drive::simulation::{Ending, Simulation};
use pepscope_path::{Direction, Hop, MILLISECOND, SECOND};
use pepscope_tcp::Outcome;

const DOWNLOAD: &str = r#"{
    "name": "download", "duration_s": 60, "seed": 5,
    "path": [
        {"kind": "wired", "down": {"rate_bit_s": 2e6, "delay_s": 0.03, "queue_packets": 40,
                                   "loss": {"kind": "independent", "probability": 0.005}}},
        {"kind": "variable-rate", "down": {"rates": {"kind": "random", "period_s": 0.2, "low_bit_s": 200000,
                                                     "high_bit_s": 3000000}, "queue_packets": 30, "delay_s": 0.02}}
    ],
    "traffic": [
        {"kind": "download", "bytes": 700001},
        {"kind": "upload", "bytes": 300000, "start_s": 0.5, "application": "http"},
        {"kind": "http", "page_bytes": 50000, "pages": 2, "think_time_mean_s": 1, "user": 1},
        {"kind": "both", "down_bytes": 100000, "up_bytes": 120000, "ip_version": 6}
    ],
    "record": {"series_interval_s": 0.5, "one_way_delays": true}
}"#;

type Bytes = Arc<Mutex<Vec<u8>>>;

struct File(Bytes);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a scenario to its end; also gives the files that it wrote, by name.
fn run(text: &str) -> (Simulation, Ending, Vec<(String, Vec<u8>)>) {
    let files: Mutex<Vec<(String, Bytes)>> = Mutex::default();
    let open = |path: &Path| {
        let bytes = Bytes::default();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        files.lock().unwrap().push((name, bytes.clone()));
        Ok(Box::new(File(bytes)) as Box<dyn Write + Send>)
    };
    let mut simulation = Scenario::from_json(text).unwrap().build_with(Some(Path::new("")), open).unwrap();
    let ending = simulation.run(&mut |_, _| true).unwrap();
    let written = files.lock().unwrap();
    let written = written.iter().map(|(name, bytes)| (name.clone(), bytes.lock().unwrap().clone())).collect();
    (simulation, ending, written)
}

fn refusal(text: &str) -> String {
    Scenario::from_json(text).unwrap_err().to_string()
}

#[test]
fn finished_transfers_deliver_exactly_what_was_sent() {
    let (simulation, ending, _) = run(DOWNLOAD);
    assert_eq!(ending, Ending::Finished);
    let ends: Vec<_> = simulation.server().flows().zip(simulation.mobile().flows()).collect();
    assert_eq!(ends.len(), 4);
    for (server, mobile) in &ends {
        assert_eq!((server.outcome, mobile.outcome), (Outcome::Closed, Outcome::Closed));
        assert_eq!(server.application.written_bytes, mobile.application.read_bytes);
        assert_eq!(server.application.written_digest, mobile.application.read_digest);
        assert_eq!(mobile.application.written_digest, server.application.read_digest);
    }
    assert_eq!(ends[0].1.application.read_bytes, 700_001);
    assert_eq!(ends[3].0.application.read_bytes, 120_000);
}

#[test]
fn one_seed_gives_one_set_of_bytes_and_another_seed_another() {
    let (first, _, first_files) = run(DOWNLOAD);
    let (second, _, second_files) = run(DOWNLOAD);
    assert_eq!(first_files.iter().map(|file| file.0.as_str()).collect::<Vec<_>>(), ["server.pcapng", "mobile.pcapng"]);
    assert!(first_files == second_files);
    assert_eq!(first.events(), second.events());
    assert_eq!(first.delays().arrivals(), second.delays().arrivals());
    let bits = |simulation: &Simulation| -> Vec<u64> {
        simulation
            .series()
            .columns()
            .iter()
            .flat_map(|column| column.values.iter().map(|value| value.to_bits()))
            .collect()
    };
    assert_eq!(bits(&first), bits(&second));
    let (_, _, other_files) = run(&DOWNLOAD.replace("\"seed\": 5", "\"seed\": 6"));
    assert!(first_files != other_files);
}

#[test]
fn what_is_recorded_changes_nothing_that_happens() {
    let (recorded, _, _) = run(DOWNLOAD);
    let bare = DOWNLOAD.replace(r#"{"series_interval_s": 0.5, "one_way_delays": true}"#, "{}");
    let mut unrecorded = Scenario::from_json(&bare).unwrap().build(None).unwrap();
    unrecorded.run(&mut |_, _| true).unwrap();
    assert_eq!(recorded.events(), unrecorded.events());
    assert!(recorded.mobile().flows().eq(unrecorded.mobile().flows()));
    assert_eq!(unrecorded.series().columns(), []);
    assert_eq!(unrecorded.delays().arrivals(), []);
}

#[test]
fn delays_are_those_of_the_path() {
    let (simulation, _, _) = run(DOWNLOAD);
    let down = simulation.delays().summary(0, 0, Direction::Down).unwrap();
    let up = simulation.delays().summary(0, 0, Direction::Up).unwrap();
    // 50 ms of propagation, then at least the service of the smallest packet at 2 and 3 Mbit/s (40 bytes: 0.27 ms).
    for summary in [down, up] {
        assert!(summary.minimum_ns() > 50 * MILLISECOND);
    }
    assert!(up.minimum_ns() < 53 * MILLISECOND);
    let arrivals = simulation.delays().arrivals();
    let of_flow = arrivals.iter().filter(|arrival| arrival.flow == 0 && arrival.direction == Direction::Down);
    let counted = of_flow.clone().count() as u64;
    assert_eq!(counted, down.count());
    let delivered: u64 = simulation.server().flows().map(|flow| flow.statistics.segments_received).sum();
    assert_eq!(delivered, arrivals.iter().filter(|arrival| arrival.direction == Direction::Up).count() as u64);
    let mean_s =
        of_flow.map(|arrival| (arrival.arrived_ns - arrival.sent_ns) as f64 * 1e-9).sum::<f64>() / counted as f64;
    assert!((mean_s / down.mean_s() - 1.0).abs() < 1e-9);
}

#[test]
fn packets_are_delivered_lost_or_on_their_way() {
    let mut simulation = Scenario::from_json(DOWNLOAD).unwrap().build(None).unwrap();
    simulation.run(&mut |_, _| true).unwrap();
    let hops: Vec<_> = simulation.hops().collect();
    for direction in [Direction::Down, Direction::Up] {
        for (_, hop) in &hops {
            let counts = hop.counts(direction);
            assert_eq!(
                counts.offered_packets,
                counts.delivered_packets + counts.lost_packets + counts.overflowed_packets
            );
        }
    }
    let [first, second] = [0, 1].map(|index: usize| hops[index].1.counts(Direction::Down));
    assert_eq!(first.delivered_packets, second.offered_packets);
    assert!(first.lost_packets > 0);
}

#[test]
fn series_are_sampled_at_equal_intervals() {
    let (simulation, _, _) = run(DOWNLOAD);
    let series = simulation.series();
    assert!(series.times_ns().windows(2).all(|pair| pair[1] - pair[0] == SECOND / 2));
    assert_eq!(series.times_ns().last(), Some(&(simulation.now() / (SECOND / 2) * (SECOND / 2))));
    let window = series.columns().iter().find(|column| {
        column.place == "server" && column.flow == Some(0) && column.quantity == "congestion_window_bytes"
    });
    assert!(window.unwrap().values.iter().any(|value| *value > 20_000.0));
    assert!(series.columns().iter().any(|column| column.place == "wired-1"));
    assert!(series.columns().iter().all(|column| column.values.len() == series.times_ns().len()));
}

#[test]
fn a_watcher_can_end_a_run() {
    let text = r#"{"name": "long", "duration_s": 1000,
                   "path": [{"kind": "wired", "down": {"rate_bit_s": 1e8, "delay_s": 0.01, "queue_packets": 100}}],
                   "traffic": [{"kind": "download", "duration_s": 1000}]}"#;
    let mut simulation = Scenario::from_json(text).unwrap().build(None).unwrap();
    let mut looks = 0;
    let ending = simulation.run(&mut |_, _| {
        looks += 1;
        looks < 3
    });
    assert_eq!(ending.unwrap(), Ending::Interrupted);
    assert!(simulation.now() < 100 * SECOND);
}

/// A disk that is full after so many bytes.
struct FullAfter(usize);

impl Write for FullAfter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => {
                self.0 = left;
                Ok(bytes.len())
            }
            None => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_a_run_in_one_sentence() {
    let open = |_: &Path| Ok(Box::new(FullAfter(300_000)) as Box<dyn Write + Send>);
    let full_snap = DOWNLOAD.replace(r#""one_way_delays": true"#, r#""taps": [{"name": "server", "snap_bytes": 0}]"#);
    let mut simulation = Scenario::from_json(&full_snap).unwrap().build_with(Some(Path::new("out")), open).unwrap();
    let sentence = simulation.run(&mut |_, _| true).unwrap_err().to_string();
    assert!(sentence.starts_with("cannot write out/server.pcapng: "), "{sentence}");
}

#[test]
fn a_path_without_delay_or_rate_is_not_simulated_for_ever() {
    let text = r#"{"name": "instant", "duration_s": 10, "traffic": [{"kind": "download", "duration_s": 10}]}"#;
    let mut simulation = Scenario::from_json(text).unwrap().build(None).unwrap();
    let sentence = simulation.run(&mut |_, _| true).unwrap_err().to_string();
    assert!(sentence.starts_with("the simulation does not get past 0 s"), "{sentence}");
}

#[test]
fn refusals_name_field_value_and_what_is_allowed() {
    assert_eq!(refusal(r#"{"name": "a"}"#), "duration_s is missing; it must be a number from 0.001 to 1e7");
    assert_eq!(
        refusal(r#"{"name": "a", "duration_s": 1, "path": [{"kind": "wired", "down": {"delay_s": -1}}]}"#),
        "path[0].down.delay_s must be a number from 0 to 1000, got -1"
    );
    assert_eq!(
        refusal(r#"{"name": "a", "duration_s": 1, "record": {"taps": [{"name": "x", "after_hop": 1}]}}"#),
        "record.taps[0].after_hop must be a whole number from 0 to 0, got 1"
    );
    assert_eq!(
        refusal(r#"{"name": "a", "duration_s": 1, "traffic": [{"kind": "download"}]}"#),
        "traffic[0].bytes is missing; it must be a whole number from 1 to 17592186044416, or there must be duration_s"
    );
    assert_eq!(
        refusal(
            r#"{"name": "a", "duration_s": 1, "path": [{"kind": "variable-rate", "down": {
            "rates": {"kind": "mahimahi", "text": "1\n0\n"}}}]}"#
        ),
        "path[0].down.rates.text cannot be read: line 2 of the trace has a time before that of the line above"
    );
    let pigeon = refusal(r#"{"name": "a", "duration_s": 1, "path": [{"kind": "carrier-pigeon"}]}"#);
    assert!(pigeon.starts_with(r#"path[0].kind must be one of wired, "#), "{pigeon}");
    assert!(refusal("{").starts_with("the scenario must be JSON: "));
}

#[test]
fn defaults_are_reported() {
    let scenario = Scenario::from_json(r#"{"name": "a", "duration_s": 1}"#).unwrap();
    assert_eq!(scenario.resolved["server"]["control"], "cubic");
    assert_eq!(scenario.resolved["record"]["taps"][1]["name"], "mobile");
    let again = Scenario::from_json(&scenario.resolved.to_string()).unwrap();
    assert_eq!(again.resolved, scenario.resolved);
}

#[test]
fn a_translation_that_keeps_ports_counts_from_none() {
    let scenario = |nat: &str| {
        let taps = format!(r#"[{{"name": "server", "nat": {{"address": "192.0.2.1", {nat}}}}}]"#);
        format!(r#"{{"name": "a", "duration_s": 1, "record": {{"taps": {taps}}}}}"#)
    };
    let kept = Scenario::from_json(&scenario(r#""ports": "kept""#)).unwrap();
    assert_eq!(Scenario::from_json(&kept.resolved.to_string()).unwrap().resolved, kept.resolved);
    assert_eq!(
        refusal(&scenario(r#""ports": "kept", "first_port": 9"#)),
        "record.taps[0].nat.first_port is not a field; fields are address, ports"
    );
}

#[test]
fn connections_may_have_a_tcp_of_their_own() {
    let (simulation, _, _) = run(r#"{
        "name": "mixed", "duration_s": 60, "mobile": {"timestamps": false},
        "server": {"maximum_segment_size_bytes": 1000},
        "path": [{"kind": "wired", "down": {"delay_s": 0.1}}],
        "traffic": [
            {"kind": "download", "bytes": 10000},
            {"kind": "download", "bytes": 10000, "server_tcp": {"initial_window_segments": 1},
             "mobile_tcp": {"timestamps": false, "maximum_segment_size_bytes": 1200}}
        ]
    }"#);
    let finished: Vec<_> = simulation.mobile().flows().map(|flow| flow.peer_finished_ns.unwrap()).collect();
    let segments: Vec<_> = simulation.server().flows().map(|flow| flow.statistics.data_segments_sent).collect();
    // Ten segments of 1000 bytes at once; or one, two, four and two segments of 1200.
    assert_eq!(segments, [10, 9]);
    assert_eq!((finished[1] - finished[0]) / MILLISECOND, 3 * 200);
}

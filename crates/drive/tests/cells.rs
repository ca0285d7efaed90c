//! Radio bearers and cells in scenarios.
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use pepscope_drive::scenario::Scenario;
use pepscope_drive::simulation::{Ending, Simulation};
use pepscope_path::{Direction, Hop};
use pepscope_tcp::Outcome;

fn scenario(radio: &str, traffic: &str) -> String {
    format!(
        r#"{{"name": "cell", "duration_s": 200, "seed": 3,
            "path": [{{"kind": "wired", "down": {{"delay_s": 0.02}}}}, {radio}], "traffic": [{traffic}]}}"#
    )
}

fn run(text: &str) -> Simulation {
    let mut simulation = Scenario::from_json(text).unwrap().build(None).unwrap();
    assert_eq!(simulation.run(&mut |_, _| true).unwrap(), Ending::Finished);
    for (server, mobile) in simulation.server().flows().zip(simulation.mobile().flows()) {
        assert_eq!((server.outcome, mobile.outcome), (Outcome::Closed, Outcome::Closed));
        assert_eq!(server.application.written_digest, mobile.application.read_digest);
        assert_eq!(mobile.application.written_digest, server.application.read_digest);
    }
    simulation
}

fn refusal(text: &str) -> String {
    Scenario::from_json(text).unwrap_err().to_string()
}

const TRANSFER: &str = r#"{"kind": "both", "down_bytes": 100000, "up_bytes": 30000}"#;

#[test]
fn every_kind_delivers_what_was_sent() {
    for radio in [
        r#"{"kind": "umts-dch", "down": {"rate_bit_s": 256000}, "compressed_header_bytes": 4}"#,
        r#"{"kind": "hsdpa", "terminals": [{"mean_sinr_db": 5}]}"#,
        r#"{"kind": "hsdpa", "preset": "four-terminals", "scheduler": "fair-channel-dependent"}"#,
        r#"{"kind": "hsdpa", "preset": "data-and-speech", "speech_terminals": 2}"#,
        r#"{"kind": "lte"}"#,
        r#"{"kind": "lte", "terminals": [{"down": {"fading": {"mean_sinr_db": 8}}, "up": {"fading": {}}}]}"#,
    ] {
        let simulation = run(&scenario(radio, TRANSFER));
        let (_, hop) = simulation.hops().nth(1).unwrap();
        assert!(hop.counts(Direction::Down).delivered_bytes > 100_000, "{radio}");
        assert!(!hop.ends_connections());
    }
}

#[test]
fn a_dedicated_channel_is_as_slow_as_its_settings() {
    let seconds = |radio: &str| {
        let simulation = run(&scenario(radio, r#"{"kind": "download", "bytes": 200000}"#));
        let last_read_ns = simulation.mobile().flows().next().unwrap().application.last_read_ns;
        last_read_ns.unwrap() as f64 * 1e-9
    };
    let without_errors = r#"{"kind": "umts-dch", "down": {"rate_bit_s": 64000, "block_error_rate": 0}}"#;
    // 200,000 bytes take 25 s at 64 kbit/s of payload; headers of PDUs and packets cost less than a sixth more.
    let clean = seconds(without_errors);
    assert!((25.0..29.5).contains(&clean), "{clean}");
    let lossy = seconds(&without_errors.replace("\"block_error_rate\": 0", "\"block_error_rate\": 0.2"));
    // Each PDU is sent 1 / 0.8 times.
    assert!(lossy > clean * 1.2, "{lossy} {clean}");
}

#[test]
fn speech_beside_data_leaves_data_less() {
    let seconds = |speech: usize| {
        let radio = format!(
            r#"{{"kind": "hsdpa", "preset": "data-and-speech", "speech_terminals": {speech},
                 "speech_channel": "dedicated", "queue_packets": 50, "marking": {{"threshold_packets": 20}}}}"#
        );
        let voice = format!(r#", {{"kind": "voice", "user": 1, "count": {speech}}}"#);
        let traffic = r#"{"kind": "download", "bytes": 2000000}"#.to_owned() + if speech > 0 { &voice } else { "" };
        let simulation = run(&scenario(&radio, &traffic));
        let last_read_ns = simulation.mobile().flows().next().unwrap().application.last_read_ns;
        last_read_ns.unwrap()
    };
    assert!(seconds(29) > seconds(0));
}

#[test]
fn the_seed_draws_where_terminals_are() {
    let text =
        scenario(r#"{"kind": "hsdpa", "preset": "data-and-speech"}"#, r#"{"kind": "download", "bytes": 100000}"#);
    let ends = |text: &str| run(text).mobile().flows().next().unwrap().application.last_read_ns;
    assert_eq!(ends(&text), ends(&text));
    assert_ne!(ends(&text), ends(&text.replace("\"seed\": 3", "\"seed\": 4")));
}

#[test]
fn presets_report_their_values() {
    let resolved = |radio: &str| Scenario::from_json(&scenario(radio, TRANSFER)).unwrap().resolved["path"][1].clone();
    let four = resolved(r#"{"kind": "hsdpa", "preset": "four-terminals"}"#);
    assert_eq!(four["scheduler"], "round-robin");
    assert_eq!(four["radio"]["kind"], "single-cell");
    assert_eq!(four["queue_frames"], 200);
    let speech = resolved(r#"{"kind": "hsdpa", "preset": "data-and-speech"}"#);
    assert_eq!(speech["scheduler"], "proportional-fair");
    assert_eq!(speech["radio"]["site_distance_m"], 2800.0);
    assert_eq!(speech["speech_terminals"], 9);
    let bearer = resolved(r#"{"kind": "umts-dch"}"#);
    assert_eq!(bearer["radio_link_control"]["maximum_transmissions"], 11);
    assert_eq!(bearer["up"]["rate_bit_s"], 64_000);
    assert_eq!(resolved(r#"{"kind": "lte"}"#)["terminals"][0]["down"]["queue_bytes"], 1_500_000);
}

#[test]
fn refusals_name_field_value_and_what_is_allowed() {
    let cases = [
        (r#"{"kind": "umts-dch", "down": {"block_error_rate": 1}}"#, "path[1].down.block_error_rate must be a number from 0 to 0.999, got 1"),
        (r#"{"kind": "umts-dch", "radio_link_control": {"poll_timer_s": 0.0001}}"#, "path[1].radio_link_control.poll_timer_s must be 0 for none, or a number from 0.001 to 1000, got 0.0001"),
        (r#"{"kind": "umts-dch", "radio_link_control": {"pdu_bits": 321}}"#, "path[1]: pdu_bits must be a multiple of 8 from 48 to 4992, got 321"),
        (r#"{"kind": "hsdpa", "terminals": [{"distance_m": 5}]}"#, "path[1]: placement must be a place or a sector among several cells, got a distance"),
        (r#"{"kind": "hsdpa", "terminals": [{"site": 1, "mean_sinr_db": 5}]}"#, "path[1].terminals[0].place must be one of site and sector, x_m and y_m, distance_m, mean_sinr_db, got two of them"),
        (r#"{"kind": "hsdpa", "preset": "four-terminals", "queue_frames": 1, "queue_bytes": 1}"#, "path[1].queue_frames must be the only limit of the queue, got 1"),
        (r#"{"kind": "lte", "terminals": [{"up": {"rate_bit_s": 1, "fading": {}}}]}"#, "path[1].terminals[0].up.fading must be absent where there is rate_bit_s, got a table"),
        (r#"{"kind": "lte", "hybrid_arq": {"decoding_s": 0.5}}"#, "path[1]: round_trip must be at least the time to decode, got 8000000"),
    ];
    for (radio, sentence) in cases {
        assert_eq!(refusal(&scenario(radio, TRANSFER)), sentence);
    }
    let second = r#"{"kind": "download", "bytes": 1000, "user": 1}"#;
    assert_eq!(
        refusal(&scenario(r#"{"kind": "lte"}"#, second)),
        "the highest user in traffic must be below the number of terminals of path[1], which is 1, got 1"
    );
}

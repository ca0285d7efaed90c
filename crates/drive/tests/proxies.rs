//! Scenarios whose connections end at a proxy.
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use pepscope_drive::element::PathElement;
use pepscope_drive::links::LinkElement;
use pepscope_drive::scenario::Scenario;
use pepscope_drive::simulation::Simulation;
use pepscope_tcp::proxy::RelayResult;
use pepscope_tcp::Outcome;

/// A fast wired side, the proxy in the middle and a slow mobile side.
fn scenario(proxy: &str, radio: &str, traffic: &str) -> String {
    format!(
        r#"{{"name": "proxy", "duration_s": 120, "path": [
            {{"kind": "wired", "down": {{"rate_bit_s": 1e8, "delay_s": 0.02}}}}, {proxy}, {radio}],
            "traffic": [{traffic}]}}"#
    )
}

const SLOW: &str = r#"{"kind": "wired", "down": {"rate_bit_s": 2e6, "delay_s": 0.04, "queue_packets": 60}}"#;

fn run(text: &str) -> Simulation {
    let mut simulation = Scenario::from_json(text).unwrap().build(None).unwrap();
    simulation.run(&mut |_, _| true).unwrap();
    simulation
}

fn relays(simulation: &Simulation) -> Vec<RelayResult> {
    let found = simulation.hops().find_map(|(_, hop)| match hop {
        PathElement::Proxy(proxy) => Some(proxy.relays().collect()),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn each_kind_has_the_expected_verdict_of_a_detector() {
    for (kind, class) in [
        ("split-proxy", "split-tcp"),
        ("store-and-forward-proxy", "tcp-proxy"),
        ("window-adaptation-proxy", "split-tcp"),
        ("rewriter", "regular"),
    ] {
        let text = scenario(&format!(r#"{{"kind": "{kind}"}}"#), SLOW, r#"{"kind": "download", "bytes": 1000}"#);
        assert_eq!(Scenario::from_json(&text).unwrap().class(), class);
    }
}

#[test]
fn a_split_hands_over_everything() {
    let traffic = r#"{"kind": "both", "down_bytes": 1000000, "up_bytes": 200000}"#;
    let simulation = run(&scenario(r#"{"kind": "split-proxy", "buffer_bytes": 65536}"#, SLOW, traffic));
    let (server, mobile) = (simulation.server().flows().next().unwrap(), simulation.mobile().flows().next().unwrap());
    assert_eq!((server.outcome, mobile.outcome), (Outcome::Closed, Outcome::Closed));
    assert_eq!(server.application.written_digest, mobile.application.read_digest);
    assert_eq!(mobile.application.written_digest, server.application.read_digest);
    let relay = relays(&simulation)[0];
    assert_eq!(relay.given_bytes, [1_000_000, 200_000]);
    assert!(relay.most_held_bytes[0] <= 65_536);
}

#[test]
fn a_store_waits_for_an_object_that_stalls() {
    let radio = r#"{"kind": "wired", "down": {"rate_bit_s": 2e6, "delay_s": 0.04},
        "up": {"rate_bit_s": 3e5, "delay_s": 0.1, "loss": {"kind": "gilbert-elliott", "good_to_bad": 0.02,
                                                           "bad_to_good": 0.2}}}"#;
    let proxy = r#"{"kind": "store-and-forward-proxy", "pause_s": 0.05}"#;
    let simulation = run(&scenario(proxy, radio, r#"{"kind": "upload", "bytes": 400000}"#));
    let (server, mobile) = (simulation.server().flows().next(), simulation.mobile().flows().next());
    assert_eq!(server.unwrap().application.read_digest, mobile.unwrap().application.written_digest);
}

#[test]
fn chosen_ports_are_taken_and_others_left_alone() {
    let traffic = r#"{"kind": "download", "bytes": 50000, "application": "http"},
                     {"kind": "download", "bytes": 50000}"#;
    let simulation = run(&scenario(r#"{"kind": "split-proxy", "server_ports": [80]}"#, SLOW, traffic));
    let relays = relays(&simulation);
    assert_eq!(relays.iter().map(|relay| relay.flow).collect::<Vec<_>>(), [0]);
    assert!(simulation.mobile().flows().all(|flow| flow.outcome == Outcome::Closed));
}

#[test]
fn pages_shrink_and_come_from_the_cache() {
    let proxy = r#"{"kind": "store-and-forward-proxy", "opening": "with-data", "cache_bytes": 1e6,
                    "recompression_ratio": 0.25}"#;
    let traffic = r#"{"kind": "http", "page_bytes": 100000, "count": 2, "spacing_s": 20, "same_objects": true}"#;
    let simulation = run(&scenario(proxy, SLOW, traffic));
    let relays = relays(&simulation);
    assert_eq!(relays.iter().map(|relay| relay.cache_hits).collect::<Vec<_>>(), [0, 1]);
    for mobile in simulation.mobile().flows() {
        assert!((25_000..25_200).contains(&mobile.application.read_bytes), "{}", mobile.application.read_bytes);
        assert_eq!(mobile.application.answers, 1);
    }
    assert_eq!(simulation.server().flows().map(|flow| flow.connected_ns.is_some()).collect::<Vec<_>>(), [true, false]);
}

const RADIO: &str = r#"{"kind": "wired", "down": {"delay_s": 0.025}},
    {"kind": "variable-rate", "reports": {"period_s": PERIOD},
     "down": {"radio_frame_bytes": 40, "queue_frames": 200,
              "rates": {"kind": "random", "period_s": 1, "low_bit_s": 185600, "high_bit_s": 556800}}}"#;

fn adapted(control: &str, period: &str) -> String {
    let proxy = format!(
        r#"{{"kind": "window-adaptation-proxy", "control": {control},
             "mobile_leg": {{"maximum_segment_size_bytes": 472, "timestamps": false}}}}"#
    );
    scenario(&proxy, &RADIO.replace("PERIOD", period), r#"{"kind": "download", "duration_s": 110}"#)
}

#[test]
fn an_adapted_window_keeps_the_link_busy_without_loss() {
    let simulation = run(&adapted("{}", "0.025"));
    let radio = simulation.hops().find_map(|(_, hop)| match hop {
        PathElement::Link(LinkElement::VariableRate(radio)) => {
            Some(pepscope_path::Hop::counts(&**radio, pepscope_path::Direction::Down))
        }
        _ => None,
    });
    let counts = radio.unwrap();
    assert!(counts.overflowed_packets * 1000 < counts.offered_packets, "{counts:?}");
    assert!(counts.delivered_packets as f64 > 0.9 * 110.0 * 1160.0 / 13.0, "{counts:?}");
}

#[test]
fn a_control_law_that_cannot_hold_the_queue_is_refused_unless_wanted() {
    let wrong = r#"{"step_s": 0.2, "approach_per_s": 4WANTED}"#;
    let refused = Scenario::from_json(&adapted(&wrong.replace("WANTED", ""), "0.2")).unwrap_err().to_string();
    assert!(refused.contains("path[1].control") && refused.contains("drains a full buffer"), "{refused}");
    let wanted = wrong.replace("WANTED", r#", "allows_wrong_parameters": true"#);
    assert!(Scenario::from_json(&adapted(&wanted, "0.2")).is_ok());
}

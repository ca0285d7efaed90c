//! Over random chains of lines a run is the same with the fast path and without it, every arrival included.

use pepscope_path::Direction;
use pepscope_tcp::control::ControlKind;
use proptest::prelude::{any, prop, prop_assert_eq, proptest, Just, ProptestConfig, Strategy};
use proptest::{prop_oneof, sample};
use serde_json::{json, Value};

use crate::scenario::Scenario;
use crate::simulation::Ending;
use crate::truth::delays::Arrival;
use crate::truth::report::report;

/// Everything in which two runs may differ.
#[derive(Debug, PartialEq)]
struct Traces {
    ending: Ending,
    now: u64,
    truth: Value,
    arrivals: Vec<Arrival>,
}

fn run(described: &Value, fast_path: bool) -> Traces {
    let mut scenario = Scenario::from_json(&described.to_string()).expect("a scenario");
    scenario.fast_path = fast_path;
    let mut simulation = scenario.build(None).expect("a simulation");

    let ending = simulation.run(&mut |_, _| true).expect("an end");
    let mut truth = report(&scenario, &simulation);
    truth["events"].take(); // what happens at one time may be one event or several
    Traces { ending, now: simulation.now(), truth, arrivals: simulation.delays().arrivals().to_vec() }
}

#[test]
fn a_timer_that_is_due_at_the_end_does_not_expire() {
    let line = json!({ "delay_s": 0.01, "loss": { "kind": "independent", "probability": 1 } });
    let described = json!({
        "name": "end", "duration_s": 1, "server": { "host": "linux" }, "mobile": { "host": "linux" },
        "path": [{ "kind": "wired", "down": line }],
        "traffic": [{ "kind": "download", "bytes": 1000 }],
    });
    let fast = run(&described, true);
    assert_eq!(fast.truth["flows"][0]["mobile"]["tcp"]["timeouts"], json!(0));
    assert_eq!(fast, run(&described, false));
}

#[test]
fn a_long_turn_ends_after_the_events_that_a_run_is_given() {
    let line = json!({ "rate_bit_s": 10_000_000_000u64, "delay_s": 1, "queue_packets": 100_000 });
    let host = json!({ "initial_window_segments": 1000, "receive_buffer_bytes": 10_000_000 });
    let described = json!({
        "name": "long turn", "duration_s": 5, "server": host, "mobile": host,
        "path": [{ "kind": "wired", "down": line, "up": line }],
        "traffic": [{ "kind": "download", "bytes": 1_400_000, "count": 40 }],
    });
    let mut simulation = Scenario::from_json(&described.to_string()).expect("a scenario").build(None).expect("one");
    let mut looks = vec![0];
    let mut watch = |_, events| {
        looks.push(events);
        true
    };
    simulation.run(&mut watch).expect("an end");
    looks.push(simulation.events());
    // 40,000 packets that arrive in one turn are several events each.
    let longest = looks.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(simulation.events() > 100_000 && longest < Some(70_000), "{looks:?}");
}

/// A link of a chain, by what its directions are like.
fn link((kind, rates_bit_s, delays_s, queue_packets, losses): Link) -> Value {
    let line = |place: usize| {
        let mut line = json!({
            "delay_s": delays_s[place],
            "queue_packets": queue_packets,
            "loss": { "kind": "independent", "probability": losses[place] },
        });
        match (kind, rates_bit_s[place]) {
            (_, 0) => {}
            ("wired", rate_bit_s) => line["rate_bit_s"] = json!(rate_bit_s),
            (_, rate_bit_s) => {
                let steps = [1, 3, 2].map(|share| json!({ "duration_s": 0.3, "rate_bit_s": share * rate_bit_s / 2 }));
                line["rates"] = json!({ "kind": "steps", "steps": steps });
                line["service"] = json!(kind);
            }
        }
        line
    };
    let kind = if kind == "wired" { "wired" } else { "variable-rate" };
    json!({ "kind": kind, "down": line(0), "up": line(1) })
}

type Link = (&'static str, [u64; 2], [f64; 2], u32, [f64; 2]);

fn any_link() -> impl Strategy<Value = Link> {
    let rate = || prop_oneof![Just(0u64), Just(1_200_000u64), 200_000u64..20_000_000];
    let delay = || prop_oneof![Just(0.0), Just(0.02), 0.0..0.1];
    let loss = || prop_oneof![Just(0.0), 0.0..0.02];
    let kind = sample::select(vec!["wired", "exact", "frozen"]);
    (kind, [rate(), rate()], [delay(), delay()], 2u32..80, [loss(), loss()])
}

/// Half of the hosts are ideal.
fn any_family() -> impl Strategy<Value = &'static str> {
    sample::select(vec!["ideal", "ideal", "ideal", "linux", "windows", "darwin"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_is_the_same_without_the_fast_path(
        first in any_link(),
        others in prop::collection::vec(any_link(), 0..3),
        control in sample::select(ControlKind::all().map(|kind| kind.name()).collect::<Vec<_>>()),
        recovery in sample::select(vec!["reno", "new-reno", "sack"]),
        families in (any_family(), any_family()),
        (timestamps, several, keeps_on, samples) in any::<(bool, bool, bool, bool)>(),
    ) {
        let mut path: Vec<Value> = std::iter::once(first).chain(others).map(link).collect();
        path[0]["up"]["delay_s"] = json!(first.2[1] + 0.001); // or time might stand still
        let host = json!({
            "control": control, "recovery": recovery, "timestamps": timestamps, "sack": recovery == "sack",
            "receive_buffer_bytes": 200_000, "send_buffer_bytes": 200_000,
        });
        let [server, mobile] = [families.0, families.1].map(|family| {
            let mut end = host.clone();
            end["host"] = json!(family);
            if family != "ideal" {
                // With what else would be general code.
                (end["recovery"], end["sack"]) = (json!("rack"), json!(true));
            }
            end
        });
        let mut traffic = vec![json!({ "kind": "download", "duration_s": 3 })];
        if several {
            traffic.extend([
                json!({ "kind": "upload", "bytes": 100_000, "start_s": 0.5 }),
                json!({ "kind": "both", "down_bytes": 50_000, "up_bytes": 70_000, "start_s": 1 }),
                json!({ "kind": "voice", "user": 1 }),
            ]);
        }
        let mut described = json!({
            "name": "chain", "duration_s": 6, "server": server, "mobile": mobile,
            "stop_after_finish_s": if keeps_on { -1.0 } else { 0.2 },
            "path": path,
            "traffic": traffic,
            "record": { "one_way_delays": true },
        });
        if samples {
            described["record"]["series_interval_s"] = json!(0.05);
        }
        let (fast, slow) = (run(&described, true), run(&described, false));
        prop_assert_eq!(fast.arrivals.len(), slow.arrivals.len());
        let down = fast.arrivals.iter().filter(|arrival| arrival.direction == Direction::Down).count();
        assert!(down > 0, "nothing arrived");
        for (one, other) in fast.arrivals.iter().zip(&slow.arrivals) {
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(fast, slow);
    }
}

//! The fast path changes nothing: for every congestion control over every kind of link, captures, ground truth and
//! arrivals are the same, byte for byte, with header prediction and the driver's fast path as without them.
//!
//! Controls and links come from their lists, so that a new one is compared without a line here.
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use pepscope_drive::links::LINK_KINDS;
use pepscope_drive::scenario::Scenario;
use pepscope_drive::simulation::Ending;
use pepscope_drive::truth::delays::Arrival;
use pepscope_drive::truth::report::report;
use pepscope_tcp::control::ControlKind;
use serde_json::{json, Value};

/// Everything that a run leaves behind.
#[derive(Debug, PartialEq)]
struct Traces {
    ending: Ending,
    now: u64,
    truth: Value,
    arrivals: Vec<Arrival>,
    captures: Vec<u8>,
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run(described: &Value, fast_path: bool) -> Traces {
    let mut scenario = Scenario::from_json(&described.to_string()).unwrap();
    scenario.fast_path = fast_path;
    let files = Mutex::new(Vec::new());
    let mut simulation = scenario
        .build_with(Some(Path::new("captures")), |_| {
            let buffer = Buffer::default();
            files.lock().unwrap().push(buffer.clone());
            Ok(Box::new(buffer) as Box<dyn Write + Send>)
        })
        .unwrap();
    let ending = simulation.run(&mut |_, _| true).unwrap();
    let mut truth = report(&scenario, &simulation);
    truth["events"].take(); // what happens at one time may be one event or several
    let captures = files.lock().unwrap().iter().flat_map(|file| file.0.lock().unwrap().clone()).collect();
    Traces { ending, now: simulation.now(), truth, arrivals: simulation.delays().arrivals().to_vec(), captures }
}

/// Losses and a short queue, so that recovery interrupts the fast path and the fast path goes on after it.
fn wired_hop() -> Value {
    let up = json!({ "rate_bit_s": 5_000_000, "delay_s": 0.01 });
    let mut down = up.clone();
    down["queue_packets"] = json!(25);
    down["loss"] = json!({ "kind": "independent", "probability": 0.002 });
    json!({ "kind": "wired", "down": down, "up": up })
}

fn scenario(control: &str, path: &Value, variant: usize) -> Value {
    let recovery = ["sack", "rack", "new-reno", "reno", "tahoe"][variant % 5];
    let host = json!({
        "control": control,
        "recovery": recovery,
        "sack": matches!(recovery, "sack" | "rack"),
        "timestamps": variant % 3 != 0,
        "ecn": if control == "jersey" { "every-packet" } else { "off" },
        "send_buffer_bytes": 200_000,
    });
    json!({
        "name": "fast-path", "duration_s": 8, "seed": variant, "server": host, "mobile": host, "path": path,
        "traffic": [
            { "kind": "download", "duration_s": 6 },
            { "kind": "upload", "bytes": 60_000, "start_s": 0.4 },
            { "kind": "both", "down_bytes": 50_000, "up_bytes": 20_000, "start_s": 1 },
        ],
        "record": { "one_way_delays": true },
    })
}

fn assert_same(described: &Value, what: &str) {
    let (fast, slow) = (run(described, true), run(described, false));
    assert!(fast.arrivals.len() > 50, "{what}: only {} arrivals", fast.arrivals.len());
    for (number, (one, other)) in fast.arrivals.iter().zip(&slow.arrivals).enumerate() {
        assert_eq!(one, other, "{what}: arrival {number}");
    }
    assert_eq!(fast.truth, slow.truth, "{what}");
    assert!(fast.captures == slow.captures, "{what}: the captures differ");
    assert!(fast == slow, "{what}");
    println!("{what}: {} arrivals", fast.arrivals.len());
}

#[test]
fn every_control_over_every_link_is_the_same_without_the_fast_path() {
    let mut variant = 0;
    for control in ControlKind::all() {
        for kind in LINK_KINDS {
            variant += 1;
            let path = json!([wired_hop(), { "kind": kind }]);
            assert_same(&scenario(control.name(), &path, variant), &format!("{control:?} over {kind}"));
        }
    }
}

#[test]
fn every_control_through_a_proxy_is_the_same_without_header_prediction() {
    for (variant, control) in ControlKind::all().enumerate() {
        let leg = json!({ "control": control.name() });
        let proxy = json!({ "kind": "split-proxy", "server_leg": leg, "mobile_leg": leg });
        let path = json!([wired_hop(), proxy, wired_hop()]);
        assert_same(&scenario(control.name(), &path, variant), &format!("{control:?} through a proxy"));
    }
}

/// A host of a kernel, in four of which all but one thing is as by default.
fn kernel(host: &str, control: &str, variant: usize) -> Value {
    let mut end = json!({ "host": host, "control": control });
    match variant % 5 {
        1 => end["timestamps"] = json!(false),
        2 => end["pacing"] = json!(true),
        3 => (end["recovery"], end["sack"]) = (json!("new-reno"), json!(false)),
        4 => end["ecn"] = json!("standard"),
        _ => {}
    }
    end
}

#[test]
fn kernels_are_the_same_without_the_fast_path() {
    let mut variant = 0;
    for control in ControlKind::all() {
        for (server, mobile) in
            [("linux", "linux"), ("windows", "darwin"), ("darwin", "windows"), ("ideal", "linux"), ("linux", "ideal")]
        {
            variant += 1;
            let mut path =
                if variant % 2 == 0 { json!([wired_hop()]) } else { json!([wired_hop(), { "kind": "wired" }]) };
            if variant % 3 == 0 {
                // So many that timers expire.
                let loss = json!({ "kind": "independent", "probability": 0.08 });
                (path[0]["down"]["loss"], path[0]["up"]["loss"]) = (loss.clone(), loss);
            }
            let mut described = scenario(control.name(), &path, variant);
            described["server"] = kernel(server, control.name(), variant);
            described["mobile"] = kernel(mobile, control.name(), variant / 5);
            assert_same(&described, &format!("{control:?} of {server} and {mobile}"));
        }
    }
}

#[test]
fn branches_behind_a_shared_queue_are_the_same_without_the_fast_path() {
    for (variant, host) in ["ideal", "linux", "windows", "ideal"].into_iter().enumerate() {
        let mut shared = json!({ "rate_bit_s": 8_000_000, "delay_s": 0.004 });
        shared["queue"] = json!({ "kind": "drop-tail", "packets": 30 });
        if variant > 0 {
            let kind = ["poisson", "even", "flows"][variant - 1];
            shared["cross"] = json!({ "kind": kind, "rate_bit_s": 1_000_000 });
        }
        let own = |delay_s: f64| json!({ "down": { "rate_bit_s": 50_000_000, "delay_s": delay_s } });
        let path = json!([
            { "kind": "managed", "down": shared },
            { "kind": "branches", "terminals": [own(0.003), own(0.003), own(0.02), own(0.04)] },
        ]);
        let mut described = scenario("reno", &path, variant);
        (described["server"], described["mobile"]) = (kernel(host, "reno", 0), kernel(host, "reno", variant));
        let flow = |user: u32| json!({ "kind": "download", "duration_s": 5, "user": user, "start_s": user / 2 });
        described["traffic"] = json!([flow(0), flow(1), flow(2), flow(3), flow(0)]);
        assert_same(&described, &format!("branches of {host}"));
    }
}

#[test]
fn applications_over_one_link_are_the_same_without_the_fast_path() {
    let objects = json!([{ "name": "style", "bytes": 30_000 }, { "name": "image", "bytes": 9_000, "count": 9 }]);
    let traffic = json!([
        { "kind": "web", "pages": 2, "think_time_mean_s": 0.5, "objects": objects },
        { "kind": "web", "http_version": "2", "objects": objects },
        { "kind": "video", "segments": 3, "segment_s": 1 },
        { "kind": "quic", "requests": 3, "think_time_mean_s": 0.2 },
        { "kind": "chat" },
        { "kind": "ping" },
    ]);
    let queue = json!({ "kind": "drop-tail", "packets": 30 });
    let line = json!({ "rate_bit_s": 8_000_000, "delay_s": 0.02, "queue": queue });
    let mut crossed = line.clone();
    crossed["cross"] = json!({ "kind": "poisson", "rate_bit_s": 3_000_000 });
    let lossy = json!({ "delay_s": 0.01, "loss": { "kind": "independent", "probability": 0.02 } });
    let links = [
        wired_hop(),
        json!({ "kind": "managed", "down": line, "up": line }),
        json!({ "kind": "managed", "down": crossed, "up": crossed }),
        json!({ "kind": "branches", "terminals": [{ "down": lossy, "up": lossy }] }),
    ];
    for (variant, (server, mobile)) in
        [("ideal", "linux"), ("linux", "linux"), ("windows", "darwin"), ("linux", "ideal")].into_iter().enumerate()
    {
        let mut described = scenario("cubic", &json!([links[variant]]), variant);
        (described["server"], described["mobile"]) = (kernel(server, "cubic", 0), kernel(mobile, "cubic", 0));
        described["traffic"] = traffic.clone();
        described["duration_s"] = json!(200);
        assert_same(&described, &format!("applications of {server} and {mobile}"));
    }
}

//! The loop of the live path, between datagram sockets in place of TUN devices.
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::{Duration, Instant};

use pepscope_drive::live::chain::LiveChain;
use pepscope_drive::live::event_loop::{lock, monotonic_ns, LivePath, LoopSettings, LoopTotals};
use pepscope_drive::live::frame::Terminals;
use pepscope_drive::live::report_datagram::ReportRoute;
use pepscope_drive::scenario::Scenario;

const SETTINGS: LoopSettings = LoopSettings {
    start_ns: 0,
    spin_ns: 20_000,
    batch_packets: 8,
    packet_bytes: 1500,
    terminals: Terminals { first_ipv4: 0, first_ipv6: 0, count: 1 },
    reports: None,
    series_interval_ns: None,
};

/// Runs a path while `body` has the far ends of its devices, the server's first.
fn run(scenario: &str, settings: LoopSettings, body: impl FnOnce(&UnixDatagram, &UnixDatagram)) -> LoopTotals {
    let scenario = Scenario::from_json(scenario).unwrap();
    let chain = LiveChain::new(&scenario, 0..scenario.path.len()).unwrap();
    let settings = LoopSettings { start_ns: monotonic_ns(), ..settings };
    let (server, server_device) = UnixDatagram::pair().unwrap();
    let (mobile, mobile_device) = UnixDatagram::pair().unwrap();
    for end in [&server, &mobile] {
        end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    let mut path = LivePath::new(chain, server_device.as_raw_fd(), mobile_device.as_raw_fd(), settings).unwrap();
    let (stopper, published) = (path.stopper(), path.published());
    thread::scope(|scope| {
        let running = scope.spawn(move || path.run().unwrap());
        body(&server, &mobile);
        stopper.stop();
        running.join().unwrap();
    });
    let totals = lock(&published).clone();
    totals
}

#[test]
fn packets_come_through_whole_in_order_and_no_sooner_than_their_delay() {
    let scenario = r#"{"name": "delay", "duration_s": 1, "path": [
        {"kind": "wired", "name": "line", "down": {"delay_s": 0.03}, "up": {"delay_s": 0.01}}]}"#;
    let totals = run(scenario, SETTINGS, |server, mobile| {
        let mut buffer = [0; 2000];
        for (from, to, delay) in [(server, mobile, 0.03), (mobile, server, 0.01)] {
            let sent = Instant::now();
            for number in 0..20_u8 {
                from.send(&vec![number; 100 + usize::from(number)]).unwrap();
            }
            for number in 0..20_u8 {
                let length = to.recv(&mut buffer).unwrap();
                assert_eq!(buffer[..length], vec![number; 100 + usize::from(number)]);
            }
            assert!(sent.elapsed().as_secs_f64() >= delay);
        }
    });
    assert_eq!((totals.entered_packets, totals.left_packets, totals.refused_packets), ([20, 20], [20, 20], [0, 0]));
    assert_eq!(totals.lateness.count(), 40);
    assert_eq!(totals.hops[0].counts[0].delivered_packets, 20);
    let report = totals.report();
    assert_eq!(report["hops"][0]["name"], "line");
    assert_eq!(report["lateness"]["packets"], 40);
}

#[test]
fn packets_that_the_far_end_does_not_take_are_counted() {
    let scenario = r#"{"name": "wire", "duration_s": 1}"#;
    let totals = run(scenario, SETTINGS, |server, mobile| {
        mobile.shutdown(std::net::Shutdown::Both).unwrap();
        server.send(&[0x45; 40]).unwrap();
        mobile.send(&[0x45; 40]).unwrap_err();
        // No program reads it, so it only shows in the totals.
        thread::sleep(Duration::from_millis(300));
    });
    assert_eq!((totals.entered_packets[0], totals.left_packets[0], totals.refused_packets[0]), (1, 0, 1));
}

#[test]
fn a_cell_that_reports_sends_datagrams_towards_the_server() {
    let scenario = r#"{"name": "reports", "duration_s": 1, "path": [{"kind": "variable-rate",
        "down": {"rates": {"kind": "constant", "rate_bit_s": 1000000}, "radio_frame_bytes": 40},
        "reports": {"period_s": 0.02}}]}"#;
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let reports = ReportRoute { from: address("10.44.0.1"), to: address("10.44.0.2"), port: 31_000 };
    run(scenario, LoopSettings { reports: Some(reports), ..SETTINGS }, |server, _| {
        let mut buffer = [0; 2000];
        let mut steps = Vec::new();
        for _ in 0..3 {
            assert_eq!(server.recv(&mut buffer).unwrap(), 48);
            steps.push(u32::from_be_bytes(buffer[28..32].try_into().unwrap()));
        }
        assert_eq!(steps, [steps[0], steps[0] + 1, steps[0] + 2]);
    });
}

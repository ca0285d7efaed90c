//! What a proxy's program and machine change, one setting at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};

use super::tests::{path, relay, store, FILE, FILE_BYTES, REQUEST};
use super::{ConnectionLimit, MachineSettings, Opening, OverLimit, Proxy, ProxySettings, ReuseSettings};
use crate::applications::script::Script;
use crate::host::{Outcome, ProcessingSettings};
use crate::packets::segment::ContentId;
use crate::settings::Settings;
use crate::test_path::{TestPath, Watched};

fn on(machine: MachineSettings) -> ProxySettings {
    ProxySettings { machine, ..relay() }
}

/// As many downloads as there are starts.
fn downloads(proxy: ProxySettings, starts_ns: &[Nanoseconds]) -> (TestPath, Watched<Proxy>) {
    let (mut path, proxy) = path(proxy);
    for (flow, start_ns) in (0..).zip(starts_ns) {
        path.add(flow, *start_ns, [Settings::default(); 2], [Script::sender(FILE, FILE_BYTES), Script::receiver()]);
    }
    (path, proxy)
}

/// The longest time for which nothing is read from the server between the second and the fourth second.
fn longest_pause(machine: MachineSettings) -> Nanoseconds {
    let server_leg = Settings { receive_buffer_bytes: 50_000, ..Settings::default() };
    let (mut path, proxy) = downloads(ProxySettings { server_leg, ..on(machine) }, &[0]);
    let (mut taken, mut since, mut longest) = (0, 2 * SECOND, 0);
    for step in 2000..4000 {
        let now = step * MILLISECOND;
        path.run_until(now);
        if proxy.result(0).taken_bytes[0] > taken {
            taken = proxy.result(0).taken_bytes[0];
            longest = longest.max(now - since);
            since = now;
        }
    }
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    longest
}

#[test]
fn a_buffer_that_was_full_is_read_into_again_once_half_of_it_is_empty() {
    let plain = longest_pause(MachineSettings::default());
    assert!(plain < 45 * MILLISECOND, "{plain}");
    let halved = longest_pause(MachineSettings { resume_share: 0.5, ..MachineSettings::default() });
    // 50,000 bytes at 4 Mbit/s, headers included, take 104 ms.
    assert!((90 * MILLISECOND..120 * MILLISECOND).contains(&halved), "{halved}");
}

#[test]
fn a_program_that_reads_pieces_with_pauses_passes_no_more_than_a_piece_a_pause() {
    let machine = MachineSettings { read_bytes: 4000, delay_ns: 20 * MILLISECOND, ..MachineSettings::default() };
    let (mut path, _) = downloads(on(machine), &[0]);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    let took = path.mobile_result(0).application.last_read_ns.expect("data") as f64 * 1e-9;
    let rate_byte_s = FILE_BYTES as f64 / took;
    assert!((190_000.0..=200_000.0).contains(&rate_byte_s), "{rate_byte_s}");
}

#[test]
fn a_program_that_takes_time_acts_later_and_its_kernel_answers_at_once() {
    let first = |machine| {
        let (mut path, _) = downloads(ProxySettings { opening: Opening::AfterAccept, ..on(machine) }, &[0]);
        path.run_until(100 * SECOND);
        let mobile = path.mobile_result(0);
        (mobile.connected_ns.expect("connected"), mobile.application.first_read_ns.expect("data"))
    };
    let plain = first(MachineSettings::default());
    let slow = first(MachineSettings { delay_ns: 7 * MILLISECOND, ..MachineSettings::default() });
    assert_eq!(slow.0, plain.0);
    // It opens the connection with the server that much later, and passes the data on that much later.
    assert_eq!(slow.1 - plain.1, 14 * MILLISECOND);
}

#[test]
fn a_machine_that_takes_time_answers_late_and_delivers_the_same() {
    let machine = MachineSettings { times: Some(ProcessingSettings::default()), ..MachineSettings::default() };
    let (mut path, proxy) = downloads(on(machine), &[0]);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
    let opened = proxy.result(0).far_leg_opened_ns.expect("opened");
    assert!((40_100_000..45_000_000).contains(&opened), "{opened}");
}

#[test]
fn a_program_that_accepts_connects_when_the_client_is_connected() {
    let (mut path, proxy) = downloads(ProxySettings { opening: Opening::AfterAccept, ..relay() }, &[0]);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    let opened = proxy.result(0).far_leg_opened_ns.expect("opened");
    assert!((120 * MILLISECOND..122 * MILLISECOND).contains(&opened), "{opened}");
}

fn limited(over_limit: OverLimit) -> (TestPath, Watched<Proxy>) {
    let limit = Some(ConnectionLimit { connections: 1, over_limit });
    let starts_ns = [0, 100 * MILLISECOND, 200 * MILLISECOND];
    let (mut path, proxy) = downloads(on(MachineSettings { limit, ..MachineSettings::default() }), &starts_ns);
    path.run_until(200 * SECOND);
    (path, proxy)
}

fn outcomes(path: &TestPath) -> Vec<Outcome> {
    path.mobile.flows().map(|flow| flow.outcome).collect()
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let (path, proxy) = limited(OverLimit::Wait { waiting_limit: 10 });
    assert_eq!(outcomes(&path), [Outcome::Closed; 3]);
    let ends: Vec<_> = path.mobile.flows().map(|flow| flow.peer_finished_ns.expect("an end")).collect();
    for place in 1..3 {
        path.assert_intact(place);
        let opened = proxy.result(place as usize).far_leg_opened_ns.expect("opened");
        assert!(opened > ends[place as usize - 1], "{opened} {ends:?}");
        let connected = path.mobile_result(place).connected_ns.expect("connected");
        assert!(connected < SECOND, "the kernel answers while the program lets it wait: {connected}");
    }
    let counts = proxy.0.borrow().admissions();
    assert_eq!((counts.most_at_once, counts.served, counts.waited), (1, 3, 2));
}

#[test]
fn connections_beyond_the_limit_are_reset_dropped_or_passed() {
    let (path, _) = limited(OverLimit::Refuse);
    assert_eq!(outcomes(&path), [Outcome::Closed, Outcome::Reset, Outcome::Reset]);
    let (path, proxy) = limited(OverLimit::Drop);
    assert_eq!(outcomes(&path), [Outcome::Closed; 3]);
    assert!(path.mobile_result(1).connected_ns.expect("connected") > 3 * SECOND, "its SYN is sent again");
    assert_eq!(proxy.0.borrow().admissions().most_at_once, 1);
    let (path, proxy) = limited(OverLimit::Bypass);
    assert_eq!(outcomes(&path), [Outcome::Closed; 3]);
    assert_eq!(proxy.0.borrow().relays().count(), 1);
    assert!(path.mobile_result(1).connected_ns.expect("connected") >= 220 * MILLISECOND, "end to end");
}

const PAGE_BYTES: u64 = 50_000;
const REQUEST_BYTES: u64 = 300;

/// Three clients that ask for a page of their own, one after the other.
fn browse(mut proxy: ProxySettings, idle_ns: Nanoseconds, starts_ns: [Nanoseconds; 3]) -> (TestPath, Watched<Proxy>) {
    let pages = |flow: u32| (ContentId(10 + 2 * flow), ContentId(11 + 2 * flow));
    let lengths: BTreeMap<_, _> =
        (0..3).flat_map(|flow| [(pages(flow).0, REQUEST_BYTES), (pages(flow).1, PAGE_BYTES)]).collect();
    let reuse = ReuseSettings { idle_ns, servers: vec![Some(80); 3], lengths: Arc::new(lengths) };
    proxy.machine.reuse = Some(reuse);
    let (mut path, proxy) = path(proxy);
    for (flow, start_ns) in (0..).zip(starts_ns) {
        let (request, page) = pages(flow);
        let scripts = [
            Script::http_server(page, REQUEST_BYTES, PAGE_BYTES),
            Script::http_client(1, request, REQUEST_BYTES, PAGE_BYTES, 0.0),
        ];
        path.add(flow, start_ns, [Settings::default(); 2], scripts);
        path.server.serve_content(request, flow);
    }
    path.run_until(100 * SECOND);
    (path, proxy)
}

/// Handshakes that the server's side saw.
fn server_connections(path: &TestPath) -> Vec<u64> {
    path.server.flows().map(|flow| flow.statistics.segments_received).filter(|received| *received > 0).collect()
}

#[test]
fn a_connection_with_the_server_serves_the_next_client() {
    for opening in [Opening::AtOnce, Opening::AfterAccept, Opening::FarEndFirst, Opening::WithData] {
        for forwarding in [relay(), store(0, None)] {
            let (path, proxy) =
                browse(ProxySettings { opening, ..forwarding }, 20 * SECOND, [0, 10 * SECOND, 20 * SECOND]);
            for flow in 0..3 {
                path.assert_intact(flow);
                assert_eq!(path.mobile_result(flow).application.read_bytes, PAGE_BYTES);
                assert_eq!(path.mobile_result(flow).outcome, Outcome::Closed);
                assert_eq!(path.server_result(flow).outcome, Outcome::Closed, "{opening:?}");
            }
            assert_eq!(server_connections(&path).len(), 1, "{opening:?}");
            assert_eq!(proxy.0.borrow().admissions().reused, 2);
            assert!(path.server.is_finished());
        }
    }
}

#[test]
fn a_connection_that_was_idle_for_too_long_or_is_in_use_serves_nobody_else() {
    for starts_ns in [[0, 20 * SECOND, 40 * SECOND], [0, MILLISECOND, 2 * MILLISECOND]] {
        let (path, proxy) = browse(relay(), 5 * SECOND, starts_ns);
        assert_eq!(server_connections(&path).len(), 3);
        assert_eq!(proxy.0.borrow().admissions().reused, 0);
        for flow in 0..3 {
            path.assert_intact(flow);
            assert_eq!(path.server_result(flow).outcome, Outcome::Closed);
        }
    }
}

#[test]
fn bytes_that_are_no_known_request_end_the_connection_with_their_client() {
    let reuse = ReuseSettings { idle_ns: SECOND, servers: vec![Some(80); 2], ..ReuseSettings::default() };
    let machine = MachineSettings { reuse: Some(reuse), ..MachineSettings::default() };
    let (mut path, proxy) = path(on(machine));
    for (flow, start_ns) in [(0, 0), (1, 10 * SECOND)] {
        let scripts = [Script::exchanger(FILE, 5000, 400), Script::exchanger(REQUEST, 400, 5000)];
        path.add(flow, start_ns, [Settings::default(); 2], scripts);
    }
    path.run_until(100 * SECOND);
    for flow in 0..2 {
        path.assert_intact(flow);
        assert_eq!(path.server_result(flow).outcome, Outcome::Closed);
    }
    assert_eq!(proxy.0.borrow().admissions().reused, 0);
}

use pepscope_path::{LineSettings, Nanoseconds, Wired, WiredSettings, MILLISECOND, SECOND};

use super::{FlowSettings, Host, HostError, Outcome, Role};
use crate::applications::script::{Pause, Reading, Script, Step};
use crate::applications::voice::VoiceSettings;
use crate::packets::packet::Packet;
use crate::packets::segment::{ContentId, Segment};
use crate::settings::Settings;
use crate::test_path::{wired, TestPath};

const FILE: ContentId = ContentId(1);
const REQUEST: ContentId = ContentId(2);

/// 10 Mbit/s and 20 ms each way.
fn path() -> TestPath {
    TestPath::new(vec![wired(10_000_000, 20, 100, 0.0)])
}

fn run(server: Script, mobile: Script) -> TestPath {
    let mut path = path();
    path.add(0, 0, [Settings::default(); 2], [server, mobile]);
    path.run_until(600 * SECOND);
    path
}

#[test]
fn a_download_delivers_exactly_what_was_sent_at_the_rate_of_the_link() {
    let path = run(Script::sender(FILE, 5_000_000), Script::receiver());
    path.assert_intact(0);
    let (server, mobile) = (path.server_result(0), path.mobile_result(0));
    assert_eq!((server.outcome, mobile.outcome), (Outcome::Closed, Outcome::Closed));
    assert_eq!(mobile.application.read_bytes, 5_000_000);
    let took_ns = mobile.application.last_read_ns.expect("something was read");
    let least_ns = 5_000_000 * 8 * 100; // 10 Mbit/s are 100 ns a bit
    assert!(took_ns > least_ns && took_ns < least_ns * 5 / 4, "{took_ns}");
    assert_eq!(mobile.connected_ns.map(|time| time / MILLISECOND), Some(40));
    assert!(path.server.is_finished() && path.mobile.is_finished());
}

#[test]
fn an_upload_delivers_exactly_what_was_sent() {
    let path = run(Script::receiver(), Script::sender(FILE, 1_000_000));
    path.assert_intact(0);
    assert_eq!(path.server_result(0).application.read_bytes, 1_000_000);
    assert_eq!(path.server_result(0).outcome, Outcome::Closed);
}

#[test]
fn both_directions_at_once_take_little_longer_than_one() {
    let both = run(Script::exchanger(FILE, 2_000_000, 2_000_000), Script::exchanger(REQUEST, 2_000_000, 2_000_000));
    both.assert_intact(0);
    let one = run(Script::sender(FILE, 2_000_000), Script::receiver());
    let end = |path: &TestPath| path.mobile_result(0).application.last_read_ns.expect("something was read");
    assert!(end(&both) < end(&one) * 3 / 2, "{} {}", end(&both), end(&one));
}

#[test]
fn a_browser_gets_each_page_on_one_connection() {
    let path = run(Script::http_server(FILE, 300, 50_000), Script::http_client(5, REQUEST, 300, 50_000, 3.0));
    path.assert_intact(0);
    let mobile = path.mobile_result(0);
    assert_eq!((mobile.application.answers, mobile.application.read_bytes), (5, 250_000));
    assert!(mobile.application.answer_time_ns > 5 * 80 * MILLISECOND);
    assert!(mobile.ended_ns.is_some_and(|end| end > SECOND));
    assert_eq!((path.server_result(0).outcome, mobile.outcome), (Outcome::Closed, Outcome::Closed));
}

#[test]
fn pages_on_connections_of_their_own_follow_each_other() {
    let mut path = path();
    for flow in 0..4 {
        let scripts = [Script::http_server(FILE, 300, 50_000), Script::http_client(1, REQUEST, 300, 50_000, 0.0)];
        path.add(flow, 0, [Settings::default(); 2], scripts);
    }
    for flow in 1..4 {
        path.mobile.start_after(flow - 1, flow, 5.0).expect("two flows");
    }
    path.run_until(600 * SECOND);
    let results: Vec<_> = path.mobile.flows().collect();
    for pair in results.windows(2) {
        let ended_ns = pair[0].ended_ns.expect("an end");
        let thought_ns = pair[1].start_ns - ended_ns;
        assert!(thought_ns > MILLISECOND, "{thought_ns}");
        let connecting_ns = pair[1].connected_ns.expect("a connection") - pair[1].start_ns;
        assert!((40 * MILLISECOND..41 * MILLISECOND).contains(&connecting_ns), "{connecting_ns}");
        path.assert_intact(pair[1].flow);
    }
    assert!(path.mobile.is_finished());
    assert_eq!(path.mobile.start_after(0, 9, 5.0), Err(HostError::FlowUnknown { flow: 9 }));
    assert!(matches!(path.mobile.start_after(0, 1, -1.0), Err(HostError::Script(_))));
}

#[test]
fn an_abort_resets_the_peer() {
    let path = run(Script::sender(FILE, 5_000_000), Script::new(vec![Step::Receive { bytes: 100_000 }, Step::Abort]));
    assert_eq!(path.mobile_result(0).outcome, Outcome::Aborted);
    assert_eq!(path.server_result(0).outcome, Outcome::Reset);
    let read = path.mobile_result(0).application.read_bytes;
    assert!((100_000..200_000).contains(&read), "{read}");
}

#[test]
fn an_abort_by_time_resets_the_peer() {
    let path = run(Script::sender(FILE, 50_000_000).aborting_after(2 * SECOND), Script::receiver());
    assert_eq!(path.server_result(0).outcome, Outcome::Aborted);
    assert_eq!(path.mobile_result(0).outcome, Outcome::Reset);
    let ended_ns = path.server_result(0).ended_ns.expect("an end");
    assert_eq!(path.server_result(0).connected_ns.map(|time| time + 2 * SECOND), Some(ended_ns));
}

#[test]
fn a_slow_reader_sets_the_pace() {
    let pace = Reading::Paced { rate_bytes_s: 50_000, chunk_bytes: 10_000 };
    let small = Settings { receive_buffer_bytes: 60_000, ..Settings::default() };
    let mut path = path();
    let scripts = [Script::sender(FILE, 1_000_000), Script::receiver().reading(pace)];
    path.add(0, 0, [Settings::default(), small], scripts);
    path.run_until(600 * SECOND);
    path.assert_intact(0);
    let took_ns = path.mobile_result(0).application.last_read_ns.expect("something was read");
    assert!((19 * SECOND..21 * SECOND).contains(&took_ns), "{took_ns}");
    assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
}

#[test]
fn a_reader_that_pauses_closes_the_window_and_loses_nothing() {
    let pause = Pause { start_ns: 200 * MILLISECOND, duration_ns: 20 * SECOND };
    let small = Settings { receive_buffer_bytes: 60_000, ..Settings::default() };
    let mut path = path();
    let scripts = [Script::sender(FILE, 1_000_000), Script::receiver().pausing(vec![pause])];
    path.add(0, 0, [Settings::default(), small], scripts);
    path.run_until(600 * SECOND);
    path.assert_intact(0);
    assert!(path.server_result(0).statistics.window_probes > 0);
    assert!(path.mobile_result(0).application.last_read_ns.is_some_and(|end| end > 20 * SECOND));
}

#[test]
fn segments_that_arrive_at_one_time_are_acknowledged_one_by_one() {
    // A link without a rate delivers each window at one instant.
    let line = LineSettings { delay_ns: 20 * MILLISECOND, ..LineSettings::default() };
    let link = Wired::new(&WiredSettings { down: line.clone(), up: line }, 1, "link").expect("a valid link");
    let mut path = TestPath::new(vec![Box::new(link)]);
    let settings = Settings { delayed_acknowledgement: None, ..Settings::default() };
    path.add(0, 0, [settings; 2], [Script::sender(FILE, 100 * 1448), Script::receiver()]);
    path.run_until(10 * SECOND);
    path.assert_intact(0);
    // SYN, its handshake's end, an ACK a segment of data, and the two of the close.
    let sent = path.mobile_result(0).statistics.segments_sent;
    assert!((102..=104).contains(&sent), "{sent}");
}

#[test]
fn many_flows_share_a_host() {
    let mut path = path();
    let flows: Vec<u32> = (0..50).map(|number| number * 37).collect();
    for (number, flow) in flows.iter().enumerate() {
        let scripts = [Script::sender(ContentId(*flow), 50_000 + u64::from(*flow)), Script::receiver()];
        path.add(*flow, number as Nanoseconds * 10 * MILLISECOND, [Settings::default(); 2], scripts);
    }
    path.run_until(2 * SECOND);
    assert!(!path.server.is_finished() && !path.mobile.is_finished());
    path.run_until(600 * SECOND);
    assert!(path.server.is_finished() && path.mobile.is_finished());
    for flow in flows {
        path.assert_intact(flow);
        assert_eq!(path.mobile_result(flow).outcome, Outcome::Closed);
        assert_eq!(path.mobile_result(flow).application.read_bytes, 50_000 + u64::from(flow));
    }
    assert_eq!(path.server.stray_packets() + path.mobile.stray_packets(), 0);
}

#[test]
fn the_same_run_gives_the_same_results() {
    let results = || {
        let mut path = TestPath::new(vec![wired(2_000_000, 30, 20, 0.01)]);
        for flow in 0..3 {
            let scripts = [Script::http_server(FILE, 300, 80_000), Script::http_client(4, REQUEST, 300, 80_000, 1.0)];
            path.add(flow, 0, [Settings::default(); 2], scripts);
        }
        path.run_until(300 * SECOND);
        path.server.flows().chain(path.mobile.flows()).collect::<Vec<_>>()
    };
    let first = results();
    assert_eq!(first, results());
    assert_ne!(first[3].ended_ns, first[4].ended_ns, "flows think apart");
}

#[test]
fn speech_is_received_by_user() {
    let mut path = path();
    for user in [0, 3] {
        path.server.add_speaker(VoiceSettings { user, stop_ns: 30 * SECOND, ..VoiceSettings::default() });
    }
    path.run_until(31 * SECOND);
    let spoken: Vec<u64> =
        path.server.spoken().map(|counts| counts.speech_frames + counts.silence_descriptors).collect();
    let heard = path.mobile.heard();
    assert_eq!((heard[0].frames, heard[3].frames), (spoken[0], spoken[1]));
    assert_eq!(heard[1].frames + heard[0].missing_frames + heard[3].missing_frames, 0);
    assert!(spoken[0] > 500 && spoken[0] != spoken[1]);
}

#[test]
fn series_name_their_units() {
    let mut path = path();
    path.add(7, 0, [Settings::default(); 2], [Script::sender(FILE, 5_000_000), Script::receiver()]);
    path.run_until(SECOND);
    let mut series = Vec::new();
    path.server.observe(&mut |flow, name, value| series.push((flow, name, value)));
    for (flow, name, value) in &series {
        assert!(*flow == 7 && value.is_finite() && ["_bytes", "_s"].iter().any(|unit| name.ends_with(unit)), "{name}");
    }
    let round_trip = series.iter().find(|(_, name, _)| *name == "smoothed_round_trip_time_s");
    assert!(round_trip.is_some_and(|(_, _, value)| (0.04..0.2).contains(value)), "{round_trip:?}");
    let window = series.iter().find(|(_, name, _)| *name == "congestion_window_bytes").map(|(_, _, value)| *value);
    assert!(window.is_some_and(|window| window > 14_480.0));
}

#[test]
fn flows_that_cannot_be_added_are_refused_in_a_sentence() {
    let flow = |flow, script| FlowSettings {
        flow,
        user: 0,
        role: Role::Client,
        start_ns: 0,
        connection: Settings::default(),
        script,
    };
    let mut host = Host::new(1, "host");
    assert_eq!(host.add_flow(flow(1, Script::receiver())), Ok(()));
    assert_eq!(host.add_flow(flow(1, Script::receiver())), Err(HostError::FlowTaken { flow: 1 }));
    let error = host.add_flow(flow(u32::MAX, Script::receiver())).expect_err("too large a number");
    assert_eq!(error.to_string(), "The number of a flow must be from 0 to 1048575, got 4294967295.");
    let endless = Script::new(vec![Step::Repeat { times: None, steps: Vec::new() }]);
    assert!(matches!(host.add_flow(flow(2, endless)), Err(HostError::Script(_))));
}

#[test]
fn packets_of_unknown_flows_are_counted_and_dropped() {
    let mut host = Host::new(1, "host");
    host.handle_packet(0, &Packet::Tcp(Segment { flow: 5, ..Segment::default() }));
    assert_eq!((host.stray_packets(), host.poll_transmit(0)), (1, None));
}

//! Transfers through a local acknowledger arrive whole, and their senders hear of it too soon.

use pepscope_path::{Direction, Hop, Nanoseconds, MILLISECOND, SECOND};
use proptest::prelude::{any, prop_oneof, proptest, Just, ProptestConfig, Strategy};

use super::{Acknowledger, AcknowledgerSettings};
use crate::applications::script::{Pause, Script};
use crate::control::ControlKind;
use crate::host::Outcome;
use crate::packets::packet::Packet;
use crate::packets::segment::{ContentId, Flags, Segment};
use crate::settings::{Settings, Stack};
use crate::test_path::{wired, TestPath, Watched};

const FILE: ContentId = ContentId(1);

fn settings() -> AcknowledgerSettings {
    AcknowledgerSettings {
        acknowledges: [true, false],
        buffer_bytes: 200_000,
        passes_receivers: false,
        counts_identifications: true,
        control: ControlKind::named("cubic").expect("listed"),
        bypassed_flows: Vec::new(),
    }
}

/// A fast wired side, the middlebox, and a slow side that loses packets.
fn path(settings: AcknowledgerSettings, loss: f64) -> TestPath {
    let hops: Vec<Box<dyn Hop<Packet>>> = vec![
        wired(100_000_000, 20, 300, 0.0),
        Box::new(Acknowledger::new(settings, 1, "acknowledger")),
        wired(4_000_000, 40, 300, loss),
    ];
    let mut path = TestPath::new(hops);
    path.log = Some(Vec::new());
    path
}

fn segments(path: &TestPath, boundary: usize, way: Direction) -> Vec<(Nanoseconds, Segment)> {
    let log = path.log.as_ref().expect("a log");
    let found = log.iter().filter(|entry| entry.1 == boundary && entry.2 == way);
    found.filter_map(|entry| if let Packet::Tcp(segment) = entry.3 { Some((entry.0, segment)) } else { None }).collect()
}

#[test]
fn the_sender_hears_of_bytes_that_the_receiver_does_not_have() {
    let mut path = path(settings(), 0.0);
    path.add(0, 0, [Settings::default(); 2], [Script::sender(FILE, 1_000_000), Script::receiver()]);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    assert_eq!(path.server_result(0).outcome, Outcome::Closed);
    let reached = |segments: &[(Nanoseconds, Segment)], end: u32, is_data: bool| {
        let found = segments.iter().find(|(_, segment)| {
            if is_data {
                segment.sequence.wrapping_add(u32::from(segment.payload_bytes)) >= end && segment.payload_bytes > 0
            } else {
                segment.flags.has(Flags::ACK) && segment.acknowledgement >= end
            }
        });
        found.expect("it gets there").0
    };
    let heard = reached(&segments(&path, 0, Direction::Up), 400_001, false);
    let had = reached(&segments(&path, 3, Direction::Down), 400_001, true);
    assert!(heard + 100 * MILLISECOND < had, "{heard} {had}");
    // What arrives is what was sent, but for what was sent again.
    let identity =
        |segment: &Segment| (segment.sequence, segment.ip_identification, segment.timestamps, segment.window);
    let sent: Vec<_> = segments(&path, 0, Direction::Down).iter().map(|entry| identity(&entry.1)).collect();
    let arrived: Vec<_> = segments(&path, 3, Direction::Down).iter().map(|entry| identity(&entry.1)).collect();
    assert!(arrived.len() > 690);
    assert!(arrived.iter().all(|packet| sent.contains(packet)), "the same packets");
}

#[test]
fn what_is_lost_behind_it_never_reaches_the_sender() {
    let mut path = path(settings(), 0.02);
    path.add(0, 0, [Settings::default(); 2], [Script::sender(FILE, 2_000_000), Script::receiver()]);
    path.run_until(200 * SECOND);
    path.assert_intact(0);
    assert_eq!(path.server_result(0).statistics.fast_retransmits, 0);
    assert!(path.server_result(0).statistics.retransmitted_segments <= 6, "a FIN at most");
}

#[test]
fn a_receiver_that_does_not_read_shuts_the_window_of_the_middlebox() {
    let mut path = path(settings(), 0.0);
    let pause = Pause { start_ns: SECOND, duration_ns: 30 * SECOND };
    let mobile = Settings { receive_buffer_bytes: 50_000, ..Settings::default() };
    let scripts = [Script::sender(FILE, 2_000_000), Script::receiver().pausing(vec![pause])];
    path.add(0, 0, [Settings::default(), mobile], scripts);
    path.run_until(20 * SECOND);
    let sent = path.server_result(0).statistics.payload_bytes_sent;
    assert!((200_000..1_200_000).contains(&sent), "{sent}");
    path.run_until(200 * SECOND);
    path.assert_intact(0);
    assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
}

#[test]
fn flows_that_it_leaves_alone_are_end_to_end() {
    let mut path = path(AcknowledgerSettings { bypassed_flows: vec![0], ..settings() }, 0.0);
    path.add(0, 0, [Settings::default(); 2], [Script::sender(FILE, 300_000), Script::receiver()]);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    assert_eq!(segments(&path, 1, Direction::Up).len(), segments(&path, 2, Direction::Up).len());
}

fn acknowledgers() -> impl Strategy<Value = AcknowledgerSettings> {
    let directions = prop_oneof![Just([true, false]), Just([false, true]), Just([true, true])];
    let control = prop_oneof![Just("cubic"), Just("reno")];
    (directions, 4096u64..300_000, any::<bool>(), any::<bool>(), control).prop_map(
        |(acknowledges, buffer_bytes, passes_receivers, counts_identifications, control)| AcknowledgerSettings {
            acknowledges,
            buffer_bytes,
            passes_receivers,
            counts_identifications,
            control: ControlKind::named(control).expect("listed"),
            bypassed_flows: Vec::new(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn both_directions_arrive_whole(
        settings in acknowledgers(),
        loss in prop_oneof![Just(0.0), Just(0.02)],
        is_linux in any::<bool>(),
        timestamps in any::<bool>(),
        sack in any::<bool>(),
        receive_buffer_bytes in 4000u64..300_000,
        down_bytes in 1u64..200_000,
        up_bytes in 1u64..100_000,
    ) {
        let end = Settings {
            stack: if is_linux { Stack::Linux } else { Stack::Ideal },
            timestamps,
            sack,
            receive_buffer_bytes,
            ..Settings::default()
        };
        exchange(settings, loss, end, [down_bytes, up_bytes]);
    }
}

/// Both ends send so many bytes, down and up, over links that lose packets, and must have them all and close.
fn exchange(settings: AcknowledgerSettings, loss: f64, end: Settings, [down_bytes, up_bytes]: [u64; 2]) {
    let most_bytes = settings.buffer_bytes + u64::from(u16::MAX);
    let acknowledger = Watched::new(Acknowledger::new(settings, 1, "box"));
    let hops: Vec<Box<dyn Hop<Packet>>> =
        vec![wired(100_000_000, 20, 300, loss), Box::new(acknowledger.clone()), wired(4_000_000, 40, 60, loss)];
    let mut path = TestPath::new(hops);
    // Near the end of the sequence space, so that every number wraps on the way.
    let end = Settings { initial_sequence_number: u32::MAX - 20_000, ..end };
    let scripts =
        [Script::exchanger(FILE, down_bytes, up_bytes), Script::exchanger(ContentId(2), up_bytes, down_bytes)];
    path.add(0, 0, [end; 2], scripts);
    path.run_until(50_000 * SECOND);
    path.assert_intact(0);
    assert_eq!(path.mobile_result(0).application.read_bytes, down_bytes);
    assert_eq!(path.server_result(0).outcome, Outcome::Closed);
    assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
    assert!(acknowledger.0.borrow().totals().most_held_bytes <= most_bytes);
}

/// One that acknowledges both directions.
fn both_ways(buffer_bytes: u64, passes_receivers: bool) -> AcknowledgerSettings {
    AcknowledgerSettings {
        acknowledges: [true; 2],
        buffer_bytes,
        passes_receivers,
        counts_identifications: false,
        ..settings()
    }
}

#[test]
fn a_fin_that_is_sent_again_is_acknowledged_again_where_its_acknowledgement_was_lost() {
    let end = Settings { timestamps: false, receive_buffer_bytes: 24_832, ..Settings::default() };
    exchange(both_ways(22_544, false), 0.02, end, [18_981, 37_973]);
}

#[test]
fn its_acknowledgements_are_no_older_than_the_receivers_own_that_it_passed_on() {
    let settings =
        AcknowledgerSettings { control: ControlKind::named("reno").expect("listed"), ..both_ways(20_272, true) };
    let end = Settings { stack: Stack::Linux, sack: false, receive_buffer_bytes: 25_448, ..Settings::default() };
    exchange(settings, 0.02, end, [92_673, 2_897]);
}

#[test]
fn what_a_shut_window_held_back_for_long_does_not_turn_time_back() {
    let settings = AcknowledgerSettings { acknowledges: [true, false], ..both_ways(58_492, false) };
    let end = Settings { stack: Stack::Linux, timestamps: false, receive_buffer_bytes: 39_120, ..Settings::default() };
    exchange(settings, 0.08, end, [49_128, 32_121]);
}

//! Hosts of the Linux stack, against what captures between Linux 6.18 kernels show (tcp_rmem "4096 131072 6291456").

use pepscope_path::{Direction, Nanoseconds, MILLISECOND, SECOND};

use crate::applications::script::Script;
use crate::packets::segment::{ContentId, Flags, Segment};
use crate::settings::{RetransmissionEstimator, RetransmissionSettings, Settings, Stack};
use crate::test_path::{wired, TestPath};
use crate::ProcessingSettings;

const FILE: ContentId = ContentId(1);
const REQUEST: ContentId = ContentId(2);

fn linux() -> Settings {
    Settings {
        stack: Stack::Linux,
        takes_time: true,
        receive_buffer_bytes: 6 << 20,
        retransmission: RetransmissionSettings { estimator: RetransmissionEstimator::Linux, ..Default::default() },
        byte_counting_limit_segments: Some(1000),
        ..Settings::default()
    }
}

/// What passes beside the server on a path of 4 Mbit/s and 10 ms each way.
fn beside_the_server(settings: Settings, server: Script, mobile: Script) -> Vec<(Nanoseconds, Direction, Segment)> {
    let mut path = TestPath::new(vec![wired(4_000_000, 10, 300, 0.0)]);
    path.server = path.server.taking_time(ProcessingSettings::default());
    path.mobile = path.mobile.taking_time(ProcessingSettings::default());
    path.log = Some(Vec::new());
    path.add(0, 0, [settings; 2], [server, mobile]);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    path.segments_beside_server()
}

fn of(passed: &[(Nanoseconds, Direction, Segment)], direction: Direction) -> Vec<Segment> {
    passed.iter().filter(|(_, way, _)| *way == direction).map(|(_, _, segment)| *segment).collect()
}

fn upload(bytes: u64) -> Vec<(Nanoseconds, Direction, Segment)> {
    beside_the_server(linux(), Script::receiver(), Script::sender(FILE, bytes))
}

#[test]
fn the_handshake_ends_with_a_bare_acknowledgement() {
    let up = of(&upload(50_000), Direction::Up);
    assert_eq!((up[1].flags, up[1].payload_bytes), (Flags::ACK, 0));
    assert!(up[2].payload_bytes > 0);
}

#[test]
fn windows_open_as_a_kernel_opens_them() {
    let passed = upload(50_000);
    let windows: Vec<u64> =
        of(&passed, Direction::Down).iter().skip(1).map(|sent| u64::from(sent.window) << 7).collect();
    assert_eq!(of(&passed, Direction::Up)[0].window, 64_240);
    assert_eq!(u64::from(of(&passed, Direction::Up)[1].window) << 7, 64_256);
    assert_eq!(of(&passed, Direction::Down)[0].window, 65_160);
    assert_eq!(windows[..7], [68_096, 71_040, 73_856, 76_800, 79_744, 80_512, 80_512]);
}

#[test]
fn the_window_follows_what_the_application_reads() {
    let down = of(&upload(6_000_000), Direction::Down);
    let largest = down.iter().skip(1).map(|sent| u64::from(sent.window) << 7).max().expect("a window");
    assert!(largest > 120_000 && largest < 3_932_160, "{largest}");
}

#[test]
fn bursts_of_two_end_in_a_pushed_segment() {
    let data: Vec<bool> = of(&upload(50_000), Direction::Up)
        .iter()
        .filter(|sent| sent.payload_bytes > 0)
        .map(|sent| sent.flags.has(Flags::PSH))
        .collect();
    assert_eq!(data[..10], [false, true, false, true, false, true, false, true, false, true]);
}

#[test]
fn a_short_segment_waits_for_an_earlier_short_one() {
    let server = Script::new(vec![
        crate::applications::script::Step::Receive { bytes: 300 },
        crate::applications::script::Step::Send { content: FILE, bytes: 100 },
        crate::applications::script::Step::Wait { duration_ns: MILLISECOND },
        crate::applications::script::Step::Send { content: REQUEST, bytes: 200 },
        crate::applications::script::Step::Wait { duration_ns: 100 * MILLISECOND },
        crate::applications::script::Step::Close,
    ]);
    let mobile = Script::new(vec![
        crate::applications::script::Step::Send { content: REQUEST, bytes: 300 },
        crate::applications::script::Step::ReceiveAll,
        crate::applications::script::Step::Close,
    ]);
    let sent = |passed: &[(Nanoseconds, Direction, Segment)]| -> Vec<Nanoseconds> {
        let data = passed.iter().filter(|(_, way, sent)| *way == Direction::Down && sent.payload_bytes > 0);
        data.map(|(at, _, _)| *at).collect()
    };
    let times = sent(&beside_the_server(linux(), server.clone(), mobile.clone()));
    assert!(times[1] - times[0] > 20 * MILLISECOND, "{times:?}");
    let times = sent(&beside_the_server(Settings { takes_time: true, ..Settings::default() }, server, mobile));
    assert!(times[1] - times[0] < 5 * MILLISECOND, "{times:?}");
}

#[test]
fn a_syn_ack_has_no_identification_and_later_packets_count() {
    let down = of(&upload(50_000), Direction::Down);
    assert_eq!(down[0].ip_identification, 0);
    assert!(down[1..].windows(2).all(|pair| pair[1].ip_identification == pair[0].ip_identification.wrapping_add(1)));
}

#[test]
fn a_server_that_closes_soon_acknowledges_a_fin_with_its_own() {
    let server = Script::http_server(FILE, 300, 5_000);
    let passed = beside_the_server(linux(), server, Script::http_client(1, REQUEST, 300, 5_000, 0.0));
    let last = of(&passed, Direction::Down).last().copied().expect("a segment");
    assert!(last.flags.has(Flags::FIN));
    let bare =
        of(&passed, Direction::Down).iter().filter(|sent| sent.flags == Flags::ACK && sent.payload_bytes == 0).count();
    assert_eq!(bare, 1, "the request's alone");
}

#[test]
fn packets_over_version_6_are_no_longer_than_over_version_4() {
    let settings = Settings { version_6: true, ..linux() };
    let passed = beside_the_server(settings, Script::sender(FILE, 50_000), Script::receiver());
    assert_eq!(of(&passed, Direction::Up)[0].maximum_segment_size, Some(1440));
    assert_eq!(passed.iter().map(|(_, _, sent)| sent.length_bytes()).max(), Some(1500));
}

#[test]
fn no_two_packets_pass_at_one_time_and_nothing_is_answered_at_once() {
    let passed = beside_the_server(linux(), Script::sender(FILE, 200_000), Script::receiver());
    let down: Vec<Nanoseconds> =
        passed.iter().filter(|(_, way, _)| *way == Direction::Down).map(|(at, _, _)| *at).collect();
    assert!(down.windows(2).all(|pair| pair[1] > pair[0]));
    assert!(passed[1].0 > passed[0].0 + 1_000, "a SYN-ACK takes microseconds");
}

//! Hosts of Windows and Darwin (docs/models/hosts.md says where each fact is from).

use pepscope_path::{Direction, Nanoseconds, MILLISECOND, SECOND};

use crate::applications::script::{Reading, Script};
use crate::packets::packet::Packet;
use crate::packets::segment::{ContentId, Flags, OptionLayout, Segment};
use crate::settings::{
    DelayedAcknowledgement, Recovery, RetransmissionEstimator, RetransmissionSettings, Settings, Stack,
};
use crate::test_path::{wired, TestPath};

const FILE: ContentId = ContentId(1);

type Passed = Vec<(Nanoseconds, Direction, Segment)>;

fn windows() -> Settings {
    Settings {
        stack: Stack::Windows,
        receive_buffer_bytes: 65_535 << 8,
        window_scale: Some(8),
        timestamps_offered: false,
        recovery: Recovery::Rack,
        time_to_live: 128,
        ip_identification: 700,
        ..Settings::default()
    }
}

fn darwin() -> Settings {
    Settings {
        stack: Stack::Darwin,
        receive_buffer_bytes: 4 << 20,
        window_scale: Some(6),
        recovery: Recovery::Rack,
        delayed_acknowledgement: Some(DelayedAcknowledgement { every: 2, timeout: 100 * MILLISECOND }),
        retransmission: RetransmissionSettings { estimator: RetransmissionEstimator::Darwin, ..Default::default() },
        ip_identification: 700,
        ..Settings::default()
    }
}

/// What passes beside the server on a path of `rate_bit_s` and 10 ms each way.
fn passes(rate_bit_s: u64, ends: [Settings; 2], scripts: [Script; 2]) -> Passed {
    let mut path = TestPath::new(vec![wired(rate_bit_s, 10, 400, 0.0)]);
    path.log = Some(Vec::new());
    path.add(0, 0, ends, scripts);
    path.run_until(200 * SECOND);
    path.assert_intact(0);
    path.segments_beside_server()
}

fn of(passed: &Passed, direction: Direction) -> Vec<Segment> {
    passed.iter().filter(|(_, way, _)| *way == direction).map(|(_, _, segment)| *segment).collect()
}

fn upload(settings: Settings, bytes: u64) -> Passed {
    passes(20_000_000, [settings; 2], [Script::receiver(), Script::sender(FILE, bytes)])
}

#[test]
fn windows_opens_with_whole_segments_and_a_quarter_of_a_megabyte() {
    let passed = upload(windows(), 50_000);
    let (up, down) = (of(&passed, Direction::Up), of(&passed, Direction::Down));
    assert_eq!((up[0].window, up[0].window_scale, up[0].timestamps), (64_240, Some(8), None));
    assert_eq!((down[0].window, down[0].window_scale, down[0].timestamps), (65_535, Some(8), None));
    assert_eq!(up[0].option_layout, OptionLayout::ScaleSecond);
    assert_eq!(up[1].window, 1026, "as captures show it after SYNs with 1,460 bytes");
    let version_6 = upload(Settings { version_6: true, ..windows() }, 50_000);
    assert_eq!(of(&version_6, Direction::Up)[0].window, 64_800);
    assert_eq!(of(&version_6, Direction::Up)[1].window, 1029);
}

#[test]
fn windows_answers_timestamps_that_it_does_not_offer() {
    let offering = Settings { timestamps_offered: true, ..windows() };
    let scripts = || [Script::receiver(), Script::sender(FILE, 50_000)];
    let answered = passes(20_000_000, [windows(), offering], scripts());
    assert!(answered.iter().all(|(_, _, segment)| segment.timestamps.is_some()));
    let refused = passes(20_000_000, [Settings { timestamps: false, ..windows() }, offering], scripts());
    assert!(refused.iter().skip(1).all(|(_, _, segment)| segment.timestamps.is_none()));
}

#[test]
fn windows_acknowledges_every_second_segment_and_a_single_one_after_its_delay() {
    let passed = upload(windows(), 1460 * 101);
    let mut received = 0;
    for (_, direction, segment) in passed.iter().skip(3) {
        match direction {
            Direction::Up => received += u32::from(segment.payload_bytes > 0),
            Direction::Down if segment.flags == Flags::ACK => assert!(std::mem::take(&mut received) <= 2),
            Direction::Down => {}
        }
    }
    let single = upload(windows(), 1000);
    let data_at = single.iter().position(|(_, _, segment)| segment.payload_bytes > 0).expect("data");
    let answer = single[data_at..].iter().find(|(_, way, _)| *way == Direction::Down).expect("an answer");
    assert!(answer.2.flags.has(Flags::ACK));
}

#[test]
fn windows_window_grows_with_what_is_read_in_a_round_trip() {
    let fast = passes(400_000_000, [windows(); 2], [Script::receiver(), Script::sender(FILE, 60_000_000)]);
    let windows_of = |passed: &Passed| -> Vec<u64> {
        of(passed, Direction::Down).iter().skip(1).map(|sent| u64::from(sent.window) << 8).collect()
    };
    let largest = *windows_of(&fast).iter().max().expect("a window");
    assert!(largest > 1_000_000, "{largest}");
    let slow = *windows_of(&upload(windows(), 400_000)).iter().max().expect("a window");
    assert_eq!(slow >> 8, 1026);
}

#[test]
fn windows_counts_identifications_by_destination() {
    let mut path = TestPath::new(vec![wired(20_000_000, 10, 400, 0.0)]);
    path.log = Some(Vec::new());
    for flow in 0..3 {
        let settings = Settings { ip_identification: 5000 * flow as u16 + 9, ..windows() };
        path.add(
            flow,
            u64::from(flow) * MILLISECOND,
            [settings; 2],
            [Script::sender(FILE, 40_000), Script::receiver()],
        );
    }
    path.run_until(200 * SECOND);
    let passed = path.log.take().expect("a log");
    let down: Vec<u16> = passed
        .iter()
        .filter_map(|(_, boundary, direction, packet)| match packet {
            Packet::Tcp(segment) if *boundary == 0 && *direction == Direction::Down => Some(segment.ip_identification),
            _ => None,
        })
        .collect();
    assert!(down.len() > 80);
    assert!(down.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{down:?}");
}

#[test]
fn darwin_opens_with_whole_segments_of_131072_bytes() {
    let passed = upload(darwin(), 50_000);
    let (up, down) = (of(&passed, Direction::Up), of(&passed, Direction::Down));
    assert_eq!((up[0].window, up[0].window_scale), (65_535, Some(6)));
    assert_eq!((down[0].window, down[0].option_bytes()), (65_535, 24));
    assert!(up[0].timestamps.is_some() && down[0].timestamps.is_some());
    assert_eq!(up[1].window, 2059, "131,768 bytes, in steps of 64 that are rounded up");
    assert!(passed.iter().all(|(_, _, segment)| segment.ip_identification == 0));
}

#[test]
fn darwin_pushes_what_empties_its_buffer_and_nothing_else() {
    let pushed: Vec<bool> = of(&upload(darwin(), 200_000), Direction::Up)
        .iter()
        .filter(|sent| sent.payload_bytes > 0)
        .map(|sent| sent.flags.has(Flags::PSH))
        .collect();
    assert_eq!(pushed.iter().filter(|is_pushed| **is_pushed).count(), 1);
    assert_eq!(pushed.last(), Some(&true));
}

#[test]
fn darwin_stretches_acknowledgements_where_its_application_lags() {
    let slow = Script::receiver().reading(Reading::Paced { rate_bytes_s: 400_000, chunk_bytes: 60_000 });
    let passed = passes(20_000_000, [darwin(); 2], [slow, Script::sender(FILE, 3_000_000)]);
    let data = of(&passed, Direction::Up).iter().filter(|sent| sent.payload_bytes > 0).count();
    let acknowledgements = of(&passed, Direction::Down).len();
    assert!(4 * acknowledgements < 3 * data, "{acknowledgements} for {data}");
    let quick = passes(20_000_000, [darwin(); 2], [Script::receiver(), Script::sender(FILE, 100_000)]);
    let first = of(&quick, Direction::Up).iter().filter(|sent| sent.payload_bytes > 0).count();
    assert!(of(&quick, Direction::Down).len() >= first, "the first are forced, and the reader keeps up");
}

#[test]
fn darwin_window_grows_fourfold_while_the_sender_speeds_up() {
    let passed = passes(400_000_000, [darwin(); 2], [Script::receiver(), Script::sender(FILE, 20_000_000)]);
    let windows: Vec<u64> =
        of(&passed, Direction::Down).iter().skip(1).map(|sent| u64::from(sent.window) << 6).collect();
    let largest = *windows.iter().max().expect("a window");
    assert!(largest > 500_000 && largest <= 65_535 << 6, "{largest}");
}

#[test]
fn darwin_repeats_a_syn_five_times_a_second_apart() {
    let mut path = TestPath::new(vec![wired(20_000_000, 10, 400, 1.0)]);
    path.log = Some(Vec::new());
    path.add(0, 0, [darwin(); 2], [Script::receiver(), Script::sender(FILE, 1000)]);
    path.run_until(20 * SECOND);
    let log = path.log.take().expect("a log");
    let mut times: Vec<u64> = log.iter().map(|(at, _, _, _)| at / SECOND).collect();
    times.dedup();
    assert_eq!(times, [0, 1, 2, 3, 4, 5, 7]);
}

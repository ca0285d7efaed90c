//! Downloads between Linux hosts over paths that lose, delay and reorder what a test says.

use pepscope_path::{
    Direction, HandoverSettings, Handovers, Hop, ImpairedLineSettings, Impairments, ImpairmentsSettings, LineSettings,
    LossSettings, Nanoseconds, QueueLimit, QueueSettings, Wired, WiredSettings, MILLISECOND, SECOND,
};

use crate::applications::script::Script;
use crate::packets::packet::Packet;
use crate::packets::segment::{ContentId, Flags};
use crate::settings::{Recovery, RetransmissionEstimator, RetransmissionSettings, Settings, Stack};
use crate::statistics::Statistics;
use crate::test_path::{wired, TestPath};

const FILE: ContentId = ContentId(1);
/// Payload of a full segment.
const SEGMENT: u64 = 1448;
const ROUND_TRIP: Nanoseconds = 40 * MILLISECOND;

fn linux() -> Settings {
    Settings {
        initial_slow_start_threshold_bytes: 60 * SEGMENT,
        stack: Stack::Linux,
        recovery: Recovery::Rack,
        receive_buffer_bytes: 6 << 20,
        retransmission: RetransmissionSettings { estimator: RetransmissionEstimator::Linux, ..Default::default() },
        byte_counting_limit_segments: Some(1000),
        ..Settings::default()
    }
}

/// What the server's end of a download counted, when the last byte was read, and when data left the server.
struct Download {
    server: Statistics,
    took: Nanoseconds,
    sent: Vec<(Nanoseconds, u32)>,
}

impl Download {
    fn resent(&self) -> Vec<Nanoseconds> {
        let mut seen = std::collections::BTreeSet::new();
        self.sent.iter().filter(|(_, sequence)| !seen.insert(*sequence)).map(|(at, _)| *at).collect()
    }
}

fn download(segments: u64, settings: Settings, hops: Vec<Box<dyn Hop<Packet>>>) -> Download {
    let mut path = TestPath::new(hops);
    path.log = Some(Vec::new());
    path.add(0, 0, [settings; 2], [Script::sender(FILE, segments * SEGMENT), Script::receiver()]);
    path.run_until(600 * SECOND);
    path.assert_intact(0);
    let data = |(at, boundary, direction, packet)| match packet {
        Packet::Tcp(segment) if boundary == 0 && direction == Direction::Down && segment.payload_bytes > 0 => {
            assert!(!segment.flags.has(Flags::SYN));
            Some((at, segment.sequence))
        }
        _ => None,
    };
    Download {
        server: path.server_result(0).statistics,
        took: path.mobile_result(0).application.last_read_ns.expect("something was read"),
        sent: path.log.take().expect("a log").into_iter().filter_map(data).collect(),
    }
}

/// 100 Mbit/s, 20 ms each way; of what goes down the packets with these numbers are lost (0 is the SYN-ACK).
fn losing(numbers: &[u64]) -> Box<dyn Hop<Packet>> {
    let up = LineSettings {
        rate_bit_s: Some(100_000_000),
        delay_ns: ROUND_TRIP / 2,
        queue: QueueSettings { limit: QueueLimit::Packets(1000), ..QueueSettings::default() },
        loss: LossSettings::None,
    };
    let down = LineSettings { loss: LossSettings::Listed { numbers: numbers.to_vec() }, ..up.clone() };
    Box::new(Wired::new(&WiredSettings { down, up }, 1, "losing").expect("a link"))
}

#[test]
fn a_probe_repairs_a_lost_tail_after_two_round_trips() {
    let linux_ends = download(8, linux(), vec![losing(&[8, 9])]);
    assert_eq!((linux_ends.server.tail_loss_probes, linux_ends.server.timeouts), (1, 0));
    // The ACK of the seventh arrives a round trip after all were sent; the probe leaves two and 2 ms later, and earlier
    // than the 200 ms for a delayed ACK since more than one segment was in flight until then.
    let [probe] = linux_ends.resent()[..] else { panic!("{:?}", linux_ends.sent) };
    let after = probe - linux_ends.sent[0].0;
    assert!((3 * ROUND_TRIP..8 * ROUND_TRIP).contains(&after), "{after}");
    let without = download(8, Settings { stack: Stack::Ideal, ..linux() }, vec![losing(&[8, 9])]);
    assert!(without.server.tail_loss_probes == 0 && without.server.timeouts > 0);
    assert!(without.took > linux_ends.took + 2 * ROUND_TRIP);
}

#[test]
fn a_probe_that_arrives_shows_what_was_lost_before_it() {
    let lost = download(10, linux(), vec![losing(&[8, 9, 10, 11])]);
    assert_eq!((lost.server.tail_loss_probes, lost.server.timeouts, lost.server.fast_retransmits), (1, 0, 1));
    assert_eq!(lost.server.retransmitted_segments, 4);
}

#[test]
fn a_probe_of_new_data_comes_before_one_of_old() {
    // The window is full, and all of it is lost but for nothing that answers: the probe is the eleventh segment.
    let lost = download(12, linux(), vec![losing(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])]);
    assert_eq!(lost.server.tail_loss_probes, 1);
    let eleventh = lost.sent[0].1.wrapping_add(10 * SEGMENT as u32);
    assert_eq!(lost.sent.iter().position(|(_, sequence)| *sequence == eleventh), Some(10));
    assert!(lost.server.timeouts == 0, "its report shows the losses");
}

#[test]
fn nothing_is_sent_again_where_reordering_stays_within_its_window() {
    let line = ImpairedLineSettings {
        delay_ns: 0,
        jitter_ns: 0,
        reordered: 0.02,
        reorder_ns: 4 * MILLISECOND,
        duplicated: 0.0,
    };
    let settings = ImpairmentsSettings { down: line, up: ImpairedLineSettings { reordered: 0.0, ..line } };
    let hops = || -> Vec<Box<dyn Hop<Packet>>> {
        vec![wired(20_000_000, 20, 1000, 0.0), Box::new(Impairments::new(&settings, 1, "reordering").expect("a hop"))]
    };
    let threshold = download(4000, Settings { stack: Stack::Ideal, ..linux() }, hops());
    assert!(threshold.server.retransmitted_segments > 20, "{:?}", threshold.server);
    let window = download(4000, linux(), hops());
    assert!(window.server.retransmitted_segments * 5 < threshold.server.retransmitted_segments, "{:?}", window.server);
    assert!(window.took < threshold.took);
}

#[test]
fn a_pause_of_the_path_is_seen_to_have_lost_nothing() {
    let pauses =
        HandoverSettings { interval_ns: 4 * SECOND, is_random: false, interruption_ns: 2 * SECOND, forwards: true };
    let hops = || -> Vec<Box<dyn Hop<Packet>>> {
        vec![wired(5_000_000, 20, 60, 0.0), Box::new(Handovers::new(pauses, 1, "pause").expect("a hop"))]
    };
    let undone = download(4000, linux(), hops());
    assert!(undone.server.timeouts > 0 && undone.server.undone_reductions > 0, "{:?}", undone.server);
    let repeated = download(4000, Settings { stack: Stack::Ideal, ..linux() }, hops());
    assert_eq!(repeated.server.undone_reductions, 0);
    assert!(undone.server.retransmitted_segments * 4 < repeated.server.retransmitted_segments, "{:?}", undone.server);
}

#[test]
fn without_timestamps_new_data_tells_that_a_timeout_was_spurious() {
    let pauses =
        HandoverSettings { interval_ns: 4 * SECOND, is_random: false, interruption_ns: 2 * SECOND, forwards: true };
    let hops: Vec<Box<dyn Hop<Packet>>> =
        vec![wired(5_000_000, 20, 60, 0.0), Box::new(Handovers::new(pauses, 1, "pause").expect("a hop"))];
    let undone = download(4000, Settings { timestamps: false, ..linux() }, hops);
    assert!(undone.server.timeouts > 0 && undone.server.undone_reductions > 0, "{:?}", undone.server);
}

#[test]
fn a_true_timeout_is_not_undone() {
    // All of the first window and three retransmissions of its first segment are lost.
    let lost = download(40, linux(), vec![losing(&(1..=13).collect::<Vec<_>>())]);
    assert!(lost.server.timeouts >= 1, "{:?}", lost.server);
    assert_eq!(lost.server.undone_reductions, 0);
}

#[test]
fn a_retransmission_that_arrived_twice_is_undone() {
    // One packet in a hundred comes 60 ms late, later than any window for reordering at first.
    let line = ImpairedLineSettings {
        delay_ns: 0,
        jitter_ns: 0,
        reordered: 0.01,
        reorder_ns: 60 * MILLISECOND,
        duplicated: 0.0,
    };
    let settings = ImpairmentsSettings { down: line, up: ImpairedLineSettings { reordered: 0.0, ..line } };
    let hops: Vec<Box<dyn Hop<Packet>>> =
        vec![wired(20_000_000, 20, 1000, 0.0), Box::new(Impairments::new(&settings, 1, "reordering").expect("a hop"))];
    let late = download(2000, linux(), hops);
    assert!(late.server.fast_retransmits > 0 && late.server.undone_reductions > 0, "{:?}", late.server);
}

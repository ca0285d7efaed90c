//! Controls at work: real connections over a bottleneck, against what each algorithm promises.

use pepscope_path::{
    Hop, LineSettings, LossSettings, MarkingSettings, Nanoseconds, QueueLimit, QueueSettings, Wired, WiredSettings,
    MILLISECOND, NEVER, SECOND,
};

use super::{kind, ControlKind, RENO};
use crate::applications::script::Script;
use crate::packets::packet::Packet;
use crate::packets::segment::ContentId;
use crate::settings::{EcnMode, Recovery, Settings};
use crate::test_path::TestPath;

const RATE_BIT_S: u64 = 10_000_000;
fn settings(control: ControlKind) -> Settings {
    let ecn = if control == kind("jersey") { EcnMode::EveryPacket } else { EcnMode::Off };
    Settings { control, ecn, ..Settings::default() }
}

/// Where routers warn: a third of the buffers below, so that a warning comes a round trip before they are full.
const WARNING: Option<f64> = Some(10.0);

/// 10 Mbit/s, 40 ms there and back, a product of 33 packets; it marks above `marking` packets on average.
fn bottleneck(queue_packets: u32, loss: LossSettings, marking: Option<f64>) -> Box<dyn Hop<Packet>> {
    let marking = marking.map(|threshold_packets| MarkingSettings { threshold_packets, weight: 0.1 });
    let queue = QueueSettings { limit: QueueLimit::Packets(queue_packets), marking, ..QueueSettings::default() };
    let line = LineSettings { rate_bit_s: Some(RATE_BIT_S), delay_ns: 20 * MILLISECOND, ..LineSettings::default() };
    let down = LineSettings { queue, loss, ..line.clone() };
    Box::new(Wired::new(&WiredSettings { down, up: line }, 1, "bottleneck").expect("a valid link"))
}

/// Downloads without end, one a control, begun a second apart.
fn downloads(hop: Box<dyn Hop<Packet>>, controls: &[ControlKind]) -> TestPath {
    let mut path = TestPath::new(vec![hop]);
    for (flow, control) in controls.iter().enumerate() {
        let scripts = [Script::sender_for(ContentId(1), NEVER), Script::receiver()];
        path.add(flow as u32, flow as Nanoseconds * SECOND, [settings(*control); 2], scripts);
    }
    path
}

/// Bytes that each flow's reader gets from `start_s` to `end_s`.
fn goodput(path: &mut TestPath, flows: usize, start_s: u64, end_s: u64) -> Vec<f64> {
    let read = |path: &TestPath| -> Vec<u64> {
        (0..flows).map(|flow| path.mobile_result(flow as u32).application.read_bytes).collect()
    };
    path.run_until(start_s * SECOND);
    let before = read(path);
    path.run_until(end_s * SECOND);
    read(path).into_iter().zip(before).map(|(after, before)| (after - before) as f64).collect()
}

/// Share of the link, 1448 bytes of 1500 being payload.
fn utilisation(bytes: f64, seconds: u64) -> f64 {
    bytes * 8.0 * 1500.0 / 1448.0 / (RATE_BIT_S * seconds) as f64
}

#[test]
fn each_control_fills_a_link_with_a_buffer_of_its_product() {
    for control in ControlKind::all() {
        let mut path = downloads(bottleneck(33, LossSettings::None, WARNING), &[control]);
        let used = utilisation(goodput(&mut path, 1, 10, 60)[0], 50);
        assert!((0.95..1.001).contains(&used), "{control:?}: {used}");
    }
}

/// Slow start into a buffer of 60 loses some 60 packets of one window. NewReno repairs one a round trip, so that its
/// timer, which starts anew at the first of them only (RFC 6582, section 4), expires: once, not for ever.
#[test]
fn recovery_from_an_overshot_slow_start_does_not_begin_the_next() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        let sack = matches!(recovery, Recovery::Sack | Recovery::Rack);
        let ends = Settings { recovery, sack, ..settings(RENO) };
        let mut path = TestPath::new(vec![bottleneck(60, LossSettings::None, None)]);
        path.add(0, 0, [ends; 2], [Script::sender_for(ContentId(1), NEVER), Script::receiver()]);
        let used = utilisation(goodput(&mut path, 1, 10, 60)[0], 50);
        let timeouts = path.server_result(0).statistics.timeouts;
        assert!(timeouts <= 1 && used > 0.9, "{recovery:?}: {timeouts} timeouts, {used}");
    }
}

#[test]
fn two_flows_of_a_kind_share_fairly() {
    for control in ControlKind::all() {
        // Two BBR flows keep twice the product in flight, and bursts: a shorter buffer would lose for ever.
        let queue_packets = if control == kind("bbr") { 100 } else { 33 };
        let mut path = downloads(bottleneck(queue_packets, LossSettings::None, WARNING), &[control, control]);
        let shares = goodput(&mut path, 2, 60, 200);
        let sum = shares[0] + shares[1];
        let fairness = sum * sum / (2.0 * (shares[0] * shares[0] + shares[1] * shares[1])); // Jain's index
        assert!(fairness > 0.9, "{control:?}: {fairness} {shares:?}");
        let used = utilisation(sum, 140);
        assert!((0.95..1.001).contains(&used), "{control:?}: {used}");
    }
}

#[test]
fn cubic_is_friendly_to_reno_where_reno_does_well() {
    let mut path = downloads(bottleneck(33, LossSettings::None, None), &[kind("cubic-without-hystart"), RENO]);
    let shares = goodput(&mut path, 2, 60, 360);
    let share = shares[1] / (shares[0] + shares[1]);
    assert!((0.3..0.7).contains(&share), "{share}");
}

#[test]
fn hystart_leaves_slow_start_without_a_loss() {
    let retransmitted = |hystart| {
        let control = kind(if hystart { "cubic-hystart-plus-plus" } else { "cubic-without-hystart" });
        // From at most two products on, five rounds of conservative slow start open the window to 2 * 1.25^5 = 6.1 of
        // them: fewer than the 9 that the buffer holds.
        let mut path = downloads(bottleneck(300, LossSettings::None, None), &[control]);
        path.run_until(4 * SECOND);
        let threshold = path.server.connection(0).map_or(0, |connection| connection.slow_start_threshold());
        assert_ne!(threshold, u64::MAX, "slow start is over");
        path.server_result(0).statistics.retransmitted_segments
    };
    assert!(retransmitted(false) > 20);
    assert_eq!(retransmitted(true), 0);
}

#[test]
fn bbr_keeps_the_queue_short_where_reno_fills_it() {
    let round_trip = |control| {
        let mut path = downloads(bottleneck(300, LossSettings::None, None), &[control]);
        let mut longest = 0;
        for tenth in 100..190 {
            path.run_until(tenth * 100 * MILLISECOND);
            let connection = path.server.connection(0).expect("the flow");
            longest = longest.max(connection.smoothed_round_trip_time().unwrap_or(0));
        }
        longest
    };
    // Bandwidth and round trip need 40 ms; a probe of 5/4 for a round trip queues a quarter of that at most.
    assert!(round_trip(kind("bbr")) < 60 * MILLISECOND);
    assert!(round_trip(RENO) > 150 * MILLISECOND);
}

#[test]
fn bbr_and_jersey_do_not_mind_losses_that_are_not_congestion() {
    let used = |control| {
        let loss = LossSettings::Independent { probability: 0.01 };
        let mut path = downloads(bottleneck(100, loss, Some(10.0)), &[control]);
        utilisation(goodput(&mut path, 1, 10, 60)[0], 50)
    };
    let reno = used(RENO);
    assert!(reno < 0.5, "{reno}");
    for control in [kind("bbr"), kind("jersey")] {
        let share = used(control);
        assert!(share > 0.85, "{control:?}: {share}");
    }
}

#[test]
fn estimates_of_the_bandwidth_are_within_five_percent() {
    for control in [kind("bbr"), kind("jersey")] {
        let mut path = downloads(bottleneck(33, LossSettings::None, WARNING), &[control]);
        path.run_until(20 * SECOND);
        let connection = path.server.connection(0).expect("the flow");
        let estimate = connection.estimated_bandwidth_bytes_s().expect("a control that estimates");
        let payload_bytes_s = RATE_BIT_S / 8 * 1448 / 1500;
        assert!(estimate.abs_diff(payload_bytes_s) * 20 <= payload_bytes_s, "{control:?}: {estimate}");
    }
}

#[test]
fn jersey_counts_what_it_takes_for_link_errors() {
    let statistics = |loss, marking| {
        let mut path = downloads(bottleneck(33, loss, marking), &[kind("jersey")]);
        path.run_until(60 * SECOND);
        path.server_result(0).statistics
    };
    let lossy = LossSettings::Independent { probability: 0.01 };
    let corrupted = statistics(lossy, Some(10.0));
    let judged = corrupted.corruption_retransmits + corrupted.fast_retransmits;
    assert!(judged > 100 && corrupted.corruption_retransmits * 2 > judged, "{corrupted:?}");
    // Warned well before the buffer is full, it loses nothing after slow start.
    let warned = statistics(LossSettings::None, Some(10.0));
    assert!(warned.retransmitted_segments < 40, "{warned:?}");
    // Without routers that warn every loss is taken for a link error: the false detection that marks prevent.
    let unwarned = statistics(LossSettings::None, None);
    assert!(unwarned.corruption_retransmits > 0 && unwarned.fast_retransmits == 0, "{unwarned:?}");
}

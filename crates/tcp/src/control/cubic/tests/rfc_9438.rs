//! RFC 9438, with HyStart++ and without.

use super::super::{Cubic, Edition};
use crate::control::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings};
use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};

const SEGMENT: u64 = 1000;

fn cubic(window_segments: u64, threshold_bytes: u64, hystart: bool) -> Cubic {
    let settings = ControlSettings {
        maximum_segment_size: 1000,
        initial_window_bytes: window_segments * SEGMENT,
        initial_slow_start_threshold_bytes: threshold_bytes,
        byte_counting_limit_segments: None,
        is_paced: false,
    };
    Cubic::rfc_9438(&settings, hystart)
}

fn acknowledge(control: &mut Cubic, now: Nanoseconds, round_trip_time: Nanoseconds, is_window_limited: bool) {
    let acknowledged = Acknowledged {
        now,
        newly_acknowledged_bytes: SEGMENT,
        newly_delivered_bytes: SEGMENT,
        delivered_bytes: 0,
        in_flight_bytes: control.window_bytes(),
        round_trip_time: Some(round_trip_time),
        rate_sample: None,
        loss_sample: None,
        marked: false,
        in_recovery: false,
        is_window_limited,
    };
    control.on_acknowledged(&acknowledged);
}

/// A window's worth of ACKs, spread over the round trip that begins at `start`.
fn round(control: &mut Cubic, start: Nanoseconds, round_trip_time: Nanoseconds) {
    let segments = control.window_bytes() / SEGMENT;
    for index in 0..segments {
        acknowledge(control, start + index * round_trip_time / segments, round_trip_time, true);
    }
}

fn lose(control: &mut Cubic, cause: Cause, in_flight_bytes: u64) {
    control.on_congestion(&Congestion { now: 0, cause, in_flight_bytes, is_repeated: false });
}

#[test]
fn after_a_loss_the_window_follows_the_cubic_of_equation_1() {
    // W_max = 1000 segments, the window falls to 700, K = cbrt(300 / 0.4) = 9.0856 s.
    // By hand: W(t) = 0.4 (t - 9.0856)^3 + 1000.
    let table = [(4, 947.39), (6, 988.25), (8, 999.49), (10, 1000.31), (12, 1009.9), (14, 1047.5), (16, 1132.2)];
    let mut control = cubic(1000, 0, false);
    lose(&mut control, Cause::FastRetransmit, 1000 * SEGMENT);
    assert_eq!(control.window_bytes(), 700 * SEGMENT);
    let round_trip_time = 100 * MILLISECOND;
    let mut reached = Vec::new();
    for number in 0..160 {
        round(&mut control, number * round_trip_time, round_trip_time);
        if number >= 39 && (number + 1) % 20 == 0 {
            reached.push(control.window_bytes() as f64 / SEGMENT as f64);
        }
    }
    assert_eq!(table.len(), reached.len());
    for ((second, expected), window) in table.into_iter().zip(reached) {
        assert!((window - expected).abs() < 0.005 * expected, "{window} instead of {expected} after {second} s");
    }
}

#[test]
fn a_small_window_grows_as_a_reno_of_equal_mean_would() {
    // 20 segments over 10 ms: the cubic has 6 segments in 2.5 s to make up and stands still meanwhile.
    let mut control = cubic(20, 0, false);
    lose(&mut control, Cause::FastRetransmit, 20 * SEGMENT);
    for number in 0..10 {
        round(&mut control, number * 10 * MILLISECOND, 10 * MILLISECOND);
    }
    let alpha = 3.0 * 0.3 / 1.7;
    let friendly = 14.0 + 10.0 * alpha;
    let window = control.window_bytes() as f64 / SEGMENT as f64;
    assert!((window - friendly).abs() < 0.5, "{window} instead of {friendly}");
}

#[test]
fn the_friendly_estimate_grows_a_segment_a_round_once_it_is_back() {
    let mut control = cubic(20, 0, false);
    lose(&mut control, Cause::FastRetransmit, 20 * SEGMENT);
    let mut windows = Vec::new();
    for number in 0..40 {
        round(&mut control, number * 10 * MILLISECOND, 10 * MILLISECOND);
        windows.push(control.window_bytes() as f64 / SEGMENT as f64);
    }
    let slope = (windows[39] - windows[29]) / 10.0;
    assert!((slope - 1.0).abs() < 0.1, "{slope}");
}

#[test]
fn the_window_never_grows_by_more_than_half_a_round_trip() {
    let mut control = cubic(10, 0, false);
    lose(&mut control, Cause::FastRetransmit, 6 * SEGMENT);
    acknowledge(&mut control, 0, SECOND, true);
    let before = control.window;
    acknowledge(&mut control, 100 * SECOND, SECOND, true);
    assert!((control.window - before - 0.5).abs() < 1e-9, "half a segment for the ACK of a segment");
}

#[test]
fn a_flow_that_did_not_get_back_gives_up_part_of_its_plateau() {
    let mut control = cubic(100, 0, false);
    lose(&mut control, Cause::FastRetransmit, 100 * SEGMENT);
    assert_eq!(control.plateau, 100.0);
    lose(&mut control, Cause::FastRetransmit, 70 * SEGMENT);
    assert!((control.plateau - 70.0 * (1.0 + Edition::Rfc9438.decrease()) / 2.0).abs() < 1e-9);
}

#[test]
fn after_a_timeout_avoidance_starts_on_its_plateau() {
    let mut control = cubic(100, u64::MAX, false);
    lose(&mut control, Cause::Timeout, 100 * SEGMENT);
    assert_eq!((control.window_bytes(), control.slow_start_threshold_bytes()), (SEGMENT, 70 * SEGMENT));
    for number in 0..7 {
        round(&mut control, number * SECOND, SECOND);
    }
    let epoch = control.epoch.expect("a stage of avoidance");
    assert_eq!(epoch.plateau_s, 0.0);
    assert!((70.0..71.0).contains(&control.plateau), "{}", control.plateau);
}

#[test]
fn time_without_anything_to_send_does_not_count() {
    let mut idle = cubic(100, 0, false);
    let mut busy = cubic(100, 0, false);
    for control in [&mut idle, &mut busy] {
        lose(control, Cause::FastRetransmit, 100 * SEGMENT);
        acknowledge(control, 0, 100 * MILLISECOND, true);
    }
    for second in 1..=50 {
        acknowledge(&mut idle, second * SECOND, 100 * MILLISECOND, false);
    }
    acknowledge(&mut idle, 50 * SECOND + 100 * MILLISECOND, 100 * MILLISECOND, true);
    acknowledge(&mut busy, 100 * MILLISECOND, 100 * MILLISECOND, true);
    assert_eq!(idle.window_bytes(), busy.window_bytes());
}

#[test]
fn hystart_ends_slow_start_before_a_loss() {
    let mut plain = cubic(10, u64::MAX, false);
    let mut careful = cubic(10, u64::MAX, true);
    for control in [&mut plain, &mut careful] {
        for number in 0..14 {
            let queueing = if number < 3 { 0 } else { (number - 2) * 8 * MILLISECOND };
            round(control, number * 200 * MILLISECOND, 40 * MILLISECOND + queueing);
        }
    }
    assert_eq!(plain.slow_start_threshold_bytes(), u64::MAX);
    assert!(careful.slow_start_threshold_bytes() < plain.window_bytes() / 4);
    assert!(careful.window_bytes() >= careful.slow_start_threshold_bytes());
}

#[test]
fn the_threshold_is_never_below_two_segments() {
    let mut control = cubic(1, u64::MAX, false);
    lose(&mut control, Cause::FastRetransmit, SEGMENT);
    assert_eq!(control.slow_start_threshold_bytes(), 2 * SEGMENT);
}

//! CUBIC as Linux has it.

use super::super::{Cubic, Edition};
use crate::control::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings};
use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};

const SEGMENT: u64 = 1000;

fn cubic(window_segments: u64, threshold_bytes: u64) -> Cubic {
    Cubic::linux(&ControlSettings {
        maximum_segment_size: 1000,
        initial_window_bytes: window_segments * SEGMENT,
        initial_slow_start_threshold_bytes: threshold_bytes,
        byte_counting_limit_segments: None,
        is_paced: false,
    })
}

/// A window's worth of ACKs of two segments, spread over the round trip that begins at `start`.
fn round(control: &mut Cubic, start: Nanoseconds, round_trip_time: Nanoseconds) {
    let acks = control.window_bytes() / SEGMENT / 2;
    for index in 0..acks {
        control.on_acknowledged(&Acknowledged {
            now: start + index * round_trip_time / acks,
            newly_acknowledged_bytes: 2 * SEGMENT,
            newly_delivered_bytes: 2 * SEGMENT,
            delivered_bytes: 0,
            in_flight_bytes: control.window_bytes(),
            round_trip_time: Some(round_trip_time),
            rate_sample: None,
            loss_sample: None,
            marked: false,
            in_recovery: false,
            is_window_limited: true,
        });
    }
}

fn lose(control: &mut Cubic, cause: Cause) {
    let in_flight_bytes = control.window_bytes();
    control.on_congestion(&Congestion { now: 0, cause, in_flight_bytes, is_repeated: false });
}

fn segments(control: &Cubic) -> f64 {
    control.window_bytes() as f64 / SEGMENT as f64
}

#[test]
fn slow_start_doubles_however_few_the_acknowledgements() {
    let mut control = cubic(4, u64::MAX);
    for (number, expected) in [8, 16].into_iter().enumerate() {
        round(&mut control, number as u64 * SECOND, SECOND);
        assert_eq!(control.window_bytes(), expected * SEGMENT);
    }
}

#[test]
fn without_a_loss_the_window_opens_by_a_twentieth_a_round() {
    let mut control = cubic(100, 100 * SEGMENT);
    for number in 0..10 {
        round(&mut control, number * 10 * MILLISECOND, 10 * MILLISECOND);
    }
    let expected = 100.0 * 1.05f64.powi(10);
    assert!((segments(&control) - expected).abs() < 0.01 * expected, "{}", segments(&control));
}

#[test]
fn after_a_loss_the_window_follows_the_function() {
    // 1000 segments fall to 700, K = cbrt(300 / 0.4) = 9.08 s: W(t) = 0.4 (t - 9.08)^3 + 1000.
    let table = [(4, 947.4), (6, 988.3), (8, 999.5), (10, 1000.3), (12, 1009.9), (14, 1047.5)];
    let mut control = cubic(1000, 0);
    lose(&mut control, Cause::FastRetransmit);
    assert!((segments(&control) - 1000.0 * Edition::Linux.decrease()).abs() < 1.0);
    let mut reached = Vec::new();
    for number in 0..140 {
        round(&mut control, number * 100 * MILLISECOND, 100 * MILLISECOND);
        if number >= 39 && (number + 1) % 20 == 0 {
            reached.push(segments(&control));
        }
    }
    for ((second, expected), window) in table.into_iter().zip(reached) {
        assert!((window - expected).abs() < 0.005 * expected, "{window} instead of {expected} after {second} s");
    }
}

#[test]
fn a_small_window_grows_by_eight_fifteenths_of_a_segment_a_round() {
    let mut control = cubic(20, 0);
    lose(&mut control, Cause::FastRetransmit);
    for number in 0..30 {
        round(&mut control, number * 10 * MILLISECOND, 10 * MILLISECOND);
    }
    let expected = 14.0 + 30.0 * 8.0 / 15.0;
    assert!((segments(&control) - expected).abs() < 1.5, "{} instead of {expected}", segments(&control));
}

#[test]
fn a_flow_that_did_not_get_back_gives_up_part_of_its_plateau() {
    let mut control = cubic(100, 0);
    lose(&mut control, Cause::FastRetransmit);
    lose(&mut control, Cause::FastRetransmit);
    assert!(
        (control.plateau - 100.0 * Edition::Linux.decrease() * (1.0 + Edition::Linux.decrease()) / 2.0).abs() < 1e-9
    );
}

#[test]
fn after_a_timeout_slow_start_goes_to_the_threshold_and_the_plateau_is_forgotten() {
    let mut control = cubic(100, u64::MAX);
    lose(&mut control, Cause::Timeout);
    assert_eq!(control.window_bytes(), SEGMENT);
    assert_eq!(control.slow_start_threshold_bytes(), (100.0 * Edition::Linux.decrease() * SEGMENT as f64) as u64);
    assert_eq!(control.plateau, 0.0);
}

#[test]
fn growing_round_trips_end_slow_start_before_a_loss() {
    let mut control = cubic(10, u64::MAX);
    for number in 0..8 {
        let queueing = if number < 3 { 0 } else { (number - 2) * 8 * MILLISECOND };
        round(&mut control, number * 200 * MILLISECOND, 40 * MILLISECOND + queueing);
    }
    assert!(control.slow_start_threshold_bytes() <= 160 * SEGMENT, "{}", control.slow_start_threshold_bytes());
}

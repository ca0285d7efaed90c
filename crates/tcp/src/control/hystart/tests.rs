//! Both rules, round by round.

use super::{Acknowledged, Hystart, HystartPlusPlus};
use pepscope_path::{Nanoseconds, MILLISECOND};

const SEGMENT: u64 = 1000;

/// A round of `segments` ACKs from `start` on, `spacing` apart, that all took `round_trip_time`; the number of the
/// one that ended slow start.
fn round(
    hystart: &mut Hystart,
    start: Nanoseconds,
    segments: u64,
    spacing: Nanoseconds,
    round_trip_time: Nanoseconds,
) -> Option<u64> {
    (0..segments).find(|index| {
        let acknowledged = Acknowledged {
            now: start + index * spacing,
            newly_acknowledged_bytes: SEGMENT,
            newly_delivered_bytes: SEGMENT,
            delivered_bytes: 0,
            in_flight_bytes: segments * SEGMENT,
            round_trip_time: Some(round_trip_time),
            rate_sample: None,
            loss_sample: None,
            marked: false,
            in_recovery: false,
            is_window_limited: true,
        };
        hystart.count(&acknowledged);
        hystart.sample(round_trip_time);
        let rate_bytes_s = (segments * SEGMENT) as f64 * 1e9 / round_trip_time as f64;
        hystart.ends_slow_start(&acknowledged, round_trip_time, segments as f64, rate_bytes_s)
    })
}

#[test]
fn a_train_longer_than_half_the_shortest_round_trip_ends_slow_start() {
    let mut hystart = Hystart::default();
    // 20 ACKs a millisecond apart last 19 ms: (40 + 1) / 2 = 20.5 ms are not reached.
    assert_eq!(round(&mut hystart, 0, 20, MILLISECOND, 40 * MILLISECOND), None);
    // The 22nd is 21 ms after the first.
    assert_eq!(round(&mut hystart, 40 * MILLISECOND, 40, MILLISECOND, 40 * MILLISECOND), Some(21));
}

#[test]
fn acknowledgements_further_apart_are_no_train() {
    let mut hystart = Hystart::default();
    assert_eq!(round(&mut hystart, 0, 40, 2 * MILLISECOND + 1, 40 * MILLISECOND), None);
}

#[test]
fn batches_of_a_fast_sender_are_allowed_for_by_what_they_take() {
    let mut hystart = Hystart::default();
    // 5 ms and 4,000 segments: 800 MB/s, whose batches take 2 * 65536 / 800e6 = 164 us; the train may last 2.58 ms.
    let spacing = 10_000;
    assert_eq!(round(&mut hystart, 0, 4_000, spacing, 5 * MILLISECOND), Some(259));
}

#[test]
fn round_trips_an_eighth_longer_end_slow_start_at_the_ninth() {
    let mut hystart = Hystart::default();
    let spacing = MILLISECOND / 100;
    assert_eq!(round(&mut hystart, 0, 20, spacing, 80 * MILLISECOND), None);
    assert_eq!(round(&mut hystart, 100 * MILLISECOND, 20, spacing, 90 * MILLISECOND), None);
    assert_eq!(round(&mut hystart, 200 * MILLISECOND, 20, spacing, 90 * MILLISECOND + 1), Some(8));
}

#[test]
fn the_threshold_is_between_4_and_16_milliseconds() {
    for (shortest_ms, threshold_ms) in [(8, 4), (800, 16)] {
        let mut hystart = Hystart::default();
        let (shortest, longer) = (shortest_ms * MILLISECOND, (shortest_ms + threshold_ms) * MILLISECOND);
        let spacing = MILLISECOND / 100;
        assert_eq!(round(&mut hystart, 0, 20, spacing, shortest), None);
        assert_eq!(round(&mut hystart, 100 * MILLISECOND, 20, spacing, longer), None);
        assert_eq!(round(&mut hystart, 200 * MILLISECOND, 20, spacing, longer + 1), Some(8));
    }
}

#[test]
fn windows_below_sixteen_segments_do_not_end_slow_start() {
    let mut hystart = Hystart::default();
    assert_eq!(round(&mut hystart, 0, 15, 2 * MILLISECOND, 10 * MILLISECOND), None);
    assert_eq!(round(&mut hystart, 30 * MILLISECOND, 15, 2 * MILLISECOND, 100 * MILLISECOND), None);
}

#[test]
fn a_restart_resets_the_shortest_round_trip() {
    let mut hystart = Hystart::default();
    round(&mut hystart, 0, 20, 1000, 40 * MILLISECOND);
    hystart.restart(50 * MILLISECOND, 0);
    assert_eq!(hystart.shortest_ns(), None);
    assert_eq!(round(&mut hystart, 100 * MILLISECOND, 20, 1000, 90 * MILLISECOND), None);
    assert_eq!(hystart.shortest_ns(), Some(90 * MILLISECOND));
}

/// A round of `segments` ACKs that all took `round_trip_time`; the bytes by which the window opened.
fn plus_plus_round(hystart: &mut HystartPlusPlus, segments: u64, round_trip_time: Nanoseconds) -> u64 {
    (0..segments)
        .map(|_| {
            let acknowledged = Acknowledged {
                now: 0,
                newly_acknowledged_bytes: SEGMENT,
                newly_delivered_bytes: SEGMENT,
                delivered_bytes: 0,
                in_flight_bytes: segments * SEGMENT,
                round_trip_time: Some(round_trip_time),
                rate_sample: None,
                loss_sample: None,
                marked: false,
                in_recovery: false,
                is_window_limited: true,
            };
            hystart.on_acknowledged(&acknowledged, SEGMENT)
        })
        .sum()
}

#[test]
fn equal_round_trips_open_a_segment_an_acknowledgement() {
    let mut hystart = HystartPlusPlus::default();
    for _ in 0..20 {
        assert_eq!(plus_plus_round(&mut hystart, 16, 40 * MILLISECOND), 16 * SEGMENT);
    }
    assert!(!hystart.is_done());
}

#[test]
fn a_round_trip_an_eighth_longer_slows_the_opening_to_a_quarter_for_five_rounds() {
    let mut hystart = HystartPlusPlus::default();
    plus_plus_round(&mut hystart, 16, 40 * MILLISECOND);
    // The eighth sample decides: eight segments at once, eight at a quarter.
    assert_eq!(plus_plus_round(&mut hystart, 16, 45 * MILLISECOND), (7 * 4 + 9) * SEGMENT / 4);
    for _ in 0..4 {
        assert!(!hystart.is_done());
        assert_eq!(plus_plus_round(&mut hystart, 16, 46 * MILLISECOND), 16 * SEGMENT / 4);
    }
    plus_plus_round(&mut hystart, 16, 46 * MILLISECOND);
    assert!(hystart.is_done());
}

#[test]
fn a_shorter_round_trip_takes_the_alarm_back() {
    let mut hystart = HystartPlusPlus::default();
    plus_plus_round(&mut hystart, 16, 40 * MILLISECOND);
    plus_plus_round(&mut hystart, 16, 45 * MILLISECOND);
    plus_plus_round(&mut hystart, 16, 40 * MILLISECOND);
    assert_eq!(plus_plus_round(&mut hystart, 16, 40 * MILLISECOND), 16 * SEGMENT);
    assert!(!hystart.is_done());
}

#[test]
fn seven_samples_are_not_enough() {
    let mut hystart = HystartPlusPlus::default();
    plus_plus_round(&mut hystart, 7, 40 * MILLISECOND);
    assert_eq!(plus_plus_round(&mut hystart, 7, 80 * MILLISECOND), 7 * SEGMENT);
}

use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};

use super::{Bbr3, Bbr3State, MINIMUM_WINDOW_SEGMENTS};
use crate::control::ideal_path::{IdealPath, RATE_BYTES_S, ROUND_TRIP, SEGMENT};
use crate::control::{Cause, Congestion, CongestionControl};

fn path() -> IdealPath<Bbr3, Bbr3State> {
    IdealPath::new(Bbr3::new, Bbr3::state)
}

/// What the path holds without a queue.
const PRODUCT: u64 = RATE_BYTES_S * ROUND_TRIP / SECOND;

#[test]
fn the_states_follow_each_other_as_drawn() {
    let mut path = path();
    path.run_until(30 * SECOND);
    use Bbr3State::{Cruise, Down, Drain, ProbeRoundTrip, Refill, Startup, Up};
    // Where draining is enough, the first DOWN lasts no time.
    let states: Vec<Bbr3State> = path.states.iter().map(|(_, state)| *state).collect();
    assert_eq!(states[..6], [Startup, Drain, Cruise, Refill, Up, Down], "{states:?}");
    for pair in path.states.windows(2) {
        let allowed: &[Bbr3State] = match pair[0].1 {
            Startup => &[Drain, ProbeRoundTrip],
            Drain => &[Down, Cruise, ProbeRoundTrip],
            Down => &[Cruise, Refill, ProbeRoundTrip],
            Cruise => &[Refill, ProbeRoundTrip],
            Refill => &[Up, ProbeRoundTrip],
            Up => &[Down, ProbeRoundTrip],
            ProbeRoundTrip => &[Cruise],
        };
        assert!(allowed.contains(&pair[1].1), "{pair:?}");
        let lasted = pair[1].0 - pair[0].0;
        match pair[0].1 {
            ProbeRoundTrip => assert!((200 * MILLISECOND..400 * MILLISECOND).contains(&lasted), "{lasted}"),
            Refill => assert!(lasted < 2 * ROUND_TRIP, "{lasted}"),
            _ => {}
        }
    }
    let probes: Vec<Nanoseconds> =
        path.states.iter().filter(|(_, state)| *state == ProbeRoundTrip).map(|(time, _)| *time).collect();
    assert!(probes.windows(2).all(|pair| (5 * SECOND..6 * SECOND).contains(&(pair[1] - pair[0]))), "{probes:?}");
}

#[test]
fn it_probes_for_bandwidth_every_two_to_three_seconds_or_as_often_as_reno_would() {
    let mut path = path();
    path.run_until(20 * SECOND);
    let ups: Vec<Nanoseconds> =
        path.states.iter().filter(|(_, state)| *state == Bbr3State::Up).map(|(time, _)| *time).collect();
    assert!(ups.len() > 4);
    // 50 segments in flight: Reno would be back after 50 rounds of some 41 ms, so after two seconds.
    assert!(ups.windows(2).all(|pair| (SECOND..4 * SECOND).contains(&(pair[1] - pair[0]))), "{ups:?}");
}

#[test]
fn the_bottleneck_is_known_within_five_percent_and_used_but_for_its_margin() {
    let mut path = path();
    path.run_until(2 * SECOND);
    let before = path.delivered_bytes;
    for tenth in 21..=90 {
        path.run_until(tenth * 100 * MILLISECOND);
        let estimate = path.bandwidth_bytes_s();
        assert!(estimate.abs_diff(RATE_BYTES_S) * 20 <= RATE_BYTES_S, "{estimate}");
    }
    let used = (path.delivered_bytes - before) as f64 / (7.0 * RATE_BYTES_S as f64);
    assert!(used > 0.94, "{used}");
}

#[test]
fn cruising_keeps_the_queue_short() {
    let mut path = path();
    path.run_until(3 * SECOND);
    let (mut cruising, mut queued) = (0, 0);
    for _ in 0..10_000 {
        path.run_until(path.now + MILLISECOND);
        if path.control.state() == Bbr3State::Cruise {
            (cruising, queued) = (cruising + 1, queued + path.queue_ns());
        }
    }
    assert!(cruising > 1000 && queued / cruising < ROUND_TRIP / 5, "{queued} / {cruising}");
}

#[test]
fn a_short_buffer_bounds_what_is_in_flight() {
    let mut path = path();
    path.longest_queue_ns = ROUND_TRIP / 4;
    path.run_until(10 * SECOND);
    let high = path.control.highest_in_flight_bytes().expect("losses set a bound");
    assert!((PRODUCT / 2..PRODUCT * 2).contains(&high), "{high} of {PRODUCT}");
    let before = path.delivered_bytes;
    path.run_until(20 * SECOND);
    let used = (path.delivered_bytes - before) as f64 / (10.0 * RATE_BYTES_S as f64);
    assert!(used > 0.85, "{used}");
}

#[test]
fn a_timeout_leaves_one_segment_until_all_that_was_in_flight_is_delivered() {
    let mut path = path();
    path.run_until(3 * SECOND);
    let before = path.control.window_bytes();
    let congestion = Congestion {
        now: path.now,
        cause: Cause::Timeout,
        in_flight_bytes: path.in_flight_bytes(),
        is_repeated: false,
    };
    path.control.on_congestion(&congestion);
    assert_eq!(path.control.window_bytes(), SEGMENT);
    path.run_until(path.now + 2 * ROUND_TRIP);
    assert!(path.control.window_bytes() >= before * 9 / 10);
}

#[test]
fn a_spurious_timeout_gives_the_window_back() {
    let mut path = path();
    path.run_until(3 * SECOND);
    let before = path.control.window_bytes();
    let congestion = Congestion {
        now: path.now,
        cause: Cause::Timeout,
        in_flight_bytes: path.in_flight_bytes(),
        is_repeated: false,
    };
    path.control.on_congestion(&congestion);
    path.control.on_spurious_congestion(before, u64::MAX);
    assert_eq!(path.control.window_bytes(), before);
    assert!(before > MINIMUM_WINDOW_SEGMENTS * SEGMENT);
}

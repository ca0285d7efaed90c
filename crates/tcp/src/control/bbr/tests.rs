use pepscope_path::{Nanoseconds, MILLISECOND, NEVER, SECOND};

use super::{Bbr, BbrState};
use crate::control::ideal_path::{IdealPath, RATE_BYTES_S, ROUND_TRIP, SEGMENT};
use crate::control::{Cause, Congestion, CongestionControl};

fn path() -> IdealPath<Bbr, BbrState> {
    IdealPath::new(Bbr::new, Bbr::state)
}

#[test]
fn the_states_follow_each_other_as_drawn() {
    let mut path = path();
    path.run_until(25 * SECOND);
    let states: Vec<BbrState> = path.states.iter().map(|(_, state)| *state).collect();
    use BbrState::{Drain, ProbeBandwidth, ProbeRoundTrip, Startup};
    assert_eq!(
        states,
        [Startup, Drain, ProbeBandwidth, ProbeRoundTrip, ProbeBandwidth, ProbeRoundTrip, ProbeBandwidth]
    );
    for pair in path.states.windows(2) {
        let lasted = pair[1].0 - pair[0].0;
        match pair[0].1 {
            // Three doublings of 10 segments pass the 51 of the path in a round trip each; a round to measure it and
            // three that find no growth take as long as the queue of a window of 2.89 products makes them.
            Startup => assert!(lasted < 3 * ROUND_TRIP + 4 * 289 * ROUND_TRIP / 100, "{lasted}"),
            Drain => assert!(lasted < 4 * ROUND_TRIP, "{lasted}"),
            // The shortest round trip may be seen once more in the first cycle.
            ProbeBandwidth => assert!(lasted <= 10 * SECOND + 9 * ROUND_TRIP, "{lasted}"),
            ProbeRoundTrip => assert!((200 * MILLISECOND..400 * MILLISECOND).contains(&lasted), "{lasted}"),
        }
    }
    let probes: Vec<Nanoseconds> =
        path.states.iter().filter(|(_, state)| *state == ProbeRoundTrip).map(|(time, _)| *time).collect();
    let apart = probes[1] - probes[0];
    assert!((10 * SECOND..11 * SECOND).contains(&apart), "{apart}");
}

#[test]
fn the_bottleneck_is_known_within_five_percent_and_used() {
    let mut path = path();
    path.run_until(2 * SECOND);
    let before = path.delivered_bytes;
    for tenth in 21..=90 {
        path.run_until(tenth * 100 * MILLISECOND);
        let estimate = path.bandwidth_bytes_s();
        assert!(estimate.abs_diff(RATE_BYTES_S) * 20 <= RATE_BYTES_S, "{estimate}");
    }
    let used = (path.delivered_bytes - before) as f64 / (7.0 * RATE_BYTES_S as f64);
    assert!(used > 0.95, "{used}");
    let shortest = path.control.minimum_round_trip_ns();
    assert!(shortest.abs_diff(ROUND_TRIP + SEGMENT * SECOND / RATE_BYTES_S) < MILLISECOND, "{shortest}");
}

#[test]
fn the_queue_of_startup_is_drained() {
    let mut path = path();
    let mut longest = 0;
    while path.control.state() != BbrState::ProbeBandwidth {
        path.run_until(path.now + MILLISECOND);
        longest = longest.max(path.queue_ns());
    }
    assert!(longest > ROUND_TRIP / 2, "start-up fills the queue: {longest}");
    let mut shortest = NEVER;
    for _ in 0..(8 * ROUND_TRIP / MILLISECOND) {
        path.run_until(path.now + MILLISECOND);
        shortest = shortest.min(path.queue_ns());
    }
    // One product and three bursts of two segments may stay in flight: 4.8 ms of queue.
    assert!(shortest < 5 * MILLISECOND, "{shortest}");
}

#[test]
fn probing_the_round_trip_leaves_four_segments_in_flight() {
    let mut path = path();
    while path.control.state() != BbrState::ProbeRoundTrip {
        path.run_until(path.now + MILLISECOND);
    }
    path.run_until(path.now + 2 * ROUND_TRIP);
    assert_eq!(path.control.state(), BbrState::ProbeRoundTrip);
    assert!(path.in_flight_bytes() <= 4 * SEGMENT);
    let known = path.bandwidth_bytes_s();
    path.run_until(path.now + SECOND);
    assert_eq!(path.control.state(), BbrState::ProbeBandwidth);
    assert!(path.bandwidth_bytes_s() * 20 >= known * 19, "the probe does not lower the estimate");
}

#[test]
fn a_loss_conserves_packets_for_a_round_and_the_window_comes_back() {
    let mut path = path();
    path.run_until(3 * SECOND);
    let before = path.control.window_bytes();
    let in_flight_bytes = path.in_flight_bytes();
    path.control.on_congestion(&Congestion {
        now: path.now,
        cause: Cause::FastRetransmit,
        in_flight_bytes,
        is_repeated: false,
    });
    assert!(path.control.window_bytes() <= in_flight_bytes);
    path.run_until(path.now + 2 * ROUND_TRIP);
    path.control.on_recovery_ended(path.now, path.in_flight_bytes());
    assert!(path.control.window_bytes() >= before * 9 / 10);
    assert_eq!(path.control.slow_start_threshold_bytes(), u64::MAX);
}

#[test]
fn a_timeout_leaves_one_segment_until_all_that_was_in_flight_is_delivered() {
    let mut path = path();
    path.run_until(3 * SECOND);
    let before = path.control.window_bytes();
    let in_flight_bytes = path.in_flight_bytes();
    path.control.on_congestion(&Congestion {
        now: path.now,
        cause: Cause::Timeout,
        in_flight_bytes,
        is_repeated: false,
    });
    assert_eq!(path.control.window_bytes(), SEGMENT);
    let delivered = path.delivered_bytes;
    while path.delivered_bytes < delivered + in_flight_bytes - SEGMENT {
        path.run_until(path.now + MILLISECOND / 2);
        assert!(path.control.window_bytes() <= before);
    }
    path.run_until(path.now + 2 * MILLISECOND);
    assert!(path.control.window_bytes() >= before * 9 / 10);
}

#[test]
fn a_mark_changes_nothing() {
    let mut path = path();
    path.run_until(SECOND);
    let before = path.control.window_bytes();
    let congestion =
        Congestion { now: path.now, cause: Cause::Mark, in_flight_bytes: path.in_flight_bytes(), is_repeated: false };
    path.control.on_congestion(&congestion);
    assert_eq!(path.control.window_bytes(), before);
}

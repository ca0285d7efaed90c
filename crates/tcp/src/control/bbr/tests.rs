use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER, SECOND};

use super::{Bbr, BbrState};
use crate::control::{Acknowledged, Cause, Congestion, CongestionControl, ControlSettings, RateSample};

const SEGMENT: u64 = 1000;
const RATE_BYTES_S: u64 = 1_250_000; // 10 Mbit/s: a segment takes 0.8 ms
const ROUND_TRIP: Nanoseconds = 40 * MILLISECOND;

struct InFlight {
    sent_ns: Nanoseconds,
    acknowledged_ns: Nanoseconds,
    delivered_when_sent: u64,
    delivered_ns_when_sent: Nanoseconds,
    first_sent_ns: Nanoseconds,
}

/// An ideal path with a queue without end, and a sender that does as the control says.
struct IdealPath {
    control: Bbr,
    now: Nanoseconds,
    next_send_ns: Nanoseconds,
    link_free_ns: Nanoseconds,
    flight: VecDeque<InFlight>,
    delivered_bytes: u64,
    delivered_ns: Nanoseconds,
    first_sent_ns: Nanoseconds,
    /// Each state with when it began.
    states: Vec<(Nanoseconds, BbrState)>,
}

impl IdealPath {
    fn new() -> Self {
        let settings = ControlSettings {
            maximum_segment_size: SEGMENT as u32,
            initial_window_bytes: 10 * SEGMENT,
            initial_slow_start_threshold_bytes: u64::MAX,
            byte_counting_limit_segments: None,
            is_paced: false,
        };
        Self {
            control: Bbr::new(&settings),
            now: 0,
            next_send_ns: 0,
            link_free_ns: 0,
            flight: VecDeque::new(),
            delivered_bytes: 0,
            delivered_ns: 0,
            first_sent_ns: 0,
            states: vec![(0, BbrState::Startup)],
        }
    }

    fn in_flight_bytes(&self) -> u64 {
        self.flight.len() as u64 * SEGMENT
    }

    fn bandwidth_bytes_s(&self) -> u64 {
        self.control.estimated_bandwidth_bytes_s().expect("an estimate")
    }

    fn queue_ns(&self) -> Nanoseconds {
        self.link_free_ns.saturating_sub(self.now)
    }

    fn run_until(&mut self, end: Nanoseconds) {
        loop {
            let may_send = self.in_flight_bytes() + SEGMENT <= self.control.window_bytes();
            let send_ns = if may_send { self.next_send_ns.max(self.now) } else { NEVER };
            let acknowledged_ns = self.flight.front().map_or(NEVER, |segment| segment.acknowledged_ns);
            let next_ns = send_ns.min(acknowledged_ns);
            if next_ns > end {
                self.now = end;
                return;
            }
            self.now = next_ns;
            if acknowledged_ns <= send_ns {
                self.acknowledge();
            } else {
                self.send();
            }
        }
    }

    fn send(&mut self) {
        self.control.on_sent(self.now, self.in_flight_bytes(), SEGMENT as u32);
        if self.flight.is_empty() {
            (self.first_sent_ns, self.delivered_ns) = (self.now, self.now);
        }
        self.link_free_ns = self.link_free_ns.max(self.now) + SEGMENT * SECOND / RATE_BYTES_S;
        self.flight.push_back(InFlight {
            sent_ns: self.now,
            acknowledged_ns: self.link_free_ns + ROUND_TRIP,
            delivered_when_sent: self.delivered_bytes,
            delivered_ns_when_sent: self.delivered_ns,
            first_sent_ns: self.first_sent_ns,
        });
        let pace = self.control.pacing_rate_bytes_s().expect("a paced control");
        self.next_send_ns = self.now + SEGMENT * SECOND / pace;
    }

    fn acknowledge(&mut self) {
        let in_flight_bytes = self.in_flight_bytes();
        let segment = self.flight.pop_front().expect("a segment in flight");
        self.delivered_bytes += SEGMENT;
        self.delivered_ns = self.now;
        self.first_sent_ns = segment.sent_ns;
        let interval_ns =
            (segment.sent_ns - segment.first_sent_ns).max(self.now - segment.delivered_ns_when_sent).max(1);
        let delivered = self.delivered_bytes - segment.delivered_when_sent;
        self.control.on_acknowledged(&Acknowledged {
            now: self.now,
            newly_acknowledged_bytes: SEGMENT,
            newly_delivered_bytes: SEGMENT,
            delivered_bytes: self.delivered_bytes,
            in_flight_bytes,
            round_trip_time: Some(self.now - segment.sent_ns),
            rate_sample: Some(RateSample {
                delivery_rate_bytes_s: delivered * SECOND / interval_ns,
                is_application_limited: false,
                delivered_bytes_when_sent: segment.delivered_when_sent,
            }),
            marked: false,
            in_recovery: false,
            is_window_limited: true,
        });
        let state = self.control.state();
        if self.states.last().is_some_and(|(_, last)| *last != state) {
            self.states.push((self.now, state));
        }
    }
}

#[test]
fn the_states_follow_each_other_as_drawn() {
    let mut path = IdealPath::new();
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
    let mut path = IdealPath::new();
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
    let mut path = IdealPath::new();
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
    let mut path = IdealPath::new();
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
    let mut path = IdealPath::new();
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
    let mut path = IdealPath::new();
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
    let mut path = IdealPath::new();
    path.run_until(SECOND);
    let before = path.control.window_bytes();
    let congestion =
        Congestion { now: path.now, cause: Cause::Mark, in_flight_bytes: path.in_flight_bytes(), is_repeated: false };
    path.control.on_congestion(&congestion);
    assert_eq!(path.control.window_bytes(), before);
}

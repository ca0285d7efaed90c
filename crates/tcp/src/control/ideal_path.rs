//! An ideal path for tests of controls that pace: a queue without end, and a sender that does as the control says.

use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER, SECOND};

use super::{Acknowledged, CongestionControl, ControlSettings, LossSample, RateSample};

pub(super) const SEGMENT: u64 = 1000;
pub(super) const RATE_BYTES_S: u64 = 1_250_000; // 10 Mbit/s: a segment takes 0.8 ms
pub(super) const ROUND_TRIP: Nanoseconds = 40 * MILLISECOND;

struct InFlight {
    sent_ns: Nanoseconds,
    acknowledged_ns: Nanoseconds,
    delivered_when_sent: u64,
    delivered_ns_when_sent: Nanoseconds,
    first_sent_ns: Nanoseconds,
    in_flight_bytes: u64,
    lost_when_sent: u64,
}

/// The path with its sender; `S` is what states the control has.
pub(super) struct IdealPath<C, S> {
    pub control: C,
    state: fn(&C) -> S,
    pub now: Nanoseconds,
    next_send_ns: Nanoseconds,
    link_free_ns: Nanoseconds,
    flight: VecDeque<InFlight>,
    pub delivered_bytes: u64,
    lost_bytes: u64,
    /// Segments that find a longer queue than this are lost; the ACK of the next one shows it.
    pub longest_queue_ns: Nanoseconds,
    pending_loss: Option<LossSample>,
    delivered_ns: Nanoseconds,
    first_sent_ns: Nanoseconds,
    /// Each state with when it began.
    pub states: Vec<(Nanoseconds, S)>,
}

impl<C: CongestionControl, S: Copy + PartialEq> IdealPath<C, S> {
    pub fn new(build: fn(&ControlSettings) -> C, state: fn(&C) -> S) -> Self {
        let settings = ControlSettings {
            maximum_segment_size: SEGMENT as u32,
            initial_window_bytes: 10 * SEGMENT,
            initial_slow_start_threshold_bytes: u64::MAX,
            byte_counting_limit_segments: None,
            is_paced: false,
        };
        let control = build(&settings);
        Self {
            states: vec![(0, state(&control))],
            control,
            state,
            lost_bytes: 0,
            longest_queue_ns: NEVER,
            pending_loss: None,
            now: 0,
            next_send_ns: 0,
            link_free_ns: 0,
            flight: VecDeque::new(),
            delivered_bytes: 0,
            delivered_ns: 0,
            first_sent_ns: 0,
        }
    }

    pub fn in_flight_bytes(&self) -> u64 {
        self.flight.len() as u64 * SEGMENT
    }

    pub fn bandwidth_bytes_s(&self) -> u64 {
        self.control.estimated_bandwidth_bytes_s().expect("an estimate")
    }

    pub fn queue_ns(&self) -> Nanoseconds {
        self.link_free_ns.saturating_sub(self.now)
    }

    pub fn run_until(&mut self, end: Nanoseconds) {
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
        let pace = self.control.pacing_rate_bytes_s().expect("a paced control");
        self.next_send_ns = self.now + SEGMENT * SECOND / pace;
        if self.queue_ns() > self.longest_queue_ns {
            self.lost_bytes += SEGMENT;
            let known = self.pending_loss.map_or(0, |loss| loss.newly_lost_bytes);
            self.pending_loss = Some(LossSample {
                newly_lost_bytes: known + SEGMENT,
                in_flight_bytes_when_sent: self.in_flight_bytes() + SEGMENT,
                lost_bytes: known + SEGMENT,
                is_application_limited: false,
            });
            return;
        }
        self.link_free_ns = self.link_free_ns.max(self.now) + SEGMENT * SECOND / RATE_BYTES_S;
        let in_flight_bytes = self.in_flight_bytes() + SEGMENT;
        self.flight.push_back(InFlight {
            sent_ns: self.now,
            acknowledged_ns: self.link_free_ns + ROUND_TRIP,
            delivered_when_sent: self.delivered_bytes,
            delivered_ns_when_sent: self.delivered_ns,
            first_sent_ns: self.first_sent_ns,
            in_flight_bytes,
            lost_when_sent: self.lost_bytes,
        });
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
                in_flight_bytes_when_sent: segment.in_flight_bytes,
                lost_bytes: self.lost_bytes - segment.lost_when_sent,
            }),
            loss_sample: self.pending_loss.take(),
            marked: false,
            in_recovery: false,
            is_window_limited: true,
        });
        let state = (self.state)(&self.control);
        if self.states.last().is_some_and(|(_, last)| *last != state) {
            self.states.push((self.now, state));
        }
    }
}

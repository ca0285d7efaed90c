//! Segments that a middlebox has acknowledged and must bring to their receiver: congestion window, SACK, timer.
//!
//! First copies leave as they came, in the order of the stream. Loss is three segments reported above (RFC 6675) or
//! the timer (RFC 6298). What is sent again bears the highest timestamp passed on, or its receiver would take it for an
//! old duplicate (PAWS, RFC 7323, section 5).

use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, NEVER};

use crate::control::{Acknowledged, Cause, Congestion, CongestionControl, Control, ControlKind, ControlSettings};
use crate::packets::segment::Segment;
use crate::sending::retransmission_timer::RetransmissionTimer;
use crate::settings::RetransmissionSettings;

const USUAL_SEGMENT_BYTES: u64 = 1448;
const FIRST_SEGMENTS: u64 = 10; // RFC 6928
const SEGMENTS_ABOVE: u64 = 3; // RFC 6675

/// Where a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It waits for its turn.
    Here,
    UnderWay,
    Lost,
    /// The receiver reported it by SACK.
    Arrived,
}

#[derive(Clone, Debug)]
struct Copy {
    segment: Segment,
    start: u64,
    end: u64,
    place: Place,
    sent_ns: Nanoseconds,
    is_again: bool,
}

impl Copy {
    fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// What is held of one stream, in the order in which it came.
#[derive(Debug)]
pub(super) struct Held {
    copies: VecDeque<Copy>,
    bytes: u64,
    under_way_bytes: u64,
    largest_bytes: u64,
    acknowledged: u64,
    /// The right edge of the receiver's window.
    edge: u64,
    /// The end of what was under way when the window was last reduced.
    recovery_end: u64,
    highest_sent: u64,
    delivered_bytes: u64,
    highest_timestamp: Option<u32>,
    control_kind: ControlKind,
    control: Option<Control>,
    timer: RetransmissionTimer,
    progress_ns: Nanoseconds,
    /// One segment may leave although the window is shut.
    may_probe: bool,
}

impl Held {
    pub fn new(control_kind: ControlKind) -> Self {
        Self {
            copies: VecDeque::new(),
            bytes: 0,
            under_way_bytes: 0,
            largest_bytes: USUAL_SEGMENT_BYTES,
            acknowledged: 1,
            edge: u64::from(u16::MAX),
            recovery_end: 0,
            highest_sent: 0,
            delivered_bytes: 0,
            highest_timestamp: None,
            control_kind,
            control: None,
            timer: RetransmissionTimer::new(RetransmissionSettings::default()),
            progress_ns: 0,
            may_probe: false,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Up to where the receiver has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The end of what was passed on.
    pub fn highest_sent(&self) -> u64 {
        self.highest_sent
    }

    /// The newest timestamp that was passed on.
    pub fn highest_timestamp(&self) -> Option<u32> {
        self.highest_timestamp
    }

    pub fn largest_bytes(&self) -> u64 {
        self.largest_bytes
    }

    /// Keeps a segment that takes `start` .. `end` of the stream.
    pub fn push(&mut self, now: Nanoseconds, segment: Segment, start: u64, end: u64) {
        if self.copies.is_empty() {
            self.progress_ns = now;
        }
        self.largest_bytes = self.largest_bytes.max(u64::from(segment.payload_bytes));
        if self.control.is_none() {
            self.control = Some(Control::new(
                self.control_kind,
                &ControlSettings {
                    maximum_segment_size: self.largest_bytes as u32,
                    initial_window_bytes: FIRST_SEGMENTS * self.largest_bytes,
                    initial_slow_start_threshold_bytes: u64::MAX,
                    byte_counting_limit_segments: Some(1000), // its receiver delays acknowledgements
                    is_paced: false,
                },
            ));
        }
        self.bytes += end - start;
        self.copies.push_back(Copy { segment, start, end, place: Place::Here, sent_ns: 0, is_again: false });
    }

    /// The receiver acknowledged everything below `acknowledged`, reports `blocks`, and takes bytes up to `edge`.
    pub fn acknowledge(
        &mut self,
        now: Nanoseconds,
        acknowledged: u64,
        edge: u64,
        blocks: impl Iterator<Item = (u64, u64)> + Clone,
    ) {
        self.edge = self.edge.max(edge);
        let newly_acknowledged_bytes = acknowledged.saturating_sub(self.acknowledged);
        let in_flight_bytes = self.under_way_bytes;
        let mut newest: Option<(Nanoseconds, bool)> = None;
        let mut newly_delivered_bytes = 0;
        let top = blocks.clone().map(|block| block.1).max().unwrap_or(0);
        for copy in self.copies.iter_mut().filter(|copy| copy.place != Place::Here) {
            let is_reported = blocks.clone().any(|(left, right)| left <= copy.start && copy.end <= right);
            if copy.place != Place::Arrived && (copy.end <= acknowledged || is_reported) {
                newly_delivered_bytes += copy.bytes();
                if copy.place == Place::UnderWay {
                    self.under_way_bytes -= copy.bytes();
                }
                if newest.is_none_or(|newest| newest.0 < copy.sent_ns) {
                    newest = Some((copy.sent_ns, copy.is_again));
                }
                copy.place = Place::Arrived;
            }
        }
        self.delivered_bytes += newly_delivered_bytes;
        let sample = newest.filter(|newest| !newest.1).map(|newest| now - newest.0);
        if let Some(sample) = sample {
            self.timer.sample(sample, true);
        }
        if newly_acknowledged_bytes > 0 {
            self.acknowledged = acknowledged;
            self.progress_ns = now;
            self.timer.reset_backoff();
        }
        let bytes = &mut self.bytes;
        self.copies.retain(|copy| {
            let stays = copy.end > acknowledged || copy.place == Place::Here;
            *bytes -= if stays { 0 } else { copy.bytes() };
            stays
        });
        self.find_losses(now, top);
        let in_recovery = self.acknowledged < self.recovery_end;
        let window_bytes = self.window_bytes();
        if let Some(control) = self.control.as_mut().filter(|_| newly_acknowledged_bytes > 0) {
            control.on_acknowledged(&Acknowledged {
                now,
                newly_acknowledged_bytes,
                newly_delivered_bytes,
                delivered_bytes: self.delivered_bytes,
                in_flight_bytes,
                round_trip_time: sample,
                rate_sample: None,
                loss_sample: None,
                marked: false,
                in_recovery,
                is_window_limited: in_flight_bytes + self.largest_bytes > window_bytes,
            });
        }
    }

    fn window_bytes(&self) -> u64 {
        self.control.as_ref().map_or(0, CongestionControl::window_bytes)
    }

    /// Finds segments with three others reported above them; one that was sent again counts anew after a timeout.
    fn find_losses(&mut self, now: Nanoseconds, top: u64) {
        let safe = top.saturating_sub(SEGMENTS_ABOVE * self.largest_bytes);
        let timeout = self.timer.timeout();
        let mut lost_bytes = 0;
        for copy in self.copies.iter_mut().filter(|copy| copy.place == Place::UnderWay && copy.end <= safe) {
            if !copy.is_again || now - copy.sent_ns > timeout {
                copy.place = Place::Lost;
                lost_bytes += copy.bytes();
            }
        }
        self.under_way_bytes -= lost_bytes;
        if lost_bytes > 0 && self.acknowledged >= self.recovery_end {
            self.slow_down(now, Cause::FastRetransmit, self.under_way_bytes + lost_bytes, false);
        }
    }

    fn slow_down(&mut self, now: Nanoseconds, cause: Cause, in_flight_bytes: u64, is_repeated: bool) {
        self.recovery_end = self.highest_sent;
        if let Some(control) = &mut self.control {
            control.on_congestion(&Congestion { now, cause, in_flight_bytes, is_repeated });
        }
    }

    /// The first segment of the stream that waits, if it may leave now, and whether it left before.
    pub fn poll(&mut self, now: Nanoseconds) -> Option<(Segment, bool)> {
        let window_bytes = self.window_bytes();
        let waits = |copy: &&mut Copy| matches!(copy.place, Place::Lost | Place::Here);
        let copy = self.copies.iter_mut().filter(waits).min_by_key(|copy| copy.start)?;
        let fits = self.under_way_bytes == 0 || self.under_way_bytes + copy.bytes() <= window_bytes;
        let is_inside = copy.end <= self.edge || self.may_probe;
        if !fits || !is_inside {
            return None;
        }
        self.may_probe = false;
        let is_again = copy.place == Place::Lost;
        (copy.place, copy.sent_ns, copy.is_again) = (Place::UnderWay, now, is_again);
        self.under_way_bytes += copy.bytes();
        self.highest_sent = self.highest_sent.max(copy.end);
        let mut segment = copy.segment;
        if let Some(timestamps) = &mut segment.timestamps {
            timestamps.value = self.note_timestamp(timestamps.value);
        }
        Some((segment, is_again))
    }

    /// Notes a timestamp that is passed on, and returns the highest one.
    pub fn note_timestamp(&mut self, value: u32) -> u32 {
        let highest = self.highest_timestamp.filter(|highest| (value.wrapping_sub(*highest) as i32) < 0);
        *self.highest_timestamp.insert(highest.unwrap_or(value))
    }

    /// When [`Held::handle_timeout`] is due: for what is under way, or for what a shut window holds back.
    pub fn deadline(&self) -> Nanoseconds {
        let oldest = self.copies.iter().filter(|copy| copy.place == Place::UnderWay).min_by_key(|copy| copy.start);
        match oldest {
            Some(oldest) => oldest.sent_ns.max(self.progress_ns).saturating_add(self.timer.timeout()),
            None if self.copies.iter().any(|copy| copy.place != Place::Arrived) => {
                self.progress_ns.saturating_add(self.timer.timeout())
            }
            None => NEVER,
        }
    }

    pub fn handle_timeout(&mut self, now: Nanoseconds) {
        if now < self.deadline() {
            return;
        }
        self.progress_ns = now;
        self.may_probe = true;
        let in_flight_bytes = self.under_way_bytes;
        if in_flight_bytes > 0 {
            for copy in self.copies.iter_mut().filter(|copy| copy.place == Place::UnderWay) {
                copy.place = Place::Lost;
            }
            self.under_way_bytes = 0;
            let is_repeated = self.acknowledged < self.recovery_end;
            self.slow_down(now, Cause::Timeout, in_flight_bytes, is_repeated);
        }
        self.timer.back_off();
    }
}

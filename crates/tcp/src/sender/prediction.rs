//! The sender's share of header prediction (see [`crate::connection`]): the same as the general code does for the
//! commonest ACK and the commonest segment, with everything that cannot be the case there left out.

use pepscope_path::{Nanoseconds, NEVER};

use super::Sender;
use crate::control::Acknowledged;
use crate::segment::{ContentId, Segment};
use crate::sequence::number;

/// New data that may leave at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    /// Position up to which it is known and the peer's window is open.
    end: u64,
    content: ContentId,
    /// Of the next segment.
    content_offset: u64,
}

/// What leaves next, as far as that can be told easily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prediction {
    /// A full segment of new data and nothing special.
    Segment { start: u64, content: ContentId, content_offset: u64 },
    /// Nothing: the congestion window is full.
    Nothing,
    /// The general code has to say.
    Unclear,
}

impl Sender {
    /// Whether `acknowledgement`, as the header has it, repeats the last one.
    #[inline(always)]
    pub fn is_repeated(&self, acknowledgement: u32) -> bool {
        acknowledgement == number(self.flight.unacknowledged(), self.initial)
    }

    /// Takes the window of a segment with payload at `sequence` whose acknowledgement repeats the last one.
    #[inline(always)]
    pub fn predict_repeated(&mut self, window: u16, sequence: u64) {
        let unacknowledged = self.flight.unacknowledged();
        let is_empty = self.flight.next() == unacknowledged;
        if is_empty {
            self.retries = 0; // as after a window probe
        }
        self.update_window(window, sequence, unacknowledged);
        // Where nothing is in flight and nothing waits, no window lets anything leave.
        let has_nothing = is_empty && self.queue.end() <= unacknowledged && !self.episode.is_recovering();
        self.is_resting &= has_nothing && !self.fin_requested;
    }

    /// Takes a pure ACK at `sequence`, without SACK blocks and marks, if it advances over segments of which none was
    /// lost, reported or sent again. `Some` if it was taken: whether the application waits for room and has some.
    #[inline(always)]
    pub fn predict_acknowledgement(&mut self, now: Nanoseconds, segment: &Segment, sequence: u64) -> Option<bool> {
        let oldest = self.flight.unacknowledged();
        let advance = u64::from(segment.acknowledgement.wrapping_sub(number(oldest, self.initial)));
        let pipe_before = self.flight.outstanding_bytes();
        let is_predictable = self.only_sets_window
            && advance > 0
            && advance <= pipe_before
            && self.flight.is_clean()
            && self.assumed_bytes == 0
            && !self.episode.is_recovering();
        if !is_predictable {
            return None;
        }
        let acknowledgement = oldest + advance;
        let sent_at = self.flight.advance_clean(acknowledgement)?;
        self.is_resting = false;
        self.update_window(segment.window, sequence, acknowledgement);
        self.rate.delivered_bytes += advance;
        let round_trip_time = now - sent_at;
        self.retries = 0;
        if acknowledgement > self.timed_until {
            self.timer.sample(round_trip_time);
            self.shortest_round_trip = self.shortest_round_trip.min(round_trip_time);
            self.timed_until = self.flight.next();
        }
        self.tell_control(&Acknowledged {
            now,
            newly_acknowledged_bytes: advance,
            newly_delivered_bytes: advance,
            delivered_bytes: self.rate.delivered_bytes,
            in_flight_bytes: pipe_before,
            round_trip_time: Some(round_trip_time),
            rate_sample: None,
            marked: false,
            in_recovery: false,
            is_window_limited: self.is_window_limited,
        });
        self.episode.forget_duplicates();
        self.restart_timer(now);
        Some(self.queue.acknowledge(acknowledgement, self.segment_bytes))
    }

    /// What can leave now, if that is full segments of new data with nothing special, until the window is full.
    #[inline(always)]
    pub fn predict_burst(&self) -> Option<Burst> {
        let start = self.flight.next();
        let is_predictable = self.only_sets_window
            && self.flight.outstanding_bytes() > 0
            && self.flight.is_clean()
            && !self.episode.is_recovering()
            && self.episode.inflation_bytes() == 0
            && !self.is_forced
            && !self.probe_due
            && !self.reduction_unannounced
            && self.window_limit.is_none();
        if !is_predictable {
            return None;
        }
        let (content, content_offset, end) = self.queue.at_plain(start)?;
        Some(Burst { end: end.min(self.right_edge), content, content_offset })
    }

    /// The next segment of a burst that leaves at `now`.
    #[inline(always)]
    pub fn predict_segment(&mut self, now: Nanoseconds, burst: &mut Burst) -> Prediction {
        let start = self.flight.next();
        if start + self.segment_bytes > burst.end {
            return Prediction::Unclear;
        }
        if self.flight.outstanding_bytes() + self.segment_bytes > self.window_bytes {
            self.is_window_limited = true;
            self.is_resting = true;
            return Prediction::Nothing;
        }
        let content_offset = burst.content_offset;
        burst.content_offset = content_offset.wrapping_add(self.segment_bytes);
        self.flight.push_plain(self.segment_bytes as u32, now);
        self.episode.note_new_data(self.segment_bytes);
        self.probed = false;
        self.probe_deadline = NEVER;
        self.last_sent_at = now;
        if self.deadline == NEVER {
            self.restart_timer(now);
        }
        Prediction::Segment { start, content: burst.content, content_offset }
    }
}

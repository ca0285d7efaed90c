//! Header prediction in the sender: what the general code does for the commonest ACK and the commonest segment, without
//! the cases that cannot occur there.
//!
//! It presumes a control that needs nothing but ACKs and losses ([`crate::control::Needs`]).

use pepscope_path::{Nanoseconds, NEVER};

use super::Sender;
use crate::control::Acknowledged;
use crate::packets::segment::{ContentId, Segment};
use crate::packets::sequence::number;

/// Full segments of new data that leave together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub segments: usize,
    /// Where the first one starts.
    pub start: u64,
    pub content: ContentId,
    pub content_offset: u64,
    /// Nothing leaves behind them, because the congestion window is full. If not, the general code decides.
    pub is_all: bool,
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
        let is_same = window == self.window_field
            && unacknowledged == self.window_acknowledgement
            && self.probe_deadline == NEVER;
        if is_same {
            self.window_sequence = self.window_sequence.max(sequence);
        } else {
            self.update_window(window, sequence, unacknowledged);
        }
        // Without data in flight or waiting, no segment leaves.
        if self.is_resting {
            self.is_resting = is_empty && self.has_nothing_to_send();
        }
    }

    /// Takes a pure ACK at `sequence`, without SACK blocks and marks, if it advances over segments of which none was
    /// lost, reported or retransmitted. Returns, if it took the ACK, whether the application waits for room in the send
    /// buffer and there is room again.
    #[inline(always)]
    pub fn predict_acknowledgement(&mut self, now: Nanoseconds, segment: &Segment, sequence: u64) -> Option<bool> {
        let oldest = self.flight.unacknowledged();
        let advance = u64::from(segment.acknowledgement.wrapping_sub(number(oldest, self.initial)));
        let pipe_before = self.flight.outstanding_bytes();
        let is_predictable = self.control_needs_only_acknowledgements
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
        self.shortest_round_trip = self.shortest_round_trip.min(round_trip_time);
        if acknowledgement > self.timed_until {
            self.timer.sample(round_trip_time, true);
            self.timed_until = self.flight.next();
        }
        self.notify_predicted(now, advance, pipe_before, round_trip_time);
        self.restart_timer(now);
        Some(self.queue.acknowledge(acknowledgement, self.segment_bytes))
    }

    /// Tells the congestion control of a predicted acknowledgement of `advance` bytes, with so many in flight before.
    #[inline(always)]
    pub(super) fn notify_predicted(
        &mut self,
        now: Nanoseconds,
        advance: u64,
        in_flight_bytes: u64,
        round_trip_time: Nanoseconds,
    ) {
        self.notify_control(&Acknowledged {
            now,
            newly_acknowledged_bytes: advance,
            newly_delivered_bytes: advance,
            delivered_bytes: self.rate.delivered_bytes,
            in_flight_bytes,
            round_trip_time: Some(round_trip_time),
            rate_sample: None,
            loss_sample: None,
            marked: false,
            in_recovery: false,
            is_window_limited: self.is_window_limited,
        });
        self.episode.forget_duplicates();
    }

    /// Whether nothing could leave whatever the window, where nothing is in flight.
    #[inline(always)]
    pub(super) fn has_nothing_to_send(&self) -> bool {
        self.queue.end() <= self.flight.unacknowledged() && !self.episode.is_recovering() && !self.fin_requested
    }

    /// Sends at most `limit` full segments of new data at `now`, if they are predicted ones. `is_orderly`: the
    /// last ACK was a predicted one.
    #[inline(always)]
    pub fn predict_burst(&mut self, now: Nanoseconds, limit: usize, is_orderly: bool) -> Option<Burst> {
        let start = self.flight.next();
        let unacknowledged = self.flight.unacknowledged();
        let is_orderly = is_orderly
            || self.control_needs_only_acknowledgements
                && self.flight.is_clean()
                && !self.episode.is_recovering()
                && self.episode.inflation_bytes() == 0;
        let is_predictable = is_orderly
            && start > unacknowledged
            && !self.is_forced
            && !self.probe_due
            && !self.reduction_unannounced
            && self.window_limit.is_none();
        if !is_predictable {
            return None;
        }
        let (content, content_offset, written_until) = self.queue.at_plain(start)?;
        let known_until = written_until.min(self.right_edge);
        let open_until = unacknowledged.saturating_add(self.window_bytes);
        let (mut segments, mut end) = (0, start + self.segment_bytes);
        let until = known_until.min(open_until);
        while segments < limit && end <= until {
            segments += 1;
            end += self.segment_bytes;
        }
        let is_all = segments < limit && end <= known_until;
        if is_all {
            self.is_window_limited = true;
            self.is_resting = true;
        }
        if segments > 0 {
            self.flight.push_plain(segments, self.segment_bytes as u32, now);
            self.episode.note_new_data(segments as u64 * self.segment_bytes);
            self.probed = false;
            self.probe_deadline = NEVER;
            self.last_sent_at = now;
            if self.deadline == NEVER {
                self.restart_timer(now);
            }
        }
        Some(Burst { segments, start, content, content_offset, is_all })
    }
}

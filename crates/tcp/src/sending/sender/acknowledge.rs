//! What arrives for the sender.

use pepscope_path::{Nanoseconds, NEVER};

use super::{AckOutcome, Sender};
use crate::control::{Acknowledged, Cause};
use crate::packets::segment::{Flags, Segment};
use crate::packets::sequence::position;
use crate::sending::flight::Released;
use crate::sending::recovery::linux::Reading;
use crate::settings::{EcnMode, Recovery};
use crate::statistics::Statistics;
use crate::timestamp_clock::TimestampClock;

impl Sender {
    /// Takes the acknowledgement, window and SACK blocks of a segment at `sequence`; `clock` reads the echo of our
    /// timestamp in it where the segments themselves leave the round-trip time open (Karn).
    #[inline]
    pub fn acknowledge(
        &mut self,
        now: Nanoseconds,
        segment: &Segment,
        sequence: u64,
        clock: &mut TimestampClock,
        statistics: &mut Statistics,
    ) -> AckOutcome {
        let oldest = self.flight.unacknowledged();
        let acknowledgement = position(segment.acknowledgement, self.initial, oldest);
        if acknowledgement > self.flight.next() && !self.accept_probe(now, acknowledgement) {
            return AckOutcome::NeverSent;
        }
        if acknowledgement < oldest {
            return AckOutcome::Stale;
        }
        let in_flight_bytes = self.flight.pipe_bytes();
        let was_outstanding = self.flight.outstanding_bytes() > 0;
        self.is_resting &= !was_outstanding && self.has_nothing_to_send();
        let window_is_same = segment.window == self.window_field;
        self.update_window(segment.window, sequence, acknowledgement);

        let advanced = acknowledgement > oldest;
        let highest_before = if self.linux.is_some() { self.flight.highest_reported() } else { None };
        let mut released = if advanced { self.flight.advance(acknowledgement) } else { Released::default() };
        let mut found_loss = self.take_blocks(segment, oldest, &mut released);
        if self.linux.is_some() {
            let reading = Reading {
                acknowledgement,
                oldest,
                advanced,
                highest_before,
                duplicate: self.duplicate_report(segment, acknowledgement),
                echoes_before_resending: self.resent_at().is_some_and(|resent_at| {
                    segment.timestamps.is_some_and(|timestamps| clock.is_echo_before(timestamps, resent_at))
                }),
            };
            found_loss |= self.read_as_linux(now, &reading, &released, statistics);
        } else if self.episode.kind() == Recovery::Rack {
            found_loss |= self.detect_lost_again(now, &released);
        }
        let is_duplicate = !advanced && was_outstanding && self.is_duplicate(segment, &released, window_is_same);
        if !advanced && !is_duplicate {
            if !was_outstanding {
                self.retries = 0; // an answer to a window probe
            }
            return AckOutcome::Accepted { writable: false };
        }
        self.count_assumed(advanced, &mut released);
        let acknowledged = self.acknowledged(now, segment, &released, in_flight_bytes, clock);
        if !advanced {
            statistics.duplicate_acknowledgements += 1;
            self.notify_control(&acknowledged);
            self.recover_on_duplicate(now, statistics);
            self.reduce_in_proportion(&released, false, found_loss);
            if self.episode.kind() == Recovery::Rack && self.puts_timer_off(&released) && !self.awaits_reordered() {
                self.restart_timer(now);
            }
            return AckOutcome::Accepted { writable: false };
        }
        self.retries = 0;
        if let Some(round_trip_time) = acknowledged.round_trip_time {
            self.time_round_trip(round_trip_time, acknowledgement);
        }
        self.notify_control(&acknowledged);
        let restarts = self.recover_on_advance(now, released.bytes, statistics);
        self.reduce_in_proportion(&released, true, found_loss);
        if self.flight.outstanding_bytes() == 0 || restarts && !self.awaits_reordered() {
            self.restart_timer(now);
        }
        if acknowledged.marked {
            self.answer_mark(now, statistics);
        }
        AckOutcome::Accepted { writable: self.queue.acknowledge(acknowledgement, self.segment_bytes) }
    }

    /// Takes the SACK blocks that the last segment did not have; whether what they report shows losses. `oldest` was
    /// unacknowledged before this segment.
    #[inline(always)]
    fn take_blocks(&mut self, segment: &Segment, oldest: u64, released: &mut Released) -> bool {
        if !self.uses_sack() || segment.sack.is_empty() {
            return false;
        }
        for block in segment.sack.as_slice() {
            if self.last_blocks.as_slice().contains(block) {
                continue;
            }
            let (left, right) = block;
            let left = position(*left, self.initial, oldest);
            let right = position(*right, self.initial, oldest);
            self.flight.report(left, right, released);
        }
        self.last_blocks = segment.sack;
        let lost_before = self.flight.lost_bytes();
        if self.linux.is_none() {
            self.flight.detect_losses(self.segment_bytes);
        }
        self.flight.lost_bytes() > lost_before
    }

    /// Whether a segment that acknowledges nothing new is a duplicate: with SACK it reports data for the first
    /// time, without SACK it carries nothing and leaves the window as it was (RFC 5681, section 2).
    #[inline(always)]
    fn is_duplicate(&self, segment: &Segment, released: &Released, window_is_same: bool) -> bool {
        if self.uses_sack() {
            released.newly_delivered_bytes > 0
        } else {
            segment.payload_bytes == 0 && !segment.flags.has(Flags::SYN | Flags::FIN) && window_is_same
        }
    }

    /// What the sender tells its congestion control of this ACK; `in_flight_bytes` were in flight before it.
    #[inline(always)]
    fn acknowledged(
        &mut self,
        now: Nanoseconds,
        segment: &Segment,
        released: &Released,
        in_flight_bytes: u64,
        clock: &mut TimestampClock,
    ) -> Acknowledged {
        let round_trip_time = match released.newest_sent_at {
            Some(sent_at) => Some(now - sent_at),
            None => segment.timestamps.and_then(|timestamps| clock.round_trip_time(now, timestamps)),
        };
        let rate_sample = self.rate.deliver(now, released.newly_delivered_bytes, released.stamp, &self.flight);
        let loss_sample = self.rate.lose(&mut self.flight);
        Acknowledged {
            now,
            newly_acknowledged_bytes: released.bytes,
            newly_delivered_bytes: released.newly_delivered_bytes,
            delivered_bytes: self.rate.delivered_bytes,
            in_flight_bytes,
            round_trip_time,
            rate_sample,
            loss_sample,
            marked: self.ecn != EcnMode::Off && segment.flags.has(Flags::ECE),
            in_recovery: self.episode.is_recovering(),
            is_window_limited: self.is_window_limited,
        }
    }

    /// Samples the round-trip time: once a round trip, unless the timer takes every sample.
    #[inline(always)]
    pub(super) fn time_round_trip(&mut self, round_trip_time: Nanoseconds, acknowledgement: u64) {
        self.shortest_round_trip = self.shortest_round_trip.min(round_trip_time);
        let is_new_round = acknowledgement > self.timed_until;
        if is_new_round || self.timer.takes_every_sample() {
            self.timer.sample(round_trip_time, is_new_round);
        }
        if is_new_round {
            self.timed_until = self.flight.next();
        }
    }

    /// The range that the first block reports to have arrived twice: below the acknowledgement, or in the second block
    /// (RFC 2883, section 4).
    fn duplicate_report(&self, segment: &Segment, acknowledgement: u64) -> Option<(u64, u64)> {
        let blocks = segment.sack.as_slice();
        let placed = |block: &(u32, u32)| {
            (position(block.0, self.initial, acknowledgement), position(block.1, self.initial, acknowledgement))
        };
        let (left, right) = placed(blocks.first()?);
        let is_inside = blocks.get(1).map(placed).is_some_and(|(from, to)| from <= left && right <= to);
        (left < right && (right <= acknowledgement || is_inside)).then_some((left, right))
    }

    /// Slows down once a window (RFC 3168, section 6.1.2).
    fn answer_mark(&mut self, now: Nanoseconds, statistics: &mut Statistics) {
        if self.ecn == EcnMode::Standard
            && !self.episode.is_recovering()
            && self.flight.unacknowledged() > self.marks_answered_until
        {
            statistics.mark_reactions += 1;
            self.slow_down(now, Cause::Mark, false);
        }
    }

    /// Without SACK each duplicate stands for one segment that arrived; the ACK that covers it must not count it again.
    #[inline]
    fn count_assumed(&mut self, advanced: bool, released: &mut Released) {
        if self.uses_sack() {
            return;
        }
        if advanced {
            let counted = self.assumed_bytes.min(released.newly_delivered_bytes);
            released.newly_delivered_bytes -= counted;
            self.assumed_bytes = (self.assumed_bytes - counted).min(self.flight.outstanding_bytes());
        } else {
            let room = self.flight.outstanding_bytes().saturating_sub(self.assumed_bytes + 1);
            released.newly_delivered_bytes = self.segment_bytes.min(room);
            self.assumed_bytes += released.newly_delivered_bytes;
        }
    }

    /// The peer took the byte of a window probe, which is in flight from now on.
    fn accept_probe(&mut self, now: Nanoseconds, acknowledgement: u64) -> bool {
        let next = self.flight.next();
        if !self.probed || acknowledgement != next + 1 || self.queue.end() <= next {
            return false;
        }
        let stamp = self.rate.stamp(now, &self.flight, 1);
        self.flight.push(1, false, now, stamp);
        self.flight.resend(self.flight.first_place(), now, stamp); // when it left is not known
        true
    }

    /// Takes a window that is not older than the last one (RFC 9293, section 3.10.7.4).
    #[inline(always)]
    pub(super) fn update_window(&mut self, field: u16, sequence: u64, acknowledgement: u64) {
        if sequence < self.window_sequence
            || (sequence == self.window_sequence && acknowledgement < self.window_acknowledgement)
        {
            return;
        }
        self.window_sequence = sequence;
        self.window_acknowledgement = acknowledgement;
        self.window_field = field;
        let window = u64::from(field) << self.window_shift;
        self.right_edge = acknowledgement + window;
        self.largest_window = self.largest_window.max(window);
        if self.probe_deadline != NEVER && self.right_edge > self.flight.next() {
            self.probe_deadline = NEVER;
            self.probe_interval = 0;
        }
    }
}

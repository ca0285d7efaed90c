//! Header prediction in the sender of a kernel's connection: what [`super::acknowledge`], [`super::transmit`] and
//! [`crate::sending::recovery::linux`] do for an ACK over segments of which nothing was lost, and for bursts of full segments.
//!
//! It presumes what [`super::header_prediction`] does, and Linux's recovery with nothing to find out.

use pepscope_path::{Nanoseconds, NEVER};

use super::Sender;
use crate::packets::segment::{ContentId, Segment};
use crate::packets::sequence::number;

/// Full segments of new data that leave together, all of what is planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelBurst {
    /// Nothing leaves, and nothing will until something changes, if there are none.
    pub segments: usize,
    /// Where the first one starts.
    pub start: u64,
    pub content: ContentId,
    pub content_offset: u64,
}

impl Sender {
    /// Whether an ACK that neither reports nor repeats anything can show nothing but what it acknowledges.
    #[inline(always)]
    fn is_undisturbed(&self) -> bool {
        self.linux.as_ref().is_some_and(|linux| linux.is_undisturbed())
            && !self.episode.is_recovering()
            && self.flight.is_clean()
    }

    /// Takes the window of a segment with payload at `sequence` whose acknowledgement repeats the last one, where nothing
    /// is in flight; `false` and nothing with any other.
    #[inline(always)]
    pub fn predict_repeated_as_kernel(&mut self, segment: &Segment, sequence: u64) -> bool {
        let is_predictable =
            self.is_repeated(segment.acknowledgement) && self.flight.outstanding_bytes() == 0 && self.is_undisturbed();
        if is_predictable {
            self.forget_set_timer();
            self.predict_repeated(segment.window, sequence);
        }
        is_predictable
    }

    /// [`Sender::predict_acknowledgement`] for a kernel.
    #[inline(always)]
    pub fn predict_acknowledgement_as_kernel(
        &mut self,
        now: Nanoseconds,
        segment: &Segment,
        sequence: u64,
    ) -> Option<bool> {
        let oldest = self.flight.unacknowledged();
        let advance = u64::from(segment.acknowledgement.wrapping_sub(number(oldest, self.initial)));
        let pipe_before = self.flight.outstanding_bytes();
        let is_predictable = self.control_needs_only_acknowledgements
            && advance > 0
            && advance <= pipe_before
            && self.assumed_bytes == 0
            && self.is_undisturbed();
        if !is_predictable {
            return None;
        }
        let acknowledgement = oldest + advance;
        let sent_at = self.flight.advance_clean(acknowledgement)?;
        self.is_resting = false;
        self.update_window(segment.window, sequence, acknowledgement);
        self.note_undisturbed(now, sent_at, acknowledgement);
        self.rate.delivered_bytes += advance;
        let round_trip_time = now - sent_at;
        self.retries = 0;
        self.time_round_trip(round_trip_time, acknowledgement);
        self.notify_predicted(now, advance, pipe_before, round_trip_time);
        self.restart_linux_timer(now);
        Some(self.queue.acknowledge(acknowledgement, self.segment_bytes))
    }

    /// Plans and sends the next burst at `now` if that is a predicted one. What it has planned and does not send is for
    /// the general code to go on with.
    #[inline(always)]
    pub fn predict_kernel_burst(&mut self, now: Nanoseconds) -> Option<KernelBurst> {
        let start = self.flight.next();
        let is_predictable = self.control_needs_only_acknowledgements
            && self.flight.outstanding_bytes() > 0
            && !self.is_forced
            && !self.probe_due
            && !self.reduction_unannounced
            && !self.is_fin_requested()
            && self.window_limit.is_none()
            && self.is_undisturbed()
            && self.episode.inflation_bytes() == 0
            && self.offload.as_ref().is_some_and(|burst| !burst.continues(start));
        if !is_predictable {
            return None;
        }
        let nothing = KernelBurst { segments: 0, start, content: ContentId::default(), content_offset: 0 };
        if start >= self.queue.end() {
            self.is_window_limited &= self.flight.outstanding_bytes() >= self.window_bytes;
            self.is_resting = true;
            return Some(nothing);
        }
        if !self.plan_burst(now, start) {
            self.is_window_limited = true;
            self.is_resting = true;
            return Some(nothing);
        }
        let planned = self.offload.as_ref().map_or(0, |burst| burst.end() - start);
        let (content, content_offset, available) = self.queue.at(start)?;
        let segments = planned / self.segment_bytes;
        if segments == 0
            || segments * self.segment_bytes != planned
            || planned > available
            || self.segment_bytes > u64::from(u16::MAX)
            || start + planned > self.right_edge
            || self.flight.outstanding_bytes() + planned > self.window_bytes
        {
            return None;
        }
        self.flight.push_plain(segments as usize, self.segment_bytes as u32, now);
        self.episode.note_new_data(planned);
        self.probed = false;
        self.probe_deadline = NEVER;
        self.pacing_deadline = NEVER;
        self.last_sent_at = now;
        self.note_burst_as_linux(now);
        if let Some(burst) = &mut self.offload {
            burst.note_sent(start + planned, false);
        }
        Some(KernelBurst { segments: segments as usize, start, content, content_offset })
    }

    /// Whether a segment of the burst from `start` to `end` has PSH.
    #[inline(always)]
    pub fn pushes(&self, start: u64, end: u64) -> bool {
        self.offload.as_ref().is_some_and(|burst| burst.pushes(start, end, &self.queue))
    }
}

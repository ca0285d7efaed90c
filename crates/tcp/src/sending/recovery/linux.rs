//! What Linux's recovery has beyond [`super::rack`]: losses found by time and a reordering window (RACK), probes for
//! losses at the tail (TLP; both RFC 8985), timeouts that prove spurious (F-RTO, RFC 5682; Eifel, RFC 3522) and reductions
//! that duplicate reports undo (D-SACK, RFC 3708).
//!
//! The rules are those of net/ipv4/tcp_recovery.c, tcp_input.c and tcp_output.c of 6.18; other kernels' hosts, which have
//! the same RFCs, follow them, too, but for how long a probe waits (docs/models/hosts.md). Left out: after a timeout all
//! that was not reported counts as lost, where Linux spares what was sent within the last round trip.

mod probe;
mod reordering;
#[cfg(test)]
mod tests;
mod undo;

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER};

use crate::sending::flight::Released;
use crate::sending::sender::Sender;
use crate::settings::{Recovery, Settings, Stack};
use crate::statistics::Statistics;

use probe::TailProbe;
use reordering::Reordering;
use undo::{LossState, Undo};

/// The least time for which a timer is set beside what it waits for (TCP_TIMEOUT_MIN_US).
const LEAST_WAIT: Nanoseconds = 2 * MILLISECOND;

/// What the sender's one timer is set for (icsk_pending).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Timer {
    #[default]
    Retransmission,
    TailProbe,
    Reordering,
}

/// An acknowledgement as this recovery reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub acknowledgement: u64,
    /// The one before it.
    pub oldest: u64,
    pub advanced: bool,
    /// The end of the highest range that was reported before it.
    pub highest_before: Option<u64>,
    /// The range that arrived twice, if the first block reports one (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
    /// It echoes the timestamp of data that left before anything was sent again.
    pub echoes_before_resending: bool,
}

/// The state of Linux's recovery.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinuxRecovery {
    pub(crate) timer: Timer,
    /// The acknowledgement that is being read set it for reordering.
    has_set_timer: bool,
    reordering: Reordering,
    probe: TailProbe,
    undo: Option<Undo>,
    /// From a timeout until all is acknowledged that was in flight (TCP_CA_Loss).
    loss: Option<LossState>,
}

impl LinuxRecovery {
    /// For a connection whose ends both have SACK.
    pub fn new(settings: &Settings, sack: bool) -> Option<Box<Self>> {
        (settings.stack != Stack::Ideal && settings.recovery == Recovery::Rack && sack).then(Box::default)
    }

    /// Whether retransmissions wait while new data tells whether the timeout was spurious.
    pub fn holds_repeats(&self) -> bool {
        self.loss.is_some_and(|loss| loss.holds_repeats)
    }

    pub fn has_probe_due(&self) -> bool {
        self.probe.is_due
    }

    /// Whether nothing waits for an acknowledgement to be found out: no probe, timeout or reduction that may be undone.
    #[inline(always)]
    pub fn is_undisturbed(&self) -> bool {
        self.probe.is_settled() && self.loss.is_none() && self.undo.as_ref().is_none_or(|undo| !undo.is_explained())
    }
}

impl Sender {
    /// Looks for losses and for reductions to undo in an acknowledgement; whether it found losses.
    pub(crate) fn read_as_linux(
        &mut self,
        now: Nanoseconds,
        reading: &Reading,
        released: &Released,
        statistics: &mut Statistics,
    ) -> bool {
        let Some(mut linux) = self.linux.take() else { return false };
        linux.has_set_timer = false;
        linux.reordering.note(reading, released, self.segment_bytes, self.flight.next());
        if let (Some(undo), Some(duplicate)) = (&mut linux.undo, reading.duplicate) {
            undo.note_duplicate(duplicate, self.segment_bytes);
        }
        let has_lost_at_tail = linux.probe.note(reading, released);
        let is_dubious = released.latest().is_some()
            && (self.flight.sacked_bytes() > 0
                || self.flight.lost_bytes() > 0
                || self.episode.is_recovering()
                || linux.loss.is_some());
        linux.reordering.advance(now, released, self.shortest_round_trip);
        self.linux = Some(linux);
        if has_lost_at_tail {
            self.answer_tail_loss(now);
        }
        let found_loss = is_dubious && self.detect_losses_by_time(now);
        self.judge_reductions(now, reading, released, statistics);
        found_loss
    }

    /// [`Sender::read_as_linux`] for an acknowledgement up to `end` over segments of which none was sent again or reported,
    /// the last of them at `sent_at`.
    #[inline(always)]
    pub(crate) fn note_undisturbed(&mut self, now: Nanoseconds, sent_at: Nanoseconds, end: u64) {
        if let Some(linux) = &mut self.linux {
            linux.has_set_timer = false;
            linux.reordering.advance_undisturbed(now, sent_at, end);
        }
    }

    /// [`Sender::read_as_linux`] for an acknowledgement that tells nothing.
    #[inline(always)]
    pub(crate) fn forget_set_timer(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.has_set_timer = false;
        }
    }

    /// [`Sender::note_sent_as_linux`] for each of some new segments, where nothing is lost or reported.
    #[inline(always)]
    pub(crate) fn note_burst_as_linux(&mut self, now: Nanoseconds) {
        self.schedule_tail_probe(now, false);
    }

    /// Sets the timer anew after an acknowledgement or a retransmission (tcp_set_xmit_timer, tcp_rearm_rto).
    pub(crate) fn restart_linux_timer(&mut self, now: Nanoseconds) {
        if self.flight.outstanding_bytes() == 0 {
            self.deadline = NEVER;
            return self.set_timer(Timer::Retransmission);
        }
        if self.schedule_tail_probe(now, true) {
            return;
        }
        let was_other = self.linux.as_ref().is_some_and(|linux| linux.timer != Timer::Retransmission);
        let from = if was_other { self.flight.oldest_sent_at().unwrap_or(now) } else { now };
        self.deadline = from.saturating_add(self.timer.timeout()).max(now + 1);
        self.set_timer(Timer::Retransmission);
    }

    fn set_timer(&mut self, timer: Timer) {
        if let Some(linux) = &mut self.linux {
            linux.timer = timer;
            linux.has_set_timer = timer == Timer::Reordering;
        }
    }

    /// Whether the timer was just set for what may have been reordered, which puts nothing else off.
    pub(crate) fn awaits_reordered(&self) -> bool {
        self.linux.as_ref().is_some_and(|linux| linux.has_set_timer)
    }

    /// A segment left; `is_new` if it was new data (tcp_event_new_data_sent).
    pub(crate) fn note_sent_as_linux(&mut self, now: Nanoseconds, is_new: bool) {
        let Some(linux) = &mut self.linux else { return };
        if !is_new {
            if let Some(undo) = &mut linux.undo {
                undo.note_resent(now);
            }
            return;
        }
        if self.deadline == NEVER || linux.timer == Timer::TailProbe {
            self.restart_linux_timer(now);
        }
        self.schedule_tail_probe(now, false);
    }

    /// The timer expired for something else than a retransmission; whether it did.
    pub(crate) fn handle_linux_timer(&mut self, now: Nanoseconds, statistics: &mut Statistics) -> bool {
        match self.linux.as_ref().map(|linux| linux.timer) {
            None | Some(Timer::Retransmission) => false,
            Some(Timer::TailProbe) => {
                self.begin_tail_probe(now);
                true
            }
            Some(Timer::Reordering) => {
                self.set_timer(Timer::Retransmission);
                let found = self.detect_losses_by_time(now);
                if self.linux.as_ref().is_some_and(|linux| linux.timer == Timer::Retransmission) {
                    let oldest = self.flight.oldest_sent_at().unwrap_or(now);
                    self.deadline = oldest.saturating_add(self.timer.timeout()).max(now + 1);
                }
                if found && !self.episode.is_recovering() {
                    self.begin_linux_recovery(now, statistics);
                }
                true
            }
        }
    }

    /// Losses were found outside recovery (tcp_enter_recovery), unless what a timeout declared lost is still being repaired.
    pub(crate) fn begin_linux_recovery(&mut self, now: Nanoseconds, statistics: &mut Statistics) {
        if self.linux.as_ref().is_none_or(|linux| linux.loss.is_some()) || self.flight.lost_bytes() == 0 {
            return;
        }
        self.remember_for_undo();
        self.enter_rack_recovery(now, statistics);
        if let Some(linux) = &mut self.linux {
            linux.reordering.begin_recovery();
        }
    }
}

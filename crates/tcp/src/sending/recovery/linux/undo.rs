//! Reductions that prove wrong: timeouts that were spurious (F-RTO with SACK, RFC 5682, section 3.1; Eifel detection, RFC
//! 3522) and retransmissions of which all arrived twice (RFC 3708), as Linux's tcp_process_loss and tcp_may_undo have them.

use pepscope_path::Nanoseconds;

use super::Reading;
use crate::control::CongestionControl;
use crate::sending::flight::Released;
use crate::sending::sender::Sender;
use crate::statistics::Statistics;

/// What a reduction found, to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The oldest byte not acknowledged when it began (undo_marker).
    marker: u64,
    window_bytes: u64,
    threshold_bytes: u64,
    /// When something was first sent again (retrans_stamp).
    resent_at: Option<Nanoseconds>,
    /// Sent again and not reported as duplicates (undo_retrans).
    unexplained: u64,
    has_duplicates: bool,
}

impl Undo {
    pub fn note_resent(&mut self, now: Nanoseconds) {
        self.resent_at.get_or_insert(now);
        self.unexplained += 1;
    }

    pub fn note_duplicate(&mut self, (left, right): (u64, u64), segment_bytes: u64) {
        if right > self.marker && self.unexplained > 0 {
            self.has_duplicates = true;
            self.unexplained = self.unexplained.saturating_sub((right - left).div_ceil(segment_bytes));
        }
    }

    #[inline]
    pub(super) fn is_explained(&self) -> bool {
        self.has_duplicates && self.unexplained == 0
    }
}

/// From a timeout on.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossState {
    /// Where the next new data began (high_seq).
    until: u64,
    /// Whether the timeout was spurious is being found out (frto).
    is_doubted: bool,
    pub holds_repeats: bool,
}

impl Sender {
    /// Remembers the window before a reduction.
    pub(super) fn remember_for_undo(&mut self) {
        let undo = Undo {
            marker: self.flight.unacknowledged(),
            window_bytes: self.window_bytes,
            threshold_bytes: self.control.slow_start_threshold_bytes(),
            resent_at: None,
            unexplained: 0,
            has_duplicates: false,
        };
        if let Some(linux) = &mut self.linux {
            linux.undo = Some(undo);
        }
    }

    /// When something was first sent again since the last reduction.
    pub(crate) fn resent_at(&self) -> Option<Nanoseconds> {
        self.linux.as_ref()?.undo?.resent_at
    }

    /// The retransmission timer expired, before the control slows down (tcp_enter_loss).
    pub(crate) fn begin_loss_as_linux(&mut self) {
        let Some(linux) = &self.linux else { return };
        let was_recovering = self.episode.is_recovering();
        let is_repeated = linux.loss.is_some() && self.retries > 0;
        if !was_recovering && !is_repeated {
            self.remember_for_undo();
        }
        let loss = LossState {
            until: self.flight.next(),
            is_doubted: !was_recovering || self.retries > 0,
            holds_repeats: false,
        };
        if let Some(linux) = &mut self.linux {
            linux.loss = Some(loss);
            linux.probe = super::TailProbe::default();
        }
    }

    /// Whether the reduction before an acknowledgement was wrong, and what follows.
    pub(super) fn judge_reductions(
        &mut self,
        now: Nanoseconds,
        reading: &Reading,
        released: &Released,
        statistics: &mut Statistics,
    ) {
        let Some(linux) = &mut self.linux else { return };
        let is_explained = linux.undo.is_some_and(|undo| undo.is_explained());
        let has_echo = linux.undo.is_some() && reading.advanced && reading.echoes_before_resending;
        let is_recovering = self.episode.is_recovering();
        if let (true, true, Some(highest)) = (has_echo, is_recovering, reading.highest_before) {
            // The hole was filled by what came late, not by what was sent again (tcp_try_undo_partial).
            linux.reordering.see(reading.oldest, highest, self.segment_bytes);
        }
        if linux.loss.is_some() {
            if reading.advanced && (has_echo || is_explained) {
                self.undo_reduction(now, statistics);
            } else {
                self.judge_timeout(now, reading, released, statistics);
            }
        } else if is_explained || has_echo && is_recovering && !self.flight.has_resent() {
            self.undo_reduction(now, statistics);
        }
    }

    /// F-RTO: an acknowledgement of what was never sent again shows that the timeout was spurious.
    fn judge_timeout(&mut self, now: Nanoseconds, reading: &Reading, released: &Released, statistics: &mut Statistics) {
        let has_new_data = self.queue.end() > self.flight.next() && self.may_send_beyond(self.flight.next());
        let Some(linux) = &mut self.linux else { return };
        let Some(loss) = &mut linux.loss else { return };
        let is_repaired = self.flight.unacknowledged() >= loss.until;
        loss.holds_repeats = false;
        if loss.is_doubted {
            if released.lowest_once().is_some_and(|(_, end)| end <= loss.until) {
                self.undo_reduction(now, statistics);
                return;
            }
            if self.flight.next() > loss.until {
                loss.is_doubted &= released.latest().is_none() || reading.advanced;
            } else if reading.advanced && !is_repaired && has_new_data {
                loss.holds_repeats = true;
                return;
            } else if reading.advanced {
                loss.is_doubted = false;
            }
        }
        if is_repaired {
            linux.loss = None;
        }
    }

    /// New data could not leave, or has left: whether retransmissions still wait for what it tells.
    pub(crate) fn keeps_repeats_waiting(&mut self) -> bool {
        let next = self.flight.next();
        let Some(loss) = self.linux.as_mut().and_then(|linux| linux.loss.as_mut()) else { return false };
        if next == loss.until {
            (loss.is_doubted, loss.holds_repeats) = (false, false);
        }
        loss.holds_repeats
    }

    /// Back to the window before the reduction, and nothing is lost (tcp_undo_cwnd_reduction).
    fn undo_reduction(&mut self, now: Nanoseconds, statistics: &mut Statistics) {
        let Some(linux) = &mut self.linux else { return };
        linux.loss = None;
        let Some(undo) = linux.undo.take() else { return };
        statistics.undone_reductions += 1;
        self.flight.withdraw_losses();
        if self.episode.is_recovering() {
            self.end_recovery(now);
        }
        self.control.on_spurious_congestion(undo.window_bytes, undo.threshold_bytes);
        self.window_bytes = self.control.window_bytes();
    }
}

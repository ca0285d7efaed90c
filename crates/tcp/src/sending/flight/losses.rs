//! Which segments in flight are taken for lost.

use pepscope_path::Nanoseconds;

use super::sent::{LOST, RESENT, SACKED};
use super::{Flight, DUPLICATE_THRESHOLD};

impl Flight {
    /// Declares segments lost that are below three SACKed ranges, or below more than two segments of SACKed bytes
    /// (IsLost of RFC 6675, section 4).
    pub fn detect_losses(&mut self, segment_bytes: u64) {
        let mut reported_bytes = 0;
        let mut stretches = 0;
        let mut edge = None;
        for (left, right) in self.reported.descending() {
            stretches += 1;
            reported_bytes += right - left;
            if stretches >= DUPLICATE_THRESHOLD || reported_bytes > u64::from(DUPLICATE_THRESHOLD - 1) * segment_bytes {
                edge = Some(left);
                break;
            }
        }
        if let Some(edge) = edge {
            self.declare_lost_below(edge);
        }
    }

    fn declare_lost_below(&mut self, edge: u64) {
        if edge <= self.loss_edge {
            return;
        }
        let from = self.loss_edge.max(self.unacknowledged);
        for place in self.place_after(|sent| sent.start < from)..self.place_after(|sent| sent.start < edge) {
            self.declare_lost(place);
        }
        self.loss_edge = edge;
    }

    /// Notes a loss for the control.
    pub(super) fn note_loss(&mut self, place: usize, length: u64) {
        self.ever_lost_bytes += length;
        if let Some(stamp) = self.stamp(place) {
            if self.first_lost.is_none_or(|known| stamp.sent_at < known.sent_at) {
                self.first_lost = Some(stamp);
            }
        }
    }

    pub(super) fn declare_lost(&mut self, place: usize) {
        let Some(sent) = self.segments.at_mut(place) else { return };
        if sent.flags & (SACKED | LOST) != 0 {
            return;
        }
        sent.flags |= LOST;
        let length = u64::from(sent.length);
        self.lost_bytes += length;
        if sent.flags & RESENT == 0 {
            self.pending_bytes += length;
            self.cursor = self.cursor.min(sent.start);
        }
        self.note_loss(place, length);
    }

    /// Declares lost again what was last sent again before `sent_at`, which the peer has something from; whether there
    /// was any.
    pub fn declare_lost_again(&mut self, sent_at: Nanoseconds) -> bool {
        if self.resent_bytes == 0 {
            return false;
        }
        let mut found = false;
        for place in self.first..self.segments.end() {
            let Some(sent) = self.segments.at_mut(place) else { break };
            if sent.flags & (SACKED | LOST | RESENT) == LOST | RESENT && sent.sent_at < sent_at {
                sent.flags &= !RESENT;
                let (length, start) = (u64::from(sent.length), sent.start);
                self.resent_bytes -= length;
                self.pending_bytes += length;
                self.cursor = self.cursor.min(start);
                self.note_loss(place, length);
                found = true;
            }
        }
        found
    }

    /// Nothing is lost after all; what was sent again stays in flight twice.
    pub fn withdraw_losses(&mut self) {
        for place in self.first..self.segments.end() {
            let Some(sent) = self.segments.at_mut(place) else { break };
            sent.flags &= !LOST;
        }
        self.lost_bytes = 0;
        self.pending_bytes = 0;
        self.loss_edge = 0;
        self.cursor = self.next;
        self.order_by_time();
    }

    /// Whether something is in flight that was sent again.
    pub fn has_resent(&self) -> bool {
        self.resent_bytes > 0
    }

    /// When the oldest segment last left.
    pub fn oldest_sent_at(&self) -> Option<Nanoseconds> {
        self.segments().next().map(|(_, first)| first.sent_at)
    }

    /// What is declared lost.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Declares the oldest segment lost, and allows its retransmission even after an earlier one.
    pub fn declare_first_lost(&mut self) {
        let Some(first) = self.first_mut() else {
            return;
        };
        if first.flags & (RESENT | SACKED) == RESENT {
            first.flags &= !RESENT;
            let length = u64::from(first.length);
            let was_lost = first.flags & LOST != 0;
            let start = first.start;
            self.resent_bytes -= length;
            if was_lost {
                self.pending_bytes += length;
                self.cursor = self.cursor.min(start);
            }
        }
        self.declare_lost(self.first);
    }

    /// The timer expired: all that was not reported is lost, and lost again. If the oldest segment was reported, the
    /// peer dropped it after all and none of its reports counts (RFC 2018, section 8).
    pub fn declare_all_lost(&mut self) {
        let forget_reports = self.segments().next().is_some_and(|(_, first)| first.flags & SACKED != 0);
        if forget_reports {
            self.reported.clear();
            self.loss_edge = 0;
            self.sacked_bytes = 0;
            self.sacked_segments = 0;
        }
        self.lost_bytes = 0;
        self.resent_bytes = 0;
        for place in self.first..self.segments.end() {
            let Some(sent) = self.segments.at_mut(place) else { break };
            if forget_reports {
                sent.flags &= !SACKED;
            }
            if sent.flags & SACKED == 0 {
                sent.flags = (sent.flags | LOST) & !RESENT;
                self.lost_bytes += u64::from(sent.length);
            }
        }
        self.pending_bytes = self.lost_bytes;
        self.ever_lost_bytes += self.lost_bytes;
        self.cursor = self.unacknowledged;
    }
}

//! What was sent and not acknowledged, segment by segment: the scoreboard of RFC 6675 in amortised constant time.

mod clean;
mod sent;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use pepscope_path::Nanoseconds;

use crate::intervals::Intervals;
pub(crate) use sent::{DeliveryStamp, Sent};
use sent::{EVER_RESENT, FIN, LOST, RESENT, SACKED};

/// Duplicates, or segments reported beyond it, that tell a loss (DupThresh of RFC 6675; RFC 5681, section 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u32 = 3;

/// What an ACK released.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Released {
    pub bytes: u64,
    /// Without what had been reported by SACK before.
    pub newly_delivered_bytes: u64,
    /// When the newest segment left, if none of those released was sent twice or reported before.
    pub newest_sent_at: Option<Nanoseconds>,
    /// When the latest of those newly delivered left, of those sent once and of those sent again.
    pub latest_sent_at: Option<Nanoseconds>,
    pub latest_resent_at: Option<Nanoseconds>,
    /// Of the segment sent last among those newly delivered.
    pub stamp: Option<DeliveryStamp>,
}

impl Released {
    #[inline]
    fn note(&mut self, sent: &Sent) {
        let latest = if sent.flags & EVER_RESENT == 0 { &mut self.latest_sent_at } else { &mut self.latest_resent_at };
        *latest = (*latest).max(Some(sent.sent_at));
    }

    #[inline]
    fn keep_latest(&mut self, stamp: DeliveryStamp) {
        if self.stamp.is_none_or(|kept| stamp.delivered_bytes >= kept.delivered_bytes) {
            self.stamp = Some(stamp);
        }
    }
}

/// Segments from the oldest not acknowledged to the newest sent.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    segments: VecDeque<Sent>,
    /// One for each segment, or none at all.
    stamps: VecDeque<DeliveryStamp>,
    keeps_stamps: bool,
    unacknowledged: u64,
    next: u64,
    sacked_bytes: u64,
    lost_bytes: u64,
    /// Lost and not sent again.
    pending_bytes: u64,
    /// Sent again, declared lost or not.
    resent_bytes: u64,
    reported: Intervals,
    /// Below it, whatever was not reported is lost.
    loss_edge: u64,
    /// Below it, nothing waits to be sent again.
    cursor: u64,
}

impl Flight {
    /// Nothing in flight; the next position to send is `next`.
    pub fn new(next: u64, keeps_stamps: bool) -> Self {
        Self {
            segments: VecDeque::new(),
            stamps: VecDeque::new(),
            keeps_stamps,
            unacknowledged: next,
            next,
            sacked_bytes: 0,
            lost_bytes: 0,
            pending_bytes: 0,
            resent_bytes: 0,
            reported: Intervals::default(),
            loss_edge: 0,
            cursor: 0,
        }
    }

    /// Position of the oldest byte not acknowledged (SND.UNA).
    #[inline]
    pub fn unacknowledged(&self) -> u64 {
        self.unacknowledged
    }

    /// Position after the newest sent (SND.NXT).
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Sent and not acknowledged (FlightSize of RFC 5681).
    #[inline]
    pub fn outstanding_bytes(&self) -> u64 {
        self.next - self.unacknowledged
    }

    /// Estimate of what is in the network (pipe of RFC 6675, section 4).
    #[inline]
    pub fn pipe_bytes(&self) -> u64 {
        let outstanding = self.next - self.unacknowledged;
        if self.resent_bytes | self.sacked_bytes | self.lost_bytes == 0 {
            return outstanding;
        }
        (outstanding + self.resent_bytes).saturating_sub(self.sacked_bytes + self.lost_bytes)
    }

    #[inline]
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Whether something declared lost waits to be sent again.
    #[inline]
    pub fn has_pending(&self) -> bool {
        self.pending_bytes > 0
    }

    /// Lost and not sent again.
    #[inline]
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Whether the oldest segment is declared lost.
    pub fn is_first_lost(&self) -> bool {
        self.segments.front().is_some_and(|first| first.flags & LOST != 0)
    }

    /// A new segment leaves.
    #[inline]
    pub fn push(&mut self, length: u32, has_fin: bool, now: Nanoseconds, stamp: DeliveryStamp) {
        self.segments.push_back(Sent { start: self.next, length, flags: if has_fin { FIN } else { 0 }, sent_at: now });
        if self.keeps_stamps {
            self.stamps.push_back(stamp);
        }
        self.next += u64::from(length);
    }

    /// Everything before `position` is acknowledged; it must not lie before the oldest or after the newest.
    #[inline]
    pub fn advance(&mut self, position: u64) -> Released {
        let mut released = Released { bytes: position - self.unacknowledged, ..Released::default() };
        let mut is_clean = true;
        let mut newest_sent_at = None;
        while let Some(first) = self.segments.front_mut() {
            let end = first.end();
            if end > position {
                if first.start < position {
                    let part = (position - first.start) as u32;
                    let flags = first.flags;
                    first.start = position;
                    first.length -= part;
                    self.forget(flags, u64::from(part));
                    if flags & SACKED == 0 {
                        released.newly_delivered_bytes += u64::from(part);
                    }
                }
                break;
            }
            let sent = *first;
            self.segments.pop_front();
            let stamp = if self.keeps_stamps { self.stamps.pop_front() } else { None };
            if sent.flags & SACKED == 0 {
                released.newly_delivered_bytes += u64::from(sent.length);
                newest_sent_at = Some(sent.sent_at);
                released.note(&sent);
                if let Some(stamp) = stamp {
                    released.keep_latest(stamp);
                }
            }
            if sent.flags & !FIN != 0 {
                is_clean = false;
                self.forget(sent.flags, u64::from(sent.length));
            }
        }
        if is_clean {
            released.newest_sent_at = newest_sent_at;
        }
        self.unacknowledged = position;
        if !self.reported.is_empty() {
            self.reported.remove_below(position);
        }
        released
    }

    fn forget(&mut self, flags: u8, bytes: u64) {
        if flags & SACKED != 0 {
            self.sacked_bytes -= bytes;
            return;
        }
        if flags & LOST != 0 {
            self.lost_bytes -= bytes;
        }
        if flags & RESENT != 0 {
            self.resent_bytes -= bytes;
        } else if flags & LOST != 0 {
            self.pending_bytes -= bytes;
        }
    }

    /// Takes a block [`left`, `right`) that the peer reported; adds to `released` what is new in it.
    pub fn report(&mut self, left: u64, right: u64, released: &mut Released) {
        let left = left.max(self.unacknowledged);
        if left >= right || right > self.next {
            return;
        }
        let mut gaps = [(0, 0); 1];
        let mut has_gap = false;
        // Consecutive gaps are walked as one stretch: what lies between them is marked already and skipped.
        let merged = self.reported.insert(left, right, |from, to| {
            gaps[0] = if has_gap { (gaps[0].0, to) } else { (from, to) };
            has_gap = true;
        });
        if !has_gap {
            return;
        }
        let first = self.segments.partition_point(|sent| sent.end() <= gaps[0].0);
        for index in first..self.segments.len() {
            let sent = &mut self.segments[index];
            if sent.start >= gaps[0].1 {
                break;
            }
            if sent.flags & SACKED != 0 || sent.start < merged.0 || sent.end() > merged.1 {
                continue;
            }
            let (flags, length) = (sent.flags, u64::from(sent.length));
            released.note(sent);
            sent.flags |= SACKED;
            if flags & EVER_RESENT == 0 {
                released.newest_sent_at = released.newest_sent_at.max(Some(sent.sent_at));
            }
            self.forget(flags, length);
            self.sacked_bytes += length;
            released.newly_delivered_bytes += length;
            if let Some(stamp) = self.stamps.get(index) {
                released.keep_latest(*stamp);
            }
        }
    }

    /// Declares lost what three reported stretches, or more than two segments' bytes reported, lie beyond (IsLost of
    /// RFC 6675, section 4).
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
        let first = self.segments.partition_point(|sent| sent.start < from);
        for index in first..self.segments.len() {
            if self.segments[index].start >= edge {
                break;
            }
            self.declare_lost(index);
        }
        self.loss_edge = edge;
    }

    fn declare_lost(&mut self, index: usize) {
        let sent = &mut self.segments[index];
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
    }

    /// Declares lost again what was last sent again before `sent_at`, which the peer has something from; whether there was
    /// any.
    pub fn declare_lost_again(&mut self, sent_at: Nanoseconds) -> bool {
        if self.resent_bytes == 0 {
            return false;
        }
        let mut found = false;
        for index in 0..self.segments.len() {
            let sent = &mut self.segments[index];
            if sent.flags & (SACKED | LOST | RESENT) == LOST | RESENT && sent.sent_at < sent_at {
                sent.flags &= !RESENT;
                let (length, start) = (u64::from(sent.length), sent.start);
                self.resent_bytes -= length;
                self.pending_bytes += length;
                self.cursor = self.cursor.min(start);
                found = true;
            }
        }
        found
    }

    /// When the oldest segment last left.
    pub fn oldest_sent_at(&self) -> Option<Nanoseconds> {
        self.segments.front().map(|first| first.sent_at)
    }

    /// What is declared lost.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Declares the oldest segment lost, and lets it be sent again even if it was already.
    pub fn declare_first_lost(&mut self) {
        let Some(first) = self.segments.front_mut() else {
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
        self.declare_lost(0);
    }

    /// The timer expired: all that was not reported is lost, and lost again. If the oldest segment was reported, the peer
    /// dropped it after all and none of its reports counts (RFC 2018, section 8).
    pub fn declare_all_lost(&mut self) {
        let forget_reports = self.segments.front().is_some_and(|first| first.flags & SACKED != 0);
        if forget_reports {
            self.reported.clear();
            self.loss_edge = 0;
            self.sacked_bytes = 0;
        }
        self.lost_bytes = 0;
        self.resent_bytes = 0;
        for sent in &mut self.segments {
            if forget_reports {
                sent.flags &= !SACKED;
            }
            if sent.flags & SACKED == 0 {
                sent.flags = (sent.flags | LOST) & !RESENT;
                self.lost_bytes += u64::from(sent.length);
            }
        }
        self.pending_bytes = self.lost_bytes;
        self.cursor = self.unacknowledged;
    }

    /// The oldest segment that is lost and not sent again.
    pub fn first_pending(&mut self) -> Option<(usize, Sent)> {
        let from = self.cursor.max(self.unacknowledged);
        let first = self.segments.partition_point(|sent| sent.start < from);
        for index in first..self.segments.len() {
            let sent = self.segments[index];
            if sent.flags & (LOST | RESENT | SACKED) == LOST {
                self.cursor = sent.start;
                return Some((index, sent));
            }
        }
        self.cursor = self.next;
        None
    }

    /// A segment that is not declared lost but missing below the highest reported, and was not sent again (rule 3 of
    /// NextSeg, RFC 6675, section 4).
    pub fn first_missing(&self) -> Option<(usize, Sent)> {
        let highest = self.reported.highest()?;
        let from = self.loss_edge.max(self.unacknowledged);
        let first = self.segments.partition_point(|sent| sent.start < from);
        for index in first..self.segments.len() {
            let sent = self.segments[index];
            if sent.end() > highest {
                break;
            }
            if sent.flags & (RESENT | SACKED) == 0 {
                return Some((index, sent));
            }
        }
        None
    }

    /// The newest segment not reported (rule 4 of NextSeg).
    pub fn last_unreported(&self) -> Option<(usize, Sent)> {
        let index = self.segments.iter().rposition(|sent| sent.flags & SACKED == 0)?;
        Some((index, self.segments[index]))
    }

    /// The segment at `index` is sent again.
    pub fn resend(&mut self, index: usize, now: Nanoseconds, stamp: DeliveryStamp) {
        let Some(sent) = self.segments.get_mut(index) else {
            return;
        };
        let length = u64::from(sent.length);
        if sent.flags & RESENT == 0 {
            self.resent_bytes += length;
            if sent.flags & LOST != 0 {
                self.pending_bytes -= length;
            }
        }
        sent.flags |= RESENT | EVER_RESENT;
        sent.sent_at = now;
        if let Some(place) = self.stamps.get_mut(index) {
            *place = stamp;
        }
    }
}

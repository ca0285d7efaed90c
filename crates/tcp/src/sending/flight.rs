//! What was sent and not acknowledged, segment by segment: the scoreboard of RFC 6675 in amortised constant time.

mod by_time;
mod clean;
mod losses;
mod repeats;
mod sent;
#[cfg(test)]
mod tests;

use pepscope_path::{Nanoseconds, Ring};

use crate::receiving::intervals::Intervals;
use by_time::Unsettled;
pub(crate) use sent::{DeliveryStamp, Sent};
use sent::{EVER_RESENT, FIN, LOST, RESENT, SACKED};

/// Duplicate ACKs, or segments reported beyond a hole, that reveal a loss (DupThresh of RFC 6675; RFC 5681, section
/// 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u32 = 3;

/// What an ACK released.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Released {
    pub bytes: u64,
    /// The bytes delivered for the first time, without those that SACK had reported before.
    pub newly_delivered_bytes: u64,
    /// When the newest segment left, if none of those released was sent twice or reported before.
    pub newest_sent_at: Option<Nanoseconds>,
    /// When the latest of those newly delivered left and where it ends, of those sent once and of those sent again.
    latest_once: Option<(Nanoseconds, u64)>,
    latest_resent: Option<(Nanoseconds, u64)>,
    /// Of those sent once.
    lowest_once: Option<(u64, u64)>,
    /// Of the segment sent last among those newly delivered.
    pub stamp: Option<DeliveryStamp>,
}

impl Released {
    #[inline]
    fn note(&mut self, sent: &Sent) {
        let latest = Some((sent.sent_at, sent.end()));
        if sent.flags & EVER_RESENT == 0 {
            self.latest_once = self.latest_once.max(latest);
            let lowest = (sent.start, sent.end());
            self.lowest_once = Some(self.lowest_once.map_or(lowest, |known| known.min(lowest)));
        } else {
            self.latest_resent = self.latest_resent.max(latest);
        }
    }

    /// When the latest left that was sent once.
    #[inline]
    pub fn latest_sent_at(&self) -> Option<Nanoseconds> {
        self.latest_once.map(|(sent_at, _)| sent_at)
    }

    /// When the latest left that was sent again.
    #[inline]
    pub fn latest_resent_at(&self) -> Option<Nanoseconds> {
        self.latest_resent.map(|(sent_at, _)| sent_at)
    }

    /// When the latest left, where it ends, and whether it was sent again.
    pub fn latest(&self) -> Option<(Nanoseconds, u64, bool)> {
        let of = |latest: Option<(Nanoseconds, u64)>, again| latest.map(|(sent_at, end)| (sent_at, end, again));
        of(self.latest_once, false).max(of(self.latest_resent, true))
    }

    /// Where the lowest begins and ends of those that were sent once.
    pub fn lowest_once(&self) -> Option<(u64, u64)> {
        self.lowest_once
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
    segments: Ring<Sent>,
    /// One for each segment, at the same place, or none at all.
    stamps: Ring<DeliveryStamp>,
    /// Place of the oldest segment.
    first: usize,
    keeps_stamps: bool,
    unacknowledged: u64,
    next: u64,
    sacked_bytes: u64,
    sacked_segments: u64,
    /// All that was ever declared lost, and of what is not yet taken the stamp of what was sent first.
    ever_lost_bytes: u64,
    first_lost: Option<DeliveryStamp>,
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
    unsettled: Unsettled,
}

impl Flight {
    /// Nothing in flight; the next position to send is `next`.
    pub fn new(next: u64, keeps_stamps: bool) -> Self {
        Self {
            segments: Ring::new(),
            stamps: Ring::new(),
            first: 0,
            keeps_stamps,
            unacknowledged: next,
            next,
            sacked_bytes: 0,
            sacked_segments: 0,
            ever_lost_bytes: 0,
            first_lost: None,
            lost_bytes: 0,
            pending_bytes: 0,
            resent_bytes: 0,
            reported: Intervals::default(),
            loss_edge: 0,
            cursor: 0,
            unsettled: Unsettled::default(),
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

    /// Segments reported by SACK.
    #[inline]
    pub fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    /// All that was declared lost since the start, every time.
    #[inline]
    pub fn ever_lost_bytes(&self) -> u64 {
        self.ever_lost_bytes
    }

    /// The stamp of the segment that was sent first of those that were declared lost since the last call.
    #[inline]
    pub fn take_first_lost(&mut self) -> Option<DeliveryStamp> {
        self.first_lost.take()
    }

    /// The end of the highest range reported by SACK.
    pub fn highest_reported(&self) -> Option<u64> {
        self.reported.highest()
    }

    /// Whether there is just one segment.
    pub fn is_single(&self) -> bool {
        self.segments.end() == self.first + 1
    }

    /// The newest segment, and its place.
    pub fn last(&self) -> Option<(usize, Sent)> {
        self.segments().next_back().map(|(place, sent)| (place, *sent))
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
        self.segments().next().is_some_and(|(_, first)| first.flags & LOST != 0)
    }

    /// Place of the oldest segment.
    pub fn first_place(&self) -> usize {
        self.first
    }

    /// Places and segments, the oldest first.
    fn segments(&self) -> impl DoubleEndedIterator<Item = (usize, &Sent)> {
        self.segments_from(self.first)
    }

    fn segments_from(&self, place: usize) -> impl DoubleEndedIterator<Item = (usize, &Sent)> {
        (place..self.segments.end()).filter_map(|place| Some((place, self.segments.at(place)?)))
    }

    /// The oldest segment.
    #[inline]
    fn first_mut(&mut self) -> Option<&mut Sent> {
        if self.first == self.segments.end() {
            return None;
        }
        self.segments.at_mut(self.first)
    }

    /// Place of the first segment that is not `before` what is looked for, where all that are come first.
    fn place_after(&self, before: impl Fn(&Sent) -> bool) -> usize {
        let (mut low, mut high) = (self.first, self.segments.end());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.segments.at(middle).is_some_and(&before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// A new segment leaves.
    #[inline]
    pub fn push(&mut self, length: u32, has_fin: bool, now: Nanoseconds, stamp: DeliveryStamp) {
        let flags = if has_fin { FIN } else { 0 };
        *self.segments.push_slot(self.first) = Sent { start: self.next, length, flags, sent_at: now };
        if self.keeps_stamps {
            *self.stamps.push_slot(self.first) = stamp;
        }
        self.next += u64::from(length);
    }

    /// Everything before `position` is acknowledged; it must not lie before the oldest or after the newest.
    #[inline]
    pub fn advance(&mut self, position: u64) -> Released {
        let mut released = Released { bytes: position - self.unacknowledged, ..Released::default() };
        let mut is_clean = true;
        let mut newest_sent_at = None;
        while let Some(first) = self.first_mut() {
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
            let stamp = self.stamp(self.first);
            self.first += 1;
            self.sacked_segments -= u64::from(sent.flags & SACKED != 0);
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

    /// The stamp of the segment at `place`, if stamps are stored.
    #[inline]
    fn stamp(&self, place: usize) -> Option<DeliveryStamp> {
        if self.keeps_stamps {
            self.stamps.at(place).copied()
        } else {
            None
        }
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
        // Consecutive gaps are processed as one range: the segments between them are already marked and skipped.
        let merged = self.reported.insert(left, right, |from, to| {
            gaps[0] = if has_gap { (gaps[0].0, to) } else { (from, to) };
            has_gap = true;
        });
        if !has_gap {
            return;
        }
        for place in self.place_after(|sent| sent.end() <= gaps[0].0)..self.segments.end() {
            let Some(sent) = self.segments.at_mut(place) else { break };
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
            self.sacked_segments += 1;
            released.newly_delivered_bytes += length;
            if let Some(stamp) = self.stamp(place) {
                released.keep_latest(stamp);
            }
        }
    }
}

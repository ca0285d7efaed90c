//! What is simpler where nothing was lost, reported or sent again: nearly always.

use pepscope_path::Nanoseconds;

use super::sent::Sent;
use super::Flight;

impl Flight {
    /// Whether nothing in flight is lost, reported or sent again.
    #[inline]
    pub fn is_clean(&self) -> bool {
        self.resent_bytes | self.sacked_bytes | self.lost_bytes == 0 && self.reported.is_empty()
    }

    /// [`Flight::push`], `count` times, for data where no stamps are kept.
    #[inline(always)]
    pub fn push_plain(&mut self, count: usize, length: u32, now: Nanoseconds) {
        for _ in 0..count {
            *self.segments.push_slot(self.first) = Sent { start: self.next, length, flags: 0, sent_at: now };
            self.next += u64::from(length);
        }
    }

    /// [`Flight::advance`] for a clean flight without stamps: when the newest of the released segments left. `None`, with
    /// nothing done, unless `position` is the end of a segment.
    #[inline(always)]
    pub fn advance_clean(&mut self, position: u64) -> Option<Nanoseconds> {
        let mut place = self.first;
        while place < self.segments.end() {
            let sent = self.segments.at(place)?;
            place += 1;
            if sent.end() >= position {
                if sent.end() > position {
                    return None;
                }
                self.first = place;
                self.unacknowledged = position;
                return Some(sent.sent_at);
            }
        }
        None
    }
}

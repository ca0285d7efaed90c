//! The fast path of the flight: nothing in it is lost, reported or retransmitted.

use pepscope_path::Nanoseconds;

use super::sent::Sent;
use super::Flight;

impl Flight {
    /// Whether nothing in flight is lost, reported by SACK or retransmitted.
    #[inline]
    pub fn is_clean(&self) -> bool {
        self.resent_bytes | self.sacked_bytes | self.lost_bytes == 0 && self.reported.is_empty()
    }

    /// [`Flight::push`], `count` times, for data without stored stamps.
    #[inline(always)]
    pub fn push_plain(&mut self, count: usize, length: u32, now: Nanoseconds) {
        for _ in 0..count {
            *self.segments.push_slot(self.first) = Sent { start: self.next, length, flags: 0, sent_at: now };
            self.next += u64::from(length);
        }
    }

    /// [`Flight::advance`] for a clean flight without stamps: returns when the newest of the released segments left.
    /// Returns `None` and does nothing unless `position` is the end of a segment.
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

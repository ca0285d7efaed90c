//! Which segments are to be sent again.

use pepscope_path::Nanoseconds;

use super::sent::{DeliveryStamp, Sent, EVER_RESENT, LOST, RESENT, SACKED};
use super::Flight;

impl Flight {
    /// The oldest segment that is lost and not sent again, and its place.
    pub fn first_pending(&mut self) -> Option<(usize, Sent)> {
        let from = self.cursor.max(self.unacknowledged);
        let first = self.place_after(|sent| sent.start < from);
        let found = self
            .segments_from(first)
            .find(|(_, sent)| sent.flags & (LOST | RESENT | SACKED) == LOST)
            .map(|(place, sent)| (place, *sent));
        self.cursor = found.map_or(self.next, |(_, sent)| sent.start);
        found
    }

    /// A segment that is not declared lost but missing below the highest reported, and was not sent again (rule 3 of
    /// NextSeg, RFC 6675, section 4).
    pub fn first_missing(&self) -> Option<(usize, Sent)> {
        let highest = self.reported.highest()?;
        let from = self.loss_edge.max(self.unacknowledged);
        let first = self.place_after(|sent| sent.start < from);
        self.segments_from(first)
            .take_while(|(_, sent)| sent.end() <= highest)
            .find(|(_, sent)| sent.flags & (RESENT | SACKED) == 0)
            .map(|(place, sent)| (place, *sent))
    }

    /// The newest segment not reported (rule 4 of NextSeg).
    pub fn last_unreported(&self) -> Option<(usize, Sent)> {
        let (place, sent) = self.segments().rfind(|(_, sent)| sent.flags & SACKED == 0)?;
        Some((place, *sent))
    }

    /// The segment at `place` is sent again.
    pub fn resend(&mut self, place: usize, now: Nanoseconds, stamp: DeliveryStamp) {
        let Some(sent) = self.segments.at_mut(place) else { return };
        let length = u64::from(sent.length);
        if sent.flags & RESENT == 0 {
            self.resent_bytes += length;
            if sent.flags & LOST != 0 {
                self.pending_bytes -= length;
            }
        }
        sent.flags |= RESENT | EVER_RESENT;
        sent.sent_at = now;
        self.note_resent(place, now);
        if self.keeps_stamps {
            if let Some(kept) = self.stamps.at_mut(place) {
                *kept = stamp;
            }
        }
    }
}

//! Losses that time shows (RACK, RFC 8985): segments in the order in which they left, without those of which nothing is to
//! be found out any more. While losses are repaired each acknowledgement asks, of a flight of hundreds of segments.

use std::collections::VecDeque;

use pepscope_path::Nanoseconds;

use super::sent::{Sent, EVER_RESENT, LOST, RESENT, SACKED};
use super::Flight;

/// What is left to look at.
#[derive(Clone, Debug, Default)]
pub(super) struct Unsettled {
    /// The place before which each segment is reported, lost, or was sent again.
    once_from: usize,
    /// When segments were sent again, and their places, in order of time; some have left or been reported since.
    resent: VecDeque<(Nanoseconds, usize)>,
    /// Places of what is found, empty but for its memory.
    found: Vec<usize>,
}

/// Whether it is neither reported, nor lost and still to be sent again.
fn is_open(sent: &Sent) -> bool {
    sent.flags & SACKED == 0 && sent.flags & (LOST | RESENT) != LOST
}

impl Flight {
    /// The segment at `place` was sent again at `now`.
    pub(super) fn note_resent(&mut self, place: usize, now: Nanoseconds) {
        let first = self.first;
        while self.unsettled.resent.front().is_some_and(|(_, place)| *place < first) {
            self.unsettled.resent.pop_front();
        }
        self.unsettled.resent.push_back((now, place));
    }

    /// What was lost no longer is.
    pub(super) fn order_by_time(&mut self) {
        let is_again = |sent: &Sent| sent.flags & EVER_RESENT != 0 && is_open(sent);
        let again = self.segments().filter(|(_, sent)| is_again(sent)).map(|(place, sent)| (sent.sent_at, place));
        let mut resent: Vec<_> = again.collect();
        resent.sort_unstable();
        (self.unsettled.once_from, self.unsettled.resent) = (self.first, resent.into());
    }

    /// The segment that was sent again at `sent_at` and not since, if it is in flight and open.
    fn open_resent(&self, sent_at: Nanoseconds, place: usize) -> Option<&Sent> {
        let is_in_flight = (self.first..self.segments.end()).contains(&place);
        self.segments.at(place).filter(|sent| is_in_flight && sent.sent_at == sent_at && is_open(sent))
    }

    /// Declares lost what last left before `latest` (a time and, for those of one time, an end) and more than `allowed` ago;
    /// whether there was any, and how long to wait until the last of the others is.
    pub fn declare_lost_by_time(
        &mut self,
        latest: (Nanoseconds, u64),
        now: Nanoseconds,
        allowed: Nanoseconds,
    ) -> (bool, Option<Nanoseconds>) {
        let mut found = std::mem::take(&mut self.unsettled.found);
        let mut wait = None;
        let mut judge = |place, sent: &Sent| {
            let expiry = sent.sent_at.saturating_add(allowed);
            if expiry > now {
                wait = wait.max(Some(expiry - now));
            } else {
                found.push(place);
            }
        };
        let mut once_from = self.unsettled.once_from.max(self.first);
        for (place, sent) in self.segments_from(once_from) {
            let is_once = sent.flags & EVER_RESENT == 0;
            if is_once && (sent.sent_at, sent.end()) >= latest {
                break; // those after it left later
            }
            if is_once && sent.flags & (SACKED | LOST) == 0 {
                judge(place, sent);
            } else if place == once_from {
                once_from += 1;
            }
        }
        while self.unsettled.resent.front().is_some_and(|(at, place)| self.open_resent(*at, *place).is_none()) {
            self.unsettled.resent.pop_front();
        }
        for (sent_at, place) in self.unsettled.resent.iter().take_while(|(sent_at, _)| *sent_at <= latest.0) {
            if let Some(sent) = self.open_resent(*sent_at, *place).filter(|sent| (sent.sent_at, sent.end()) < latest) {
                judge(*place, sent);
            }
        }
        self.unsettled.once_from = once_from;
        found.sort_unstable();
        found.dedup();
        found.iter().for_each(|place| self.lose_by_time(*place));
        let has_found = !found.is_empty();
        found.clear();
        self.unsettled.found = found;
        (has_found, wait)
    }

    fn lose_by_time(&mut self, place: usize) {
        let Some(sent) = self.segments.at_mut(place) else { return };
        let (flags, length, start) = (sent.flags, u64::from(sent.length), sent.start);
        sent.flags &= !RESENT;
        if flags & RESENT != 0 {
            self.resent_bytes -= length;
        }
        if flags & LOST == 0 {
            self.declare_lost(place);
        } else {
            self.pending_bytes += length;
            self.cursor = self.cursor.min(start);
            self.note_loss(place, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DeliveryStamp, Flight, Released};
    use super::{Nanoseconds, EVER_RESENT, LOST, RESENT, SACKED};
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    const SEGMENT: u64 = 100;

    /// The same by looking at every segment.
    fn declare_lost_by_definition(
        flight: &mut Flight,
        latest: (Nanoseconds, u64),
        now: Nanoseconds,
        allowed: Nanoseconds,
    ) -> (bool, Option<Nanoseconds>) {
        let (mut found, mut wait) = (false, None);
        for place in flight.first..flight.segments.end() {
            let sent = *flight.segments.at(place).expect("a segment");
            let is_settled = sent.flags & SACKED != 0 || sent.flags & (LOST | RESENT) == LOST;
            if is_settled || (sent.sent_at, sent.end()) >= latest {
                continue;
            }
            if sent.sent_at + allowed > now {
                wait = wait.max(Some(sent.sent_at + allowed - now));
            } else {
                flight.lose_by_time(place);
                found = true;
            }
        }
        (found, wait)
    }

    /// Everything that a loss changes.
    fn state(flight: &Flight) -> impl PartialEq + std::fmt::Debug {
        let segments: Vec<_> = flight.segments().map(|(place, sent)| (place, sent.flags, sent.sent_at)).collect();
        let lost = (flight.lost_bytes, flight.pending_bytes, flight.resent_bytes, flight.ever_lost_bytes);
        (segments, lost, flight.cursor, flight.first_lost.map(|stamp| (stamp.sent_at, stamp.in_flight_bytes)))
    }

    fn operate(flight: &mut Flight, now: Nanoseconds, (operation, place, count): (u8, usize, usize)) {
        let stamp =
            DeliveryStamp { sent_at: now, in_flight_bytes: flight.outstanding_bytes(), ..DeliveryStamp::default() };
        let chosen = flight.segments().nth(place).map(|(place, sent)| (place, *sent));
        match (operation, chosen) {
            (0..=3, _) => (0..count).for_each(|_| flight.push(SEGMENT as u32, false, now, stamp)),
            (4 | 5, Some((_, sent))) => {
                let right = (sent.start + count as u64 * SEGMENT).min(flight.next());
                flight.report(sent.start, right, &mut Released::default());
            }
            (6, Some((_, sent))) => drop(flight.advance(sent.start)),
            (7 | 8, _) => {
                for _ in 0..count {
                    let Some((place, _)) = flight.first_pending() else { break };
                    flight.resend(place, now, stamp);
                }
            }
            (9, Some((place, sent))) if sent.flags & (SACKED | EVER_RESENT) == 0 => flight.resend(place, now, stamp),
            (10, _) if count == 1 => flight.withdraw_losses(),
            (10, _) if count == 2 => flight.declare_all_lost(),
            (10, _) => flight.declare_first_lost(),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_looking_at_all_finds(
            operations in prop::collection::vec((0u8..16, 0usize..30, 1usize..6, 0u64..4), 1..200),
        ) {
            let mut flights = [Flight::new(1, true), Flight::new(1, true)];
            let mut now = 0;
            for (operation, place, count, pause) in operations {
                now += pause;
                let chosen = flights[0].segments().nth(place).map(|(_, sent)| *sent);
                if operation <= 10 {
                    flights.iter_mut().for_each(|flight| operate(flight, now, (operation, place, count)));
                } else if let Some(sent) = chosen {
                    let (latest, allowed) = ((sent.sent_at, sent.end()), 2 * count as u64);
                    let [one, other] = &mut flights;
                    let found = one.declare_lost_by_time(latest, now, allowed);
                    prop_assert_eq!(found, declare_lost_by_definition(other, latest, now, allowed));
                }
                prop_assert_eq!(state(&flights[0]), state(&flights[1]));
            }
        }
    }
}

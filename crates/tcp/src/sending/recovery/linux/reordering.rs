//! RACK: what was sent before something that has arrived, longer ago than a round trip and a window for reordering, is lost
//! (RFC 8985, section 6.2; net/ipv4/tcp_recovery.c).

use pepscope_path::Nanoseconds;

use super::{Reading, Timer, LEAST_WAIT};
use crate::sending::flight::Released;
use crate::sending::sender::Sender;

/// Segments that arrive out of order without being taken for lost, until more are seen (tcp_reordering).
const REORDERING: u64 = 3;
/// tcp_max_reordering.
const MOST_REORDERING: u64 = 300;
/// The window is this part of the shortest round trip, times steps, and at most this part of the smoothed one.
const SHORTEST_DIVISOR: u64 = 4;
const SMOOTHED_DIVISOR: u64 = 8;
const MOST_STEPS: u64 = 255;
/// Recoveries for which a window that duplicates widened is kept (TCP_RACK_RECOVERY_THRESH).
const PERSISTENCE: u32 = 16;

#[derive(Clone, Debug)]
pub(super) struct Reordering {
    /// Of the segment sent last of those that arrived: when it left, its end, and its round trip.
    latest: Option<(Nanoseconds, u64)>,
    round_trip: Nanoseconds,
    is_seen: bool,
    segments: u64,
    steps: u64,
    persistence: u32,
    /// Duplicates up to here were counted: one step a round trip.
    steps_until: u64,
}

impl Default for Reordering {
    fn default() -> Self {
        Self {
            latest: None,
            round_trip: 0,
            is_seen: false,
            segments: REORDERING,
            steps: 1,
            persistence: 0,
            steps_until: 0,
        }
    }
}

impl Reordering {
    /// A segment that was sent once and arrived below one that was reported before shows reordering
    /// (tcp_check_sack_reordering); a duplicate shows that the window is too small (tcp_rack_update_reo_wnd).
    pub fn note(&mut self, reading: &Reading, released: &Released, segment_bytes: u64, next: u64) {
        if let (Some(highest), Some((start, _))) = (reading.highest_before, released.lowest_once()) {
            self.see(start, highest, segment_bytes);
        }
        if reading.duplicate.is_some() && reading.acknowledgement > self.steps_until {
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.persistence = PERSISTENCE;
            self.steps_until = next;
        }
    }

    /// What begins at `start` arrived after what ends at `highest`.
    pub fn see(&mut self, start: u64, highest: u64, segment_bytes: u64) {
        if start < highest {
            self.is_seen = true;
            self.segments = self.segments.max((highest - start).div_ceil(segment_bytes)).min(MOST_REORDERING);
        }
    }

    /// Takes the newest of what arrived (tcp_rack_advance). What arrived sooner than the shortest round trip after it was
    /// sent again was the first copy.
    pub fn advance(&mut self, now: Nanoseconds, released: &Released, shortest_round_trip: Nanoseconds) {
        let Some((sent_at, end, is_resent)) = released.latest() else { return };
        let round_trip = now - sent_at;
        if is_resent && round_trip < shortest_round_trip {
            return;
        }
        self.round_trip = round_trip;
        self.latest = self.latest.max(Some((sent_at, end)));
    }

    /// [`Reordering::advance`] over segments that were sent once, the newest at `sent_at`.
    #[inline(always)]
    pub fn advance_undisturbed(&mut self, now: Nanoseconds, sent_at: Nanoseconds, end: u64) {
        self.round_trip = now - sent_at;
        if self.latest.is_none_or(|latest| latest < (sent_at, end)) {
            self.latest = Some((sent_at, end));
        }
    }

    pub fn begin_recovery(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.steps = 1;
        }
    }

    /// tcp_rack_reo_wnd: none while nothing was seen to be reordered and losses are certain or being repaired.
    fn window(&self, is_repairing: bool, reported: u64, shortest: Nanoseconds, smoothed: Nanoseconds) -> Nanoseconds {
        if !self.is_seen && (is_repairing || reported >= self.segments) {
            return 0;
        }
        (shortest / SHORTEST_DIVISOR).saturating_mul(self.steps).min(smoothed / SMOOTHED_DIVISOR)
    }
}

impl Sender {
    /// Declares lost what time shows to be, and sets the timer for what it may show later; whether anything was.
    pub(super) fn detect_losses_by_time(&mut self, now: Nanoseconds) -> bool {
        let Some(linux) = &mut self.linux else { return false };
        let Some(latest) = linux.reordering.latest else { return false };
        let window = linux.reordering.window(
            self.episode.is_recovering() || linux.loss.is_some(),
            self.flight.sacked_segments(),
            self.shortest_round_trip,
            self.timer.smoothed().unwrap_or(0),
        );
        let allowed = linux.reordering.round_trip.saturating_add(window);
        let (found, wait) = self.flight.declare_lost_by_time(latest, now, allowed);
        if let Some(wait) = wait {
            self.deadline = now.saturating_add(wait).saturating_add(LEAST_WAIT);
            self.set_timer(Timer::Reordering);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Reordering;
    use pepscope_path::MILLISECOND;

    const SHORTEST: u64 = 40 * MILLISECOND;
    const SMOOTHED: u64 = 64 * MILLISECOND;

    #[test]
    fn three_reports_or_a_repair_leave_no_window_until_reordering_is_seen() {
        let mut reordering = Reordering::default();
        let window =
            |reordering: &Reordering, repairing, reported| reordering.window(repairing, reported, SHORTEST, SMOOTHED);
        assert_eq!(window(&reordering, false, 2), 8 * MILLISECOND, "an eighth of the smoothed round trip");
        assert_eq!((window(&reordering, false, 3), window(&reordering, true, 1)), (0, 0));
        reordering.is_seen = true;
        assert_eq!((window(&reordering, false, 3), window(&reordering, true, 1)), (8 * MILLISECOND, 8 * MILLISECOND));
        assert_eq!(reordering.window(true, 9, 20 * MILLISECOND, SMOOTHED), 5 * MILLISECOND);
        reordering.steps = 3;
        assert_eq!(reordering.window(true, 9, 8 * MILLISECOND, SMOOTHED), 6 * MILLISECOND);
    }

    #[test]
    fn a_window_that_duplicates_widened_shrinks_after_sixteen_recoveries() {
        let mut reordering = Reordering { steps: 4, persistence: super::PERSISTENCE, ..Reordering::default() };
        (0..15).for_each(|_| reordering.begin_recovery());
        assert_eq!(reordering.steps, 4);
        reordering.begin_recovery();
        assert_eq!(reordering.steps, 1);
    }
}

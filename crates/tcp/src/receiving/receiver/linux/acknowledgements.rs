//! When Linux acknowledges: at once at the start and after duplicates (quick ACKs), every second full segment, and what a
//! program has read; later where its answer may carry the ACK.

use pepscope_path::{Nanoseconds, MICROSECOND, MILLISECOND, NEVER};

use super::{LinuxReceiver, LEAST_DELAY};

/// TCP_MAX_QUICKACKS.
const MOST_QUICK: u64 = 16;
/// TCP_DELACK_MAX, and half a second for the estimate of a one-way transfer.
const MOST_DELAY: Nanoseconds = 200 * MILLISECOND;
const MOST_DELAY_ONE_WAY: Nanoseconds = 500 * MILLISECOND;
/// So many ACKs for data out of order leave one by one (TCP_FASTRETRANS_THRESH); later ones wait for one another, at most so
/// many (tcp_comp_sack_nr) for a part of a round trip or so long (tcp_comp_sack_delay_ns, and what its timer may add).
const PLAIN_DUPLICATES: u32 = 3;
const MOST_COMPRESSED: u32 = 44;
const COMPRESSED_PART: u64 = 20;
const COMPRESSED_DELAY: Nanoseconds = MILLISECOND;
const COMPRESSED_SLACK: Nanoseconds = 100 * MICROSECOND;

impl LinuxReceiver {
    /// A duplicate arrived (tcp_enter_quickack_mode).
    pub fn take_duplicate(&mut self) {
        self.raise_quick();
        self.is_interactive = false;
        self.delay = LEAST_DELAY;
    }

    pub(super) fn raise_quick(&mut self) {
        let segments = match self.window_bytes / (2 * self.peer_segment_bytes) {
            0 => 2,
            segments => segments.min(MOST_QUICK),
        };
        self.quick = self.quick.max(segments);
    }

    /// Whether data in order up to `next`, of which the application has not read from `read` on, is acknowledged now
    /// (__tcp_ack_snd_check).
    pub fn acknowledges_now(&self, next: u64, read: u64, shift: u8) -> bool {
        let is_more_than_a_segment = next - self.window_from > self.peer_segment_bytes;
        is_more_than_a_segment && (next == read || self.selected(shift) >= self.window_bytes)
            || self.quick > 0 && !self.is_interactive
    }

    /// How long the ACK for data that came out of order waits for more of them while `next` is missing; `None` if it leaves now.
    pub fn compresses(&mut self, next: u64, read: u64, shift: u8) -> Option<Nanoseconds> {
        self.reports_held = true;
        if self.compressed >= MOST_COMPRESSED || self.acknowledges_now(next, read, shift) {
            return None;
        }
        if self.compressed_at_position != next {
            self.compressed_at_position = next;
            self.duplicates = 0;
        }
        if self.duplicates < PLAIN_DUPLICATES {
            self.duplicates += 1;
            return None;
        }
        self.compressed += 1;
        let round_trip = self.round_trip.unwrap_or(0);
        let round_trip = self.sender.smoothed_round_trip.map_or(round_trip, |smoothed| smoothed.min(round_trip));
        Some((round_trip / COMPRESSED_PART).min(COMPRESSED_DELAY) + COMPRESSED_SLACK)
    }

    /// How long the ACK of what has arrived may wait (tcp_send_delayed_ack).
    pub fn delay(&self) -> Nanoseconds {
        if self.delay <= LEAST_DELAY {
            return self.delay;
        }
        let mut most = if self.is_interactive || self.pushes > 0 { MOST_DELAY } else { MOST_DELAY_ONE_WAY };
        if let Some(round_trip) = self.sender.smoothed_round_trip {
            most = most.min(round_trip.max(LEAST_DELAY));
        }
        self.delay.min(most).min(MOST_DELAY)
    }

    /// The delayed ACK's time has come (tcp_delack_timer_handler).
    pub fn delay_passed(&mut self) {
        if self.is_interactive {
            self.is_interactive = false;
            self.delay = LEAST_DELAY;
        } else {
            self.delay = (2 * self.delay).min(self.sender.timeout.max(LEAST_DELAY));
        }
    }

    /// A segment leaves that acknowledges up to `next`; with payload it shows that the application answers.
    pub fn acknowledged(&mut self, next: u64) {
        if next > self.window_from || std::mem::take(&mut self.reports_held) {
            self.quick = self.quick.saturating_sub(1);
            if self.quick == 0 {
                self.delay = if self.delay == 0 { 0 } else { self.delay.max(LEAST_DELAY) };
            }
        }
        self.pushes = 0;
        self.compressed = 0;
    }

    /// Something is to leave soon that an ACK can ride on (inet_csk_enter_pingpong_mode).
    pub fn expect_answer(&mut self) {
        self.is_interactive = true;
        self.delay = self.delay.max(LEAST_DELAY);
    }

    /// Payload leaves (tcp_event_data_sent).
    pub fn note_data_sent(&mut self, now: Nanoseconds) {
        if self.delay > 0 && now - self.last_received < self.delay {
            self.is_interactive = true;
        }
    }

    /// When an ACK must leave that waits from now on; an earlier time stays.
    pub fn deadline(&self, now: Nanoseconds, before: Nanoseconds) -> Nanoseconds {
        let at = now.saturating_add(self.delay());
        if before == NEVER {
            at
        } else {
            at.min(before)
        }
    }
}

//! Bursts of segments as Linux sends them: Nagle's algorithm in Minshall's form, and segmentation offload, whose bursts end
//! in a pushed segment (net/ipv4/tcp_output.c: `tcp_write_xmit`, `tcp_tso_autosize`, `tcp_tso_should_defer`).

use pepscope_path::{Nanoseconds, MICROSECOND, MILLISECOND, SECOND};

use super::Sender;
use crate::control::CongestionControl;

/// The largest burst with its headers (sk_gso_max_size), and the fewest segments where there are as many (tcp_min_tso_segs).
const MOST_BYTES: u64 = 65_536;
const LEAST_SEGMENTS: u64 = 2;
/// A burst is what leaves in a millisecond (sk_pacing_shift) at the rate of 2 or 1.2 windows a round trip.
const PACING_SHIFT: u32 = 10;
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;
/// Short round trips, in units of 512 us, make bursts longer (tcp_tso_rtt_log).
const ROUND_TRIP_SHIFT: u32 = 9;
/// A part of a window that is sent rather than deferred (tcp_tso_win_divisor).
const WINDOW_DIVISOR: u64 = 3;

/// The burst under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offload {
    start: u64,
    end: u64,
    is_joined: bool,
    /// Where the last segment ended that was shorter than a full one (snd_sml).
    short_end: u64,
}

impl Offload {
    /// Whether a segment that begins at `start` belongs to the burst.
    pub fn continues(&self, start: u64) -> bool {
        self.start <= start && start < self.end
    }

    /// Where the burst ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether PSH is set on the segment up to `end` for the burst's sake, and where the writes begin that may set it.
    pub fn push(&self, end: u64) -> Option<(bool, u64)> {
        (end == self.end).then_some((self.is_joined, self.start))
    }

    pub fn note_sent(&mut self, end: u64, is_short: bool) {
        if is_short {
            self.short_end = end;
        }
    }
}

impl Sender {
    /// Plans the burst that begins at `start`; whether anything of it may leave now. There is something to send.
    pub(super) fn plan_burst(&mut self, now: Nanoseconds, start: u64) -> bool {
        let Some(offload) = self.offload else { return true };
        let segment_bytes = self.segment_bytes;
        let written = self.queue.end().saturating_sub(start);
        let offered = self.right_edge.saturating_sub(start);
        if written == 0 || offered < segment_bytes.min(written) {
            // A FIN alone, or what the general rules for a closed window decide.
            self.offload =
                Some(Offload { start, end: start + written.min(segment_bytes), is_joined: false, ..offload });
            return true;
        }
        let pipe = self.flight.pipe_bytes();
        let window_bytes = self.window_bytes.saturating_add_signed(self.episode.inflation_bytes());
        let room = window_bytes.saturating_sub(pipe) / segment_bytes * segment_bytes;
        let room = if pipe == 0 { room.max(segment_bytes) } else { room };
        if room == 0 {
            return false;
        }
        let most_bytes = self.most_burst_segments() * segment_bytes;
        let limit = room.min(offered);
        if written > segment_bytes && self.defers(now, limit, written, most_bytes) {
            return false;
        }
        let mut bytes = written.min(limit).min(most_bytes);
        let short = bytes % segment_bytes;
        if short > 0 && (bytes < written || self.waits_for_short(offload.short_end, start + bytes)) {
            bytes -= short;
        }
        if bytes == 0 {
            return false;
        }
        self.offload = Some(Offload { start, end: start + bytes, is_joined: bytes > segment_bytes, ..offload });
        true
    }

    /// tcp_nagle_check: a short segment waits while an earlier short one is not acknowledged, unless a FIN goes with it.
    fn waits_for_short(&self, short_end: u64, end: u64) -> bool {
        let has_fin = self.fin_requested && end == self.queue.end();
        !has_fin && self.flight.outstanding_bytes() > 0 && short_end > self.flight.unacknowledged()
    }

    fn most_burst_segments(&self) -> u64 {
        let window_bytes = self.window_bytes.max(self.flight.outstanding_bytes());
        let is_starting = self.window_bytes < self.control.slow_start_threshold_bytes() / 2;
        let percent = if is_starting { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let mut bytes = match self.timer.smoothed() {
            Some(smoothed) => {
                let rate = u128::from(window_bytes) * u128::from(percent) * u128::from(SECOND)
                    / (100 * u128::from(smoothed.max(1)));
                u64::try_from(rate >> PACING_SHIFT).unwrap_or(MOST_BYTES)
            }
            None => MOST_BYTES,
        };
        if self.shortest_round_trip < SECOND {
            let units = (self.shortest_round_trip / MICROSECOND) >> ROUND_TRIP_SHIFT;
            bytes = bytes.saturating_add(MOST_BYTES.checked_shr(u32::try_from(units).unwrap_or(u32::MAX)).unwrap_or(0));
        }
        (bytes.min(MOST_BYTES - 1) / self.segment_bytes).max(LEAST_SEGMENTS)
    }

    /// Whether the burst waits for a later ACK to make it longer.
    fn defers(&self, now: Nanoseconds, limit: u64, written: u64, most_bytes: u64) -> bool {
        let is_ready = self.episode.is_recovering()
            || now > self.last_sent_at.saturating_add(MILLISECOND)
            || limit >= most_bytes.min(written)
            || limit >= self.window_bytes.min(self.largest_window) / WINDOW_DIVISOR;
        if is_ready {
            return false;
        }
        // The next ACK must be likely to come soon.
        let half = self.timer.smoothed().unwrap_or(0) / 2;
        self.flight.oldest_sent_at().is_some_and(|sent_at| now >= sent_at.saturating_add(half))
    }
}

//! Bursts of segments as kernels send them. Linux's: Nagle's algorithm in Minshall's form, and segmentation offload, whose
//! bursts end in a pushed segment (net/ipv4/tcp_output.c: `tcp_write_xmit`, `tcp_tso_autosize`, `tcp_tso_should_defer`).
//! XNU's and Windows's are as long as the windows allow.

use pepscope_path::{Nanoseconds, MICROSECOND, MILLISECOND, SECOND};

use super::Sender;
use crate::control::CongestionControl;
use crate::sending::send_queue::SendQueue;
use crate::settings::Stack;

/// The largest burst with its headers (sk_gso_max_size), and the fewest segments where there are as many (tcp_min_tso_segs).
const MOST_BYTES: u64 = 65_536;
const LEAST_SEGMENTS: u64 = 2;
/// BBR sends single segments below that rate (bbr_min_tso_rate, 1.2 Mbit/s).
const SLOW_BYTES_S: u64 = 150_000;
/// A burst is what leaves in a millisecond (sk_pacing_shift) at the pacing rate.
const PACING_SHIFT: u32 = 10;
/// Short round trips, in units of 512 us, make bursts longer (tcp_tso_rtt_log).
const ROUND_TRIP_SHIFT: u32 = 9;
/// A part of a window that is sent rather than deferred (tcp_tso_win_divisor).
const WINDOW_DIVISOR: u64 = 3;

/// The burst under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offload {
    stack: Stack,
    start: u64,
    end: u64,
    is_joined: bool,
    /// Where the last segment ended that was shorter than a full one (snd_sml).
    short_end: u64,
    /// The last segment was (the opposite of XNU's TF_MAXSEGSNT).
    is_last_short: bool,
}

impl Offload {
    /// `None` for a host that follows no kernel.
    pub fn new(stack: Stack) -> Option<Self> {
        let new = Self { stack, start: 0, end: 0, is_joined: false, short_end: 0, is_last_short: false };
        (stack != Stack::Ideal).then_some(new)
    }

    pub fn stack(&self) -> Stack {
        self.stack
    }

    /// Whether a segment that begins at `start` belongs to the burst.
    pub fn continues(&self, start: u64) -> bool {
        self.start <= start && start < self.end
    }

    /// Whether it has begun to leave and `start` is inside it.
    pub fn is_under_way(&self, start: u64) -> bool {
        self.start < start && start < self.end
    }

    /// Where the burst ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether the segment from `start` to `end` has PSH: with Linux the last one of a burst that has several or in which a
    /// write ends, with XNU the one behind which nothing waits, with Windows the end of each write (an assumption).
    #[inline(always)]
    pub fn pushes(&self, start: u64, end: u64, queue: &SendQueue) -> bool {
        if self.stack == Stack::Linux {
            return end == self.end && (self.is_joined || queue.has_write_end(self.start, end));
        }
        if self.stack == Stack::Darwin {
            return start < end && end == queue.end();
        }
        queue.has_write_end(start, end)
    }

    /// A burst begins.
    fn begin(&mut self, start: u64, end: u64, is_joined: bool) {
        (self.start, self.end, self.is_joined) = (start, end, is_joined);
    }

    pub fn note_sent(&mut self, end: u64, is_short: bool) {
        self.is_last_short = is_short;
        if is_short {
            self.short_end = end;
        }
    }
}

impl Sender {
    /// Plans the burst that begins at `start`; whether anything of it may leave now. There is something to send.
    pub(super) fn plan_burst(&mut self, now: Nanoseconds, start: u64) -> bool {
        let Some(offload) = &mut self.offload else { return true };
        let segment_bytes = self.segment_bytes;
        let written = self.queue.end().saturating_sub(start);
        let offered = self.right_edge.saturating_sub(start);
        if written == 0 || offered < segment_bytes.min(written) {
            // A FIN alone, or what the general rules for a closed window decide.
            offload.begin(start, start + written.min(segment_bytes), false);
            return true;
        }
        let pipe = self.flight.pipe_bytes();
        let window_bytes = self.window_bytes.saturating_add_signed(self.episode.inflation_bytes());
        let free = window_bytes.saturating_sub(pipe);
        if free < segment_bytes && pipe > 0 {
            return false;
        }
        let room = (free / segment_bytes).max(1) * segment_bytes;
        let stack = offload.stack;
        let limit = room.min(offered);
        if stack == Stack::Linux && written > segment_bytes && self.defers(now, limit, written, room <= offered) {
            return false;
        }
        let most_bytes = self.most_burst_segments(stack) * segment_bytes;
        let mut bytes = written.min(limit).min(most_bytes);
        let short = bytes % segment_bytes;
        if short > 0 && (bytes < written || self.waits_for_short(start + bytes)) {
            bytes -= short;
        }
        if bytes == 0 {
            return false;
        }
        if let Some(offload) = &mut self.offload {
            offload.begin(start, start + bytes, bytes > segment_bytes);
        }
        true
    }

    /// Plans a burst of the one segment that begins at `start`, without regard to windows and Nagle's algorithm.
    pub(super) fn plan_single(&mut self, start: u64) {
        let bytes = self.queue.end().saturating_sub(start).min(self.segment_bytes);
        if let Some(offload) = &mut self.offload {
            offload.begin(start, start + bytes, false);
        }
    }

    /// Whether a short segment waits, unless a FIN goes with it: with Linux while an earlier short one is not acknowledged
    /// (tcp_nagle_check), with XNU while anything is not and the last one was short, with Windows while anything is not
    /// (RFC 896; an assumption).
    fn waits_for_short(&self, end: u64) -> bool {
        let Some(offload) = &self.offload else { return false };
        let has_fin = self.fin_requested && end == self.queue.end();
        let is_held = match offload.stack {
            Stack::Linux | Stack::Ideal => offload.short_end > self.flight.unacknowledged(),
            Stack::Darwin => offload.is_last_short,
            Stack::Windows => true,
        };
        !has_fin && self.flight.outstanding_bytes() > 0 && is_held
    }

    fn most_burst_segments(&self, stack: Stack) -> u64 {
        if stack != Stack::Linux {
            return ((MOST_BYTES - 1) / self.segment_bytes).max(1);
        }
        let rate = if self.needs.pacing { self.control.pacing_rate_bytes_s() } else { self.window_rate_bytes_s() };
        let bytes = rate.map_or(MOST_BYTES, |rate| rate >> PACING_SHIFT).saturating_add(self.round_trip_bytes());
        let is_slow = self.needs.pacing && rate.is_some_and(|rate| rate < SLOW_BYTES_S);
        let least = if is_slow { 1 } else { LEAST_SEGMENTS };
        (bytes.min(MOST_BYTES - 1) / self.segment_bytes).max(least)
    }

    /// What a short round trip makes a burst longer by.
    #[inline(always)]
    fn round_trip_bytes(&self) -> u64 {
        if self.shortest_round_trip >= SECOND {
            return 0;
        }
        let units = (self.shortest_round_trip / MICROSECOND) >> ROUND_TRIP_SHIFT;
        MOST_BYTES.checked_shr(u32::try_from(units).unwrap_or(u32::MAX)).unwrap_or(0)
    }

    /// Whether `limit` bytes, whole segments if they are `is_whole`, are as many as the longest burst of Linux has. Most
    /// bursts wait and are asked this alone, which takes no division where it can be known without.
    #[inline]
    fn is_longest_burst(&self, limit: u64, is_whole: bool) -> bool {
        if is_whole && !self.needs.pacing && limit < MOST_BYTES - self.segment_bytes {
            if limit < LEAST_SEGMENTS * self.segment_bytes {
                return false;
            }
            // Of whole segments one more is too long.
            let beyond = (limit + self.segment_bytes).checked_sub(self.round_trip_bytes());
            let is_below = beyond.map_or(Some(false), |bytes| self.window_rate_is_below(bytes, PACING_SHIFT));
            if let Some(is_below) = is_below {
                return is_below;
            }
        }
        limit >= self.most_burst_segments(Stack::Linux) * self.segment_bytes
    }

    /// Whether the burst waits for a later ACK to make it longer.
    fn defers(&self, now: Nanoseconds, limit: u64, written: u64, is_whole: bool) -> bool {
        let is_ready = self.episode.is_recovering()
            || now > self.last_sent_at.saturating_add(MILLISECOND)
            || limit >= written
            || limit >= self.window_bytes.min(self.largest_window) / WINDOW_DIVISOR
            || self.is_longest_burst(limit, is_whole);
        if is_ready {
            return false;
        }
        // The next ACK must be likely to come soon.
        let half = self.timer.smoothed().unwrap_or(0) / 2;
        self.flight.oldest_sent_at().is_some_and(|sent_at| now >= sent_at.saturating_add(half))
    }
}

#[cfg(test)]
mod tests {
    use pepscope_path::{MICROSECOND, SECOND};
    use proptest::prelude::{any, prop_assert_eq, prop_oneof, proptest, Just, Strategy};

    use crate::sending::sender::Sender;
    use crate::settings::{Settings, Stack};

    fn any_window_bytes() -> impl Strategy<Value = u64> {
        prop_oneof![1u64..5_000_000, 1u64..u64::MAX / 4]
    }

    proptest! {
        #[test]
        fn the_longest_burst_is_known_without_a_division(
            segment_bytes in 1u64..9_000, segments in 1u64..80, part in 0u64..9_000, window_bytes in any_window_bytes(),
            round_trip_us in prop_oneof![Just(0u64), 1u64..4_000, 1u64..3_000_000], is_starting in any::<bool>(),
        ) {
            let initial_slow_start_threshold_bytes = if is_starting { u64::MAX } else { 1 };
            let settings = Settings { stack: Stack::Linux, initial_slow_start_threshold_bytes, ..Settings::default() };
            let mut sender = Sender::new(&settings);
            (sender.segment_bytes, sender.window_bytes) = (segment_bytes, window_bytes);
            if round_trip_us > 0 {
                sender.timer.sample(round_trip_us * MICROSECOND, false);
                sender.shortest_round_trip = (round_trip_us * MICROSECOND).min(SECOND);
            }
            let limit = segments * segment_bytes + part % segment_bytes;
            let is_longest = limit >= sender.most_burst_segments(Stack::Linux) * segment_bytes;
            prop_assert_eq!(sender.is_longest_burst(limit, part % segment_bytes == 0), is_longest);
        }
    }
}

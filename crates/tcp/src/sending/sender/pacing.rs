//! Segments that are spaced out: at the rate of a control that has one, or by the queueing discipline of the host
//! (tcp_update_pacing_rate and tcp_update_skb_after_send of Linux).

use pepscope_path::{Nanoseconds, SECOND};

use super::Sender;
use crate::control::CongestionControl;

/// Percent of a window that leaves in a round trip (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio).
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;
/// So many segments with data leave without spacing at first, as with sch_fq.
const UNPACED_SEGMENTS: u32 = 10;

impl Sender {
    /// Twice or 1.2 times what a window a round trip is; `None` before the first sample.
    pub(super) fn window_rate_bytes_s(&self) -> Option<u64> {
        let (window_bytes, percent, smoothed) = self.window_rate()?;
        if let Some(numerator) = window_bytes.checked_mul(percent * (SECOND / 100)) {
            return Some(numerator / smoothed);
        }
        let (percent, smoothed) = (u128::from(percent), u128::from(smoothed));
        let rate = u128::from(window_bytes) * percent * u128::from(SECOND) / (100 * smoothed);
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Whether [`Sender::window_rate_bytes_s`] in units of `2^shift` is less than `units`, without a division; `None` where
    /// that is too large to know.
    #[inline(always)]
    pub(super) fn window_rate_is_below(&self, units: u64, shift: u32) -> Option<bool> {
        let (window_bytes, percent, smoothed) = self.window_rate()?;
        let numerator = window_bytes.checked_mul(percent * (SECOND / 100))?;
        // A quotient's whole part is less than a whole number where the quotient is.
        Some(numerator < smoothed.checked_mul(units)?.checked_mul(1 << shift)?)
    }

    /// The window, the percentage of it that leaves in a round trip, and that round trip.
    #[inline(always)]
    fn window_rate(&self) -> Option<(u64, u64, Nanoseconds)> {
        let window_bytes = self.window_bytes.max(self.flight.outstanding_bytes());
        let is_starting = self.window_bytes < self.control.slow_start_threshold_bytes() / 2;
        let percent = if is_starting { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        Some((window_bytes, percent, self.timer.smoothed()?.max(1)))
    }

    #[inline]
    pub(super) fn pacing_rate_bytes_s(&self) -> Option<u64> {
        if self.needs.pacing {
            self.control.pacing_rate_bytes_s()
        } else if self.is_paced {
            self.window_rate_bytes_s()
        } else {
            None
        }
    }

    /// Whether the next segment belongs to a burst that has begun: a kernel hands bursts over whole.
    #[inline]
    pub(super) fn is_inside_burst(&self, has_lost: bool) -> bool {
        !has_lost && self.offload.as_ref().is_some_and(|burst| burst.is_under_way(self.flight.next()))
    }

    /// The next segment leaves so much later than this one. A kernel's bursts that were late may make up for half of what
    /// they take.
    #[inline]
    pub(super) fn space_out(&mut self, now: Nanoseconds, payload_bytes: u32, rate_bytes_s: u64) {
        let spacing = u128::from(payload_bytes) * u128::from(SECOND) / u128::from(rate_bytes_s.max(1));
        let mut spacing = u64::try_from(spacing).unwrap_or(u64::MAX);
        if self.offload.is_some() {
            if self.unpaced_segments < UNPACED_SEGMENTS {
                self.unpaced_segments += 1;
                self.release_at = now;
                return;
            }
            if now >= self.release_at {
                self.pacing_credit = now - self.release_at;
            }
            let made_up = self.pacing_credit.min(spacing / 2);
            self.pacing_credit -= made_up;
            spacing -= made_up;
        }
        self.release_at = self.release_at.max(now).saturating_add(spacing);
    }
}

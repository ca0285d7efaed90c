//! Fast recovery that lasts until all that was in flight is acknowledged (RFC 6582).

use pepscope_path::Nanoseconds;

use super::reno;
use crate::sending::sender::Sender;

/// The ACK must cover more than what the last episode left in flight (section 3.2, step 2).
pub(super) fn may_begin(unacknowledged: u64, recover: u64) -> bool {
    unacknowledged > recover
}

/// As Reno, until all that is in flight now is acknowledged (step 2).
pub(super) fn begin(sender: &mut Sender, now: Nanoseconds, slows_down: bool) {
    let recover = sender.flight.next();
    reno::begin_until(sender, now, slows_down, recover);
}

/// Steps 3 (full and partial acknowledgements); whether the timer starts anew.
pub(super) fn advance(sender: &mut Sender, now: Nanoseconds, bytes: u64) -> bool {
    if sender.flight.unacknowledged() >= sender.episode.recover {
        sender.end_recovery(now);
        return true;
    }
    sender.episode.inflation_bytes -= bytes as i64;
    if bytes >= sender.segment_bytes {
        sender.episode.inflation_bytes += sender.segment_bytes as i64;
    }
    sender.flight.declare_first_lost();
    sender.is_forced = true;
    let is_first = !sender.episode.has_partial;
    sender.episode.has_partial = true;
    is_first
}

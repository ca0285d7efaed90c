//! Fast retransmit and fast recovery, which the first new ACK ends (RFC 5681, section 3.2).

use pepscope_path::Nanoseconds;

use crate::control::Cause;
use crate::sending::flight::DUPLICATE_THRESHOLD;
use crate::sending::sender::Sender;

/// Reno halves again for every loss of one window, but not for duplicates that a timeout caused.
pub(super) fn may_begin(unacknowledged: u64, recover: u64) -> bool {
    unacknowledged > recover
}

/// Steps 2 and 3: slow down, send the oldest segment again, and count the three that left the network.
pub(super) fn begin(sender: &mut Sender, now: Nanoseconds, slows_down: bool) {
    let recover = sender.episode.recover;
    begin_until(sender, now, slows_down, recover);
}

/// Begins the recovery of Reno, with the end of the episode that NewReno adds.
pub(super) fn begin_until(sender: &mut Sender, now: Nanoseconds, slows_down: bool, recover: u64) {
    if slows_down {
        sender.slow_down(now, Cause::FastRetransmit, false);
    }
    sender.episode.begin(recover, i64::from(DUPLICATE_THRESHOLD) * sender.segment_bytes as i64);
    sender.flight.declare_first_lost();
}

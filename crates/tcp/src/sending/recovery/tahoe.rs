//! Fast retransmit without fast recovery: the senders of 4.3BSD-Tahoe.

use pepscope_path::Nanoseconds;

use crate::control::Cause;
use crate::sending::sender::Sender;

/// Duplicates of what was sent before the last restart are its own doing, not a loss.
pub(super) fn may_begin(unacknowledged: u64, recover: u64) -> bool {
    unacknowledged > recover
}

/// Everything in flight is sent again, from one segment on; a corrupted segment alone where the window stays.
pub(super) fn begin(sender: &mut Sender, now: Nanoseconds, slows_down: bool) {
    if slows_down {
        sender.slow_down(now, Cause::FastRetransmitWithoutRecovery, false);
    }
    sender.episode.restart(sender.flight.next());
    if slows_down {
        sender.flight.declare_all_lost();
    } else {
        sender.flight.declare_first_lost();
    }
}

//! Loss recovery from selective acknowledgements (RFC 6675): the scoreboard of [`crate::flight`] decides what is lost
//! and how much is in the network, so that the window needs no inflation.

use pepscope_path::Nanoseconds;

use crate::control::Cause;
use crate::sending::sender::Sender;

/// Not before all that was in flight at the last timeout is acknowledged (section 5.1).
pub(super) fn may_begin(unacknowledged: u64, recover: u64) -> bool {
    unacknowledged >= recover
}

/// Section 5, step 4.
pub(super) fn begin(sender: &mut Sender, now: Nanoseconds, slows_down: bool) {
    if slows_down {
        sender.slow_down(now, Cause::FastRetransmit, false);
    }
    sender.episode.begin(sender.flight.next(), 0);
    sender.flight.declare_first_lost();
}

/// Section 5, step A; the timer starts anew with every ACK that advances (section 5.1, RFC 6298).
pub(super) fn advance(sender: &mut Sender, now: Nanoseconds) -> bool {
    if sender.flight.unacknowledged() >= sender.episode.recover {
        sender.end_recovery(now);
    }
    true
}

//! What today's stacks add to SACK recovery, as Linux has it: the window shrinks in proportion to what arrives (PRR, RFC
//! 6937), what was sent again and lost again shows by time (RACK, RFC 8985), and reports of what left before the oldest
//! segment was sent again put the timer off.
//!
//! Hosts of the Linux stack add [`super::linux`]; elsewhere RFC 6675's three segments reveal a first loss.

use pepscope_path::Nanoseconds;

use crate::sending::flight::Released;
use crate::sending::sender::Sender;

/// One reduction of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// The window when it began (RecoverFS of RFC 6937; Linux takes the window).
    window_before: u64,
    delivered_bytes: u64,
    sent_bytes: u64,
}

impl Reduction {
    pub fn new(window_before: u64) -> Self {
        Self { window_before: window_before.max(1), delivered_bytes: 0, sent_bytes: 0 }
    }

    pub fn note_sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// What may leave for an ACK that delivered `bytes` (RFC 6937, section 3.1, with the slow-start reduction bound).
    fn allowance(&mut self, bytes: u64, pipe: u64, threshold: u64, segment_bytes: u64, grows: bool) -> u64 {
        self.delivered_bytes += bytes;
        let allowance = if pipe > threshold {
            let target = u128::from(self.delivered_bytes) * u128::from(threshold);
            (target.div_ceil(u128::from(self.window_before)) as u64).saturating_sub(self.sent_bytes)
        } else {
            let conserved = self.delivered_bytes.saturating_sub(self.sent_bytes).max(bytes);
            (conserved + if grows { segment_bytes } else { 0 }).min(threshold - pipe)
        };
        if self.sent_bytes == 0 {
            allowance.max(segment_bytes)
        } else {
            allowance
        }
    }
}

impl Sender {
    /// An ACK in recovery, after losses were looked for; `found_loss` if there were any.
    pub(crate) fn reduce_in_proportion(&mut self, released: &Released, advanced: bool, found_loss: bool) {
        let (pipe, window_bytes, segment_bytes) = (self.flight.pipe_bytes(), self.window_bytes, self.segment_bytes);
        let Some(reduction) = self.episode.reduction_mut() else {
            return;
        };
        if released.newly_delivered_bytes == 0 {
            return;
        }
        let grows = advanced && !found_loss;
        let allowance = reduction.allowance(released.newly_delivered_bytes, pipe, window_bytes, segment_bytes, grows);
        self.episode.set_inflation((pipe + allowance) as i64 - window_bytes as i64);
    }

    /// Declares lost again what was sent again before something that has arrived since. What arrived sooner than the
    /// shortest round trip after it was sent again was the first copy (RFC 8985, section 6.2, step 2).
    pub(crate) fn detect_lost_again(&mut self, now: Nanoseconds, released: &Released) -> bool {
        let resent_at = released.latest_resent_at().filter(|sent_at| now - sent_at >= self.shortest_round_trip);
        self.latest_delivered_sent_at = self.latest_delivered_sent_at.max(released.latest_sent_at()).max(resent_at);
        self.latest_delivered_sent_at.is_some_and(|sent_at| self.flight.declare_lost_again(sent_at))
    }

    /// Whether what was reported left before the oldest segment was sent again, so that news of that one is still to come.
    pub(crate) fn puts_timer_off(&self, released: &Released) -> bool {
        let oldest_sent_at = self.flight.oldest_sent_at();
        released.latest_sent_at().is_some_and(|sent_at| oldest_sent_at.is_some_and(|oldest| sent_at < oldest))
    }
}

#[cfg(test)]
mod tests {
    use super::Reduction;

    #[test]
    fn a_window_of_twenty_shrinks_to_fourteen_by_sending_seven_for_ten() {
        let mut reduction = Reduction::new(20_000);
        let mut pipe = 19_000;
        let mut sent = 0;
        for _ in 0..19 {
            pipe -= 1000;
            let segments = reduction.allowance(1000, pipe, 14_000, 1000, false) / 1000;
            sent += segments;
            pipe += segments * 1000;
            reduction.note_sent(segments * 1000);
        }
        assert_eq!((sent, pipe), (14, 14_000));
    }

    #[test]
    fn below_the_threshold_it_sends_what_arrives_and_grows_only_without_new_losses() {
        for (grows, expected) in [(false, 1000), (true, 2000)] {
            let mut reduction = Reduction::new(20_000);
            reduction.note_sent(1000);
            assert_eq!(reduction.allowance(1000, 5_000, 14_000, 1000, grows), expected);
        }
    }

    #[test]
    fn it_never_sends_beyond_the_threshold() {
        let mut reduction = Reduction::new(20_000);
        reduction.note_sent(1000);
        assert_eq!(reduction.allowance(9000, 13_000, 14_000, 1000, true), 1000);
    }

    #[test]
    fn the_first_retransmission_leaves_whatever_arrived() {
        let mut reduction = Reduction::new(20_000);
        assert_eq!(reduction.allowance(0, 19_000, 14_000, 1000, false), 1000);
    }
}

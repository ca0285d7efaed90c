//! Tail loss probes: where no acknowledgement comes for two round trips, one segment tells whether the last ones were lost
//! (RFC 8985, section 7; tcp_schedule_loss_probe, tcp_send_loss_probe and tcp_process_tlp_ack of Linux).

use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};

use super::{Reading, Timer, LEAST_WAIT};
use crate::control::{Cause, CongestionControl};
use crate::sending::flight::Released;
use crate::sending::sender::{Outgoing, Sender};
use crate::settings::Stack;
use crate::statistics::Statistics;

/// The wait where no round trip is known (TCP_TIMEOUT_INIT).
const WITHOUT_SAMPLE: Nanoseconds = SECOND;
const DARWIN_DELAY: Nanoseconds = 100 * MILLISECOND;
const WINDOWS_DELAY: Nanoseconds = 200 * MILLISECOND;

/// A probe that waits to leave or to be acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailProbe {
    pub is_due: bool,
    /// Where the next new data began when the probe left (tlp_high_seq).
    outstanding: Option<u64>,
    /// It was old data.
    is_resent: bool,
}

impl TailProbe {
    #[inline(always)]
    pub fn is_settled(&self) -> bool {
        !self.is_due && self.outstanding.is_none()
    }

    /// Takes an acknowledgement; whether the probe repaired a loss, since just one of both copies arrived.
    pub fn note(&mut self, reading: &Reading, released: &Released) -> bool {
        let Some(high) = self.outstanding else { return false };
        if reading.acknowledgement < high {
            return false;
        }
        let arrived_twice = reading.duplicate.is_some_and(|(_, end)| end == high);
        let is_duplicate = !reading.advanced && released.latest().is_none();
        let has_lost = self.is_resent && !arrived_twice && reading.acknowledgement > high;
        if !self.is_resent || arrived_twice || has_lost || is_duplicate {
            self.outstanding = None;
        }
        has_lost
    }
}

impl Sender {
    /// Sets the timer for a probe, unless losses are known or suspected; `restarts` if the retransmission timeout counts
    /// from now.
    pub(super) fn schedule_tail_probe(&mut self, now: Nanoseconds, restarts: bool) -> bool {
        let Some(linux) = &self.linux else { return false };
        let is_open = !self.episode.is_recovering()
            && linux.loss.is_none()
            && self.flight.sacked_bytes() == 0
            && self.flight.lost_bytes() == 0;
        if !is_open || self.flight.outstanding_bytes() == 0 {
            return false;
        }
        // A receiver may delay its acknowledgement of a single segment.
        let margin = if self.flight.is_single() { self.delay_of_a_single_segment() } else { LEAST_WAIT };
        let wait = self.timer.smoothed().map_or(WITHOUT_SAMPLE, |smoothed| 2 * smoothed + margin);
        let from = if restarts { now } else { self.flight.oldest_sent_at().unwrap_or(now) };
        let expiry = from.saturating_add(self.timer.timeout());
        let deadline = now.saturating_add(wait);
        self.deadline = if expiry > now { deadline.min(expiry) } else { deadline };
        self.set_timer(Timer::TailProbe);
        true
    }

    /// What the peer's delayed ACK may add: the least timeout with Linux (tcp_rto_min), its own delay with XNU (tcp_delack),
    /// and the worst of RFC 8985 (TLP.max_ack_delay) with Windows.
    fn delay_of_a_single_segment(&self) -> Nanoseconds {
        match self.offload.as_ref().map(|offload| offload.stack()) {
            Some(Stack::Darwin) => DARWIN_DELAY,
            Some(Stack::Windows) => WINDOWS_DELAY,
            _ => self.timer.minimum(),
        }
    }

    /// The time has come; one probe at most is outstanding.
    pub(super) fn begin_tail_probe(&mut self, now: Nanoseconds) {
        if let Some(linux) = &mut self.linux {
            linux.timer = Timer::Retransmission;
            linux.probe.is_due = linux.probe.outstanding.is_none();
        }
        self.deadline = now.saturating_add(self.timer.timeout());
    }

    /// The probe that is due: new data if there is any and the peer has room, regardless of the congestion window; the
    /// last segment otherwise.
    pub(crate) fn poll_tail_probe(&mut self, now: Nanoseconds, statistics: &mut Statistics) -> Option<Outgoing> {
        let linux = self.linux.as_mut()?;
        if !std::mem::take(&mut linux.probe.is_due) || self.flight.outstanding_bytes() == 0 {
            return None;
        }
        let (probe, is_resent) = match self.force_new_segment(now) {
            Some(outgoing) => (outgoing, false),
            None => {
                let (place, sent) = self.flight.last()?;
                (self.resend(now, place, sent, statistics), true)
            }
        };
        statistics.tail_loss_probes += 1;
        let next = self.flight.next();
        self.deadline = now.saturating_add(self.timer.timeout());
        if let Some(linux) = &mut self.linux {
            linux.timer = Timer::Retransmission;
            linux.probe.outstanding = Some(next);
            linux.probe.is_resent = is_resent;
        }
        Some(probe)
    }

    /// A probe repaired the loss of the last segment: the window is reduced all the same.
    pub(super) fn answer_tail_loss(&mut self, now: Nanoseconds) {
        if self.episode.is_recovering() {
            return;
        }
        self.slow_down(now, Cause::FastRetransmit, false);
        self.control.on_recovery_ended(now, self.flight.outstanding_bytes());
        self.window_bytes = self.control.window_bytes();
    }
}

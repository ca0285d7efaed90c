//! Repairing losses that duplicate ACKs or SACK blocks reveal, before the timer has to.

pub(crate) mod linux;
mod newreno;
mod rack;
mod reno;
mod sack;
mod tahoe;

use pepscope_path::Nanoseconds;

use crate::control::{Cause, CongestionControl, LossMeaning};
use crate::sending::flight::DUPLICATE_THRESHOLD;
use crate::sending::sender::Sender;
use crate::settings::Recovery;
use crate::statistics::Statistics;

/// The state of loss recovery.
#[derive(Clone, Debug)]
pub(crate) struct Episode {
    kind: Recovery,
    is_recovering: bool,
    duplicates: u32,
    /// Position after the newest segment when the last episode began (recover of RFC 6582).
    recover: u64,
    inflation_bytes: i64,
    /// New data sent on the first duplicates (RFC 3042).
    limited_bytes: u64,
    has_partial: bool,
    has_rescued: bool,
    /// The state of [`Recovery::Rack`] during recovery.
    reduction: Option<rack::Reduction>,
}

impl Episode {
    pub fn new(kind: Recovery) -> Self {
        Self {
            kind,
            is_recovering: false,
            duplicates: 0,
            recover: 0,
            inflation_bytes: 0,
            limited_bytes: 0,
            has_partial: false,
            has_rescued: false,
            reduction: None,
        }
    }

    #[inline]
    pub fn kind(&self) -> Recovery {
        self.kind
    }

    /// Whether fast recovery goes on.
    #[inline]
    pub fn is_recovering(&self) -> bool {
        self.is_recovering
    }

    /// What duplicates add to the congestion window (RFC 5681, section 3.2; RFC 3042).
    #[inline]
    pub fn inflation_bytes(&self) -> i64 {
        self.inflation_bytes
    }

    /// An ACK advanced outside fast recovery.
    #[inline]
    pub fn forget_duplicates(&mut self) {
        self.duplicates = 0;
        self.inflation_bytes = 0;
        self.limited_bytes = 0;
    }

    /// What is in flight is sent again from the start, but the duplicates go on (Tahoe).
    fn restart(&mut self, next: u64) {
        *self = Self { recover: next, duplicates: self.duplicates, ..Self::new(self.kind) };
    }

    /// The timer expired when `next` was the position to send next.
    pub fn abandon(&mut self, next: u64) {
        *self = Self { recover: next, ..Self::new(self.kind) };
    }

    /// New data leaves.
    #[inline]
    pub fn note_new_data(&mut self, bytes: u64) {
        if self.duplicates > 0 && !self.is_recovering {
            self.limited_bytes += bytes;
        }
    }

    /// What limited transmit sent, which must not count when the window is halved (RFC 5681, section 3.2, step 2).
    pub fn limited_bytes(&self) -> u64 {
        self.limited_bytes
    }

    pub fn may_rescue(&self) -> bool {
        !self.has_rescued
    }

    pub fn rescued(&mut self) {
        self.has_rescued = true;
    }

    fn reduction_mut(&mut self) -> Option<&mut rack::Reduction> {
        self.reduction.as_mut()
    }

    fn set_inflation(&mut self, bytes: i64) {
        self.inflation_bytes = bytes;
    }

    /// A segment leaves, new or not.
    #[inline]
    pub fn note_sent(&mut self, bytes: u64) {
        if let Some(reduction) = &mut self.reduction {
            reduction.note_sent(bytes);
        }
    }

    fn begin(&mut self, recover: u64, inflation_bytes: i64) {
        *self =
            Self { is_recovering: true, recover, inflation_bytes, duplicates: self.duplicates, ..Self::new(self.kind) };
    }

    fn end(&mut self) {
        *self = Self { recover: self.recover, ..Self::new(self.kind) };
    }
}

impl Sender {
    /// A duplicate ACK arrived.
    pub(crate) fn recover_on_duplicate(&mut self, now: Nanoseconds, statistics: &mut Statistics) {
        self.episode.duplicates += 1;
        if self.episode.is_recovering {
            match self.episode.kind {
                Recovery::Reno | Recovery::NewReno => self.episode.inflation_bytes += self.segment_bytes as i64,
                Recovery::Tahoe | Recovery::Sack | Recovery::Rack => {}
            }
            return;
        }
        if self.linux.is_some() {
            if sack::may_begin(self.flight.unacknowledged(), self.episode.recover) {
                self.begin_linux_recovery(now, statistics);
            }
            return;
        }
        let reveals_loss =
            self.episode.duplicates >= DUPLICATE_THRESHOLD || self.uses_sack() && self.flight.is_first_lost();
        let unacknowledged = self.flight.unacknowledged();
        let may_begin = match self.episode.kind {
            Recovery::Tahoe => tahoe::may_begin(unacknowledged, self.episode.recover),
            Recovery::Reno => reno::may_begin(unacknowledged, self.episode.recover),
            Recovery::NewReno => newreno::may_begin(unacknowledged, self.episode.recover),
            Recovery::Sack | Recovery::Rack => sack::may_begin(unacknowledged, self.episode.recover),
        };
        if !reveals_loss {
            if self.limited_transmit && !self.uses_sack() {
                self.episode.inflation_bytes = i64::from(self.episode.duplicates) * self.segment_bytes as i64;
            }
            return;
        }
        if !may_begin {
            self.episode.inflation_bytes = 0;
            return;
        }
        let slows_down = self.judge_loss(statistics);
        match self.episode.kind {
            Recovery::Tahoe => tahoe::begin(self, now, slows_down),
            Recovery::Reno => reno::begin(self, now, slows_down),
            Recovery::NewReno => newreno::begin(self, now, slows_down),
            Recovery::Sack => sack::begin(self, now, slows_down),
            Recovery::Rack => {
                let window_before = self.window_bytes;
                sack::begin(self, now, slows_down);
                self.episode.reduction = Some(rack::Reduction::new(window_before));
            }
        }
        self.is_forced = true;
        self.restart_timer(now);
    }

    /// Whether the control takes a loss for congestion.
    fn judge_loss(&self, statistics: &mut Statistics) -> bool {
        let slows_down = self.control.judge_loss() == LossMeaning::Congestion;
        if slows_down {
            statistics.fast_retransmits += 1;
        } else {
            statistics.corruption_retransmits += 1;
        }
        slows_down
    }

    /// Begins recovery from what is declared lost, with a window that shrinks in proportion to what arrives.
    fn enter_rack_recovery(&mut self, now: Nanoseconds, statistics: &mut Statistics) {
        let slows_down = self.judge_loss(statistics);
        let window_before = self.window_bytes;
        if slows_down {
            self.slow_down(now, Cause::FastRetransmit, false);
        }
        self.episode.begin(self.flight.next(), 0);
        self.episode.reduction = Some(rack::Reduction::new(window_before));
        self.is_forced = true;
        if !self.awaits_reordered() {
            self.restart_timer(now);
        }
    }

    /// The cumulative acknowledgement advanced by `bytes`; whether the retransmission timer starts anew.
    #[inline]
    pub(crate) fn recover_on_advance(&mut self, now: Nanoseconds, bytes: u64, statistics: &mut Statistics) -> bool {
        self.episode.duplicates = 0;
        if !self.episode.is_recovering {
            self.episode.forget_duplicates();
            if self.linux.is_some() {
                self.recover_on_duplicate(now, statistics);
                self.episode.duplicates = 0;
                return true;
            }
            // An ACK that advances over one loss may reveal the next (RFC 6675, section 5, step 4.1).
            if self.uses_sack()
                && self.flight.is_first_lost()
                && sack::may_begin(self.flight.unacknowledged(), self.episode.recover)
            {
                self.recover_on_duplicate(now, statistics);
                self.episode.duplicates = 0;
            }
            return true;
        }
        match self.episode.kind {
            Recovery::Tahoe | Recovery::Reno => {
                self.end_recovery(now);
                true
            }
            Recovery::NewReno => newreno::advance(self, now, bytes),
            Recovery::Sack | Recovery::Rack => sack::advance(self, now),
        }
    }

    fn end_recovery(&mut self, now: Nanoseconds) {
        self.episode.end();
        self.control.on_recovery_ended(now, self.flight.outstanding_bytes());
        self.window_bytes = self.control.window_bytes();
    }
}

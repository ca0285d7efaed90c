//! Timer based SDU discard (3GPP TS 25.322, 9.7.3.1): a packet that is not delivered in time is discarded.

use std::collections::VecDeque;

/// Ages of the packets of one bearer, in intervals.
#[derive(Clone, Debug)]
pub struct DiscardTimer {
    age_ttis: u64,
    /// Ends (in frames) of packets that came since the last interval.
    new: VecDeque<u64>,
    /// End of each packet, and the interval in which its timer expires.
    due: VecDeque<(u64, u64)>,
    expired_before: u64,
}

impl DiscardTimer {
    /// A timer that discards packets `age_ttis` intervals after their arrival.
    #[must_use]
    pub fn new(age_ttis: u64) -> Self {
        Self { age_ttis, new: VecDeque::new(), due: VecDeque::new(), expired_before: 0 }
    }

    /// Notes the arrival of a packet whose last frame is the one before number `end`.
    pub fn take(&mut self, end: u64) {
        self.new.push_back(end);
    }

    /// Starts the timers of new packets, and returns whether one ends in interval `tti`.
    pub fn expire(&mut self, tti: u64) -> bool {
        self.due.extend(self.new.drain(..).map(|end| (end, tti + self.age_ttis)));
        let before = self.expired_before;
        while let Some(&(end, _)) = self.due.front().filter(|&&(_, due)| due <= tti) {
            self.expired_before = end;
            self.due.pop_front();
        }
        self.expired_before > before
    }

    /// Frames before this number belong to packets that are too old.
    #[must_use]
    pub fn expired_before(&self) -> u64 {
        self.expired_before
    }
}

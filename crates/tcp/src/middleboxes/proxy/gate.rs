//! How many packets a window-adaptation proxy may send to a mobile, and when.

use pepscope_path::{Nanoseconds, QueueReport, NEVER};

use super::sliding_mode::{SlidingMode, SlidingModeSettings};

/// Which number of a report is the rate `b(k)` of the control law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RateSource {
    /// Frames served, as the paper infers it: an empty queue makes it the rate of arrivals.
    #[default]
    Served,
    /// Frames that the link could have served.
    Offered,
}

/// The control law and how its quotas are spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptationSettings {
    pub law: SlidingModeSettings,
    pub rate_source: RateSource,
    /// A step's packets leave evenly over the step instead of all at its start.
    pub spreads_packets: bool,
}

/// The permission to send of one mobile's flows: a quota of packets each step.
#[derive(Debug)]
pub(crate) struct Gate {
    law: SlidingMode,
    settings: AdaptationSettings,
    step_ns: Nanoseconds,
    step_began: Nanoseconds,
    /// What the law gave for this step and what earlier ones left of a packet.
    quota_packets: f64,
    spent_packets: u32,
    /// The relay wanted to send more than the quota.
    is_exhausted: bool,
}

impl Gate {
    pub fn new(settings: AdaptationSettings) -> Self {
        Self {
            law: SlidingMode::new(settings.law),
            settings,
            step_ns: (settings.law.step_s * 1e9) as Nanoseconds,
            step_began: 0,
            quota_packets: 0.0,
            spent_packets: 0,
            is_exhausted: false,
        }
    }

    pub fn quota_packets(&self) -> f64 {
        self.quota_packets
    }

    /// A step begins with the report of the one before.
    pub fn handle_report(&mut self, now: Nanoseconds, report: &QueueReport) {
        let spent = f64::from(self.spent_packets);
        let carried = if self.is_exhausted { self.quota_packets - spent } else { 0.0 };
        if !self.is_exhausted {
            self.law.correct_last(spent);
        }
        let frames = match self.settings.rate_source {
            RateSource::Served => report.served_frames,
            RateSource::Offered => report.offered_frames,
        };
        let rate_frames_s = f64::from(frames) / self.settings.law.step_s;
        let quota = self.law.step(f64::from(report.queued_frames), rate_frames_s);
        self.quota_packets = quota + carried.clamp(0.0, 1.0);
        self.spent_packets = 0;
        self.is_exhausted = self.quota_packets < 1.0;
        self.step_began = now;
    }

    /// Takes one packet from the quota, if one may leave at `now`.
    pub fn spend(&mut self, now: Nanoseconds) -> bool {
        let may = self.next_release() <= now;
        self.spent_packets += u32::from(may);
        self.is_exhausted |= f64::from(self.spent_packets + 1) > self.quota_packets;
        may
    }

    /// When the next packet may leave; [`NEVER`] before another report.
    pub fn next_release(&self) -> Nanoseconds {
        let next = f64::from(self.spent_packets + 1);
        if next > self.quota_packets {
            NEVER
        } else if self.settings.spreads_packets {
            let share = f64::from(self.spent_packets) / self.quota_packets;
            self.step_began + (share * self.step_ns as f64) as Nanoseconds
        } else {
            self.step_began
        }
    }
}

#[cfg(test)]
mod tests {
    use pepscope_path::{QueueReport, MILLISECOND, NEVER};

    use super::{AdaptationSettings, Gate, RateSource};
    use crate::middleboxes::proxy::SlidingModeSettings;

    fn gate(spreads_packets: bool) -> Gate {
        let law = SlidingModeSettings::default();
        Gate::new(AdaptationSettings { law, rate_source: RateSource::Served, spreads_packets })
    }

    fn report(queued_frames: u32) -> QueueReport {
        QueueReport { queued_frames, served_frames: 29, ..QueueReport::default() }
    }

    #[test]
    fn nothing_leaves_before_the_first_report() {
        let mut gate = gate(false);
        assert_eq!(gate.next_release(), NEVER);
        assert!(!gate.spend(5));
    }

    #[test]
    fn a_quota_lets_whole_packets_pass_and_keeps_the_rest() {
        let mut gate = gate(false);
        gate.handle_report(0, &report(0));
        let first = gate.quota_packets();
        let passed = (0..100).filter(|_| gate.spend(0)).count();
        assert_eq!(passed, first as usize);
        assert_eq!(gate.next_release(), NEVER);
        let left = first - passed as f64;
        gate.handle_report(25 * MILLISECOND, &report(100));
        assert!(gate.quota_packets() >= left);
    }

    #[test]
    fn spread_packets_share_the_step() {
        let mut gate = gate(true);
        gate.handle_report(0, &report(0));
        let mut times = Vec::new();
        while gate.next_release() != NEVER {
            times.push(gate.next_release());
            assert!(gate.spend(gate.next_release()));
        }
        assert_eq!(times[0], 0);
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| gap.abs_diff(gaps[0]) <= 1));
        assert!(times[times.len() - 1] < 25 * MILLISECOND);
    }

    #[test]
    fn an_allowance_without_data_is_not_counted_as_sent() {
        let (mut idle, mut busy) = (gate(false), gate(false));
        for gate in [&mut idle, &mut busy] {
            gate.handle_report(0, &report(0));
        }
        while busy.spend(0) {}
        for gate in [&mut idle, &mut busy] {
            gate.handle_report(25 * MILLISECOND, &report(0));
        }
        assert!(idle.quota_packets() > busy.quota_packets() + 1.0);
    }
}

//! A link of variable rate: in given or random steps, or by a mahimahi trace.

use std::collections::VecDeque;

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, QueueReport, NEVER};
use crate::lines::line::Line;
use crate::lines::loss::{Loss, LossSettings};
use crate::queues::queue::{QueueLimit, QueueSettings};
use crate::settings::SettingsError;
use crate::transmitters::opportunities::{Opportunities, OpportunityTransmitter};
use crate::transmitters::rate_transmitter::{RadioFrames, RateTransmitter, ServiceRule};
use crate::transmitters::rates::RateProfile;
use crate::transmitters::transmission::Transmission;

/// How one direction sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Service {
    /// Packets are sent at once: none waits.
    #[default]
    Unlimited,
    Rates {
        profile: RateProfile,
        rule: ServiceRule,
        radio_frames: Option<RadioFrames>,
    },
    Opportunities(Opportunities),
}

/// Reports of the down direction's queue, sent up (seed 003, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportSettings {
    /// The papers' Ts.
    pub period_ns: Nanoseconds,
    /// The mobile whose queue it is.
    pub user: u16,
}

/// One direction of a link of variable rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VaryingLineSettings {
    pub service: Service,
    pub delay_ns: Nanoseconds,
    pub queue: QueueSettings,
    pub loss: LossSettings,
}

/// A link of variable rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariableRateSettings {
    pub down: VaryingLineSettings,
    pub up: VaryingLineSettings,
    pub reports: Option<ReportSettings>,
}

/// A link of variable rate.
///
/// A report closes its period before anything that arrives at that very time.
#[derive(Clone, Debug)]
pub struct VariableRate<P> {
    down: Line<P>,
    up: Line<P>,
    reporter: Option<Reporter>,
    reports: VecDeque<P>,
}

impl<P: Datagram> VariableRate<P> {
    /// The link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// Refuses settings outside their ranges, and frames (in limits or reports) of a link that sends none.
    pub fn new(settings: &VariableRateSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        let mut down = settings.down.line(seed, &format!("{name}/down"))?;
        let reporter = match settings.reports {
            None => None,
            Some(ReportSettings { period_ns: 0, .. }) => {
                return Err(SettingsError::new("period_ns of the reports", 0, "at least 1 ns"))
            }
            Some(reports) => match down.transmission_mut() {
                Transmission::Rates(transmitter) if transmitter.sends_frames() => {
                    transmitter.begin_reports();
                    Some(Reporter { settings: reports, due_ns: reports.period_ns, step: 0, served: 0, dropped: 0 })
                }
                _ => {
                    let allowed = "absent without radio_frames";
                    return Err(SettingsError::new("reports", "a report period", allowed));
                }
            },
        };
        let up = settings.up.line(seed, &format!("{name}/up"))?;
        Ok(Self { down, up, reporter, reports: VecDeque::new() })
    }

    fn report_until(&mut self, now: Nanoseconds) {
        let Some(reporter) = &mut self.reporter else {
            return;
        };
        while reporter.due_ns <= now {
            let report = reporter.close_period(&mut self.down);
            self.reports.extend(P::from_report(reporter.settings.user, report));
        }
    }
}

impl VaryingLineSettings {
    fn line<P: Datagram>(&self, seed: u64, name: &str) -> Result<Line<P>, SettingsError> {
        let transmitter = match &self.service {
            Service::Unlimited => Transmission::Instant,
            Service::Opportunities(opportunities) => {
                Transmission::Opportunities(Box::new(OpportunityTransmitter::new(opportunities)?))
            }
            Service::Rates { profile, rule, radio_frames } => {
                let name = format!("{name}/rates");
                Transmission::Rates(Box::new(RateTransmitter::new(profile, *rule, *radio_frames, seed, &name)?))
            }
        };
        if let (QueueLimit::Frames(limit), 0) = (self.queue.limit, transmitter.frames(1)) {
            let value = format!("{limit} frames");
            return Err(SettingsError::new("queue limit", value, "in packets or bytes without radio_frames"));
        }
        Line::new(transmitter, self.delay_ns, &self.queue, Loss::new(&self.loss, seed, name)?)
    }
}

impl<P: Datagram> Hop<P> for VariableRate<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        self.report_until(now);
        match direction {
            Direction::Down => self.down.take(now, packet),
            Direction::Up => self.up.take(now, packet),
        }
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.report_until(now);
    }

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        if let Some(report) = self.reports.pop_front() {
            return Some((Direction::Up, report));
        }
        if self.down.first_arrival() <= now {
            self.down.give().map(|packet| (Direction::Down, packet))
        } else if self.up.first_arrival() <= now {
            self.up.give().map(|packet| (Direction::Up, packet))
        } else {
            None
        }
    }

    fn poll_timeout(&self) -> Nanoseconds {
        let report_ns = self.reporter.as_ref().map_or(NEVER, |reporter| reporter.due_ns);
        self.down.first_arrival().min(self.up.first_arrival()).min(report_ns)
    }

    /// Reports are not counted: they begin here.
    /// `None` if the link sends reports, which have times of their own.
    #[inline]
    fn lines(&mut self) -> Option<(&mut Line<P>, &mut Line<P>)> {
        self.reporter.is_none().then_some((&mut self.down, &mut self.up))
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        match direction {
            Direction::Down => self.down.counts(),
            Direction::Up => self.up.counts(),
        }
    }

    fn capacity_bits(&self, now: Nanoseconds, direction: Direction) -> Option<u64> {
        let line = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        match line.transmission() {
            Transmission::Instant | Transmission::Constant(_) => None,
            Transmission::Rates(transmitter) => Some(transmitter.offered_bits(now)),
            Transmission::Opportunities(transmitter) => Some(transmitter.offered_bits(now)),
        }
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        self.down.observe(now, Direction::Down, record);
        self.up.observe(now, Direction::Up, record);
        for (name, line) in [("down_rate_bit_s", &self.down), ("up_rate_bit_s", &self.up)] {
            if let Transmission::Rates(transmitter) = line.transmission() {
                record(name, transmitter.rate_at(now) as f64);
            }
        }
    }
}

/// Counts from period to period.
#[derive(Clone, Debug)]
struct Reporter {
    settings: ReportSettings,
    due_ns: Nanoseconds,
    step: u32,
    /// Frames until the end of the last period.
    served: u64,
    dropped: u64,
}

impl Reporter {
    fn close_period<P: Datagram>(&mut self, down: &mut Line<P>) -> QueueReport {
        let (queued_frames, served, dropped) = down.frames(self.due_ns);
        let offered_frames = match down.transmission_mut() {
            Transmission::Rates(transmitter) => transmitter.offered_frames(self.due_ns),
            _ => 0,
        };
        let report = QueueReport {
            step: self.step,
            queued_frames,
            served_frames: u32::try_from(served - self.served).unwrap_or(u32::MAX),
            dropped_frames: u32::try_from(dropped - self.dropped).unwrap_or(u32::MAX),
            offered_frames,
        };
        self.step = self.step.wrapping_add(1);
        self.served = served;
        self.dropped = dropped;
        self.due_ns = self.due_ns.saturating_add(self.settings.period_ns);
        report
    }
}

//! Traffic of others on a line: packets that come from beside it, wait and are sent as all do, and leave beside it again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::hop::{Datagram, Nanoseconds, QueueReport, NEVER};
use crate::random::Random;
use crate::settings::SettingsError;

/// Numbers of flows of others: above all that hosts have.
const FIRST_FLOW: u64 = 1 << 48;

/// How the packets of others come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// At even distances, as a voice or video stream.
    #[default]
    Even,
    /// At exponentially distributed distances.
    Poisson,
    /// As short flows that begin at exponentially distributed distances, each of so many bytes on average
    /// (exponentially distributed), sent at this rate.
    Flows { mean_bytes: f64, access_bit_s: u64 },
}

/// What others send on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossSettings {
    pub rate_bit_s: u64,
    pub packet_bytes: u32,
    pub arrivals: Arrivals,
}

impl CrossSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Refuses rates and packets of nothing, and flows of less than a packet.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.rate_bit_s == 0 {
            return Err(SettingsError::new("cross rate_bit_s", 0, "at least 1"));
        }
        if self.packet_bytes == 0 {
            return Err(SettingsError::new("packet_bytes", 0, "at least 1"));
        }
        match self.arrivals {
            Arrivals::Flows { access_bit_s: 0, .. } => Err(SettingsError::new("access_bit_s", 0, "at least 1")),
            Arrivals::Flows { mean_bytes, .. } if mean_bytes < f64::from(self.packet_bytes) => {
                Err(SettingsError::new("flow_bytes", mean_bytes, "at least packet_bytes"))
            }
            _ => Ok(()),
        }
    }
}

/// The packets of others, in order of their times.
#[derive(Clone, Debug)]
pub(super) struct Cross {
    settings: CrossSettings,
    random: Random,
    /// When the next flow begins, in fractions of nanoseconds, so that rates are exact.
    begins_ns: f64,
    /// The next packet of each flow that goes on: its time, its flow, and how many follow it.
    going_on: BinaryHeap<Reverse<(Nanoseconds, u64, u64)>>,
    flows: u64,
}

impl Cross {
    pub(super) fn new(settings: CrossSettings, random: Random) -> Self {
        let mut cross = Self { settings, random, begins_ns: 0.0, going_on: BinaryHeap::new(), flows: 0 };
        cross.plan();
        cross
    }

    /// When the next packet comes.
    pub(super) fn next_ns(&self) -> Nanoseconds {
        self.going_on.peek().map_or(NEVER, |Reverse((at, ..))| *at).min(self.begins())
    }

    /// The next packet.
    pub(super) fn take<P>(&mut self) -> Carried<P> {
        let begins_ns = self.begins();
        let goes_on = self.going_on.peek().is_some_and(|Reverse((at, ..))| *at <= begins_ns);
        let next = if goes_on { self.going_on.pop() } else { None };
        let (at_ns, flow, more) = match next {
            Some(Reverse(next)) => next,
            None => self.begin(begins_ns),
        };
        if let (Arrivals::Flows { access_bit_s, .. }, 1..) = (self.settings.arrivals, more) {
            let gap_ns = self.packet_ns(access_bit_s) as Nanoseconds;
            self.going_on.push(Reverse((at_ns.saturating_add(gap_ns), flow, more - 1)));
        }
        Carried::Cross { bytes: self.settings.packet_bytes, flow: FIRST_FLOW + flow }
    }

    /// The first packet of a flow, and how many follow it.
    fn begin(&mut self, at_ns: Nanoseconds) -> (Nanoseconds, u64, u64) {
        let mut more = 0;
        if let Arrivals::Flows { mean_bytes, .. } = self.settings.arrivals {
            self.flows += 1;
            // The whole part of an exponential number is geometric: one packet and so many have the mean asked for.
            let share = f64::from(self.settings.packet_bytes) / mean_bytes;
            if share < 1.0 {
                more = self.random.exponential(-1.0 / libm::log(1.0 - share)) as u64;
            }
        }
        self.plan();
        (at_ns, self.flows, more)
    }

    fn plan(&mut self) {
        let apart_ns = self.packet_ns(self.settings.rate_bit_s);
        self.begins_ns += match self.settings.arrivals {
            Arrivals::Even => apart_ns,
            Arrivals::Poisson => self.random.exponential(apart_ns),
            Arrivals::Flows { mean_bytes, .. } => {
                self.random.exponential(apart_ns * mean_bytes / f64::from(self.settings.packet_bytes))
            }
        };
    }

    fn begins(&self) -> Nanoseconds {
        self.begins_ns as Nanoseconds
    }

    fn packet_ns(&self, rate_bit_s: u64) -> f64 {
        f64::from(self.settings.packet_bytes) * 8e9 / rate_bit_s as f64
    }
}

/// A packet of ours or of others.
#[derive(Clone, Debug)]
pub(super) enum Carried<P> {
    Own(P),
    Cross { bytes: u32, flow: u64 },
}

impl<P: Datagram> Datagram for Carried<P> {
    fn length_bytes(&self) -> u32 {
        match self {
            Self::Own(packet) => packet.length_bytes(),
            Self::Cross { bytes, .. } => *bytes,
        }
    }

    fn header_bytes(&self) -> u32 {
        match self {
            Self::Own(packet) => packet.header_bytes(),
            Self::Cross { .. } => 0,
        }
    }

    fn user(&self) -> u16 {
        match self {
            Self::Own(packet) => packet.user(),
            Self::Cross { .. } => 0,
        }
    }

    fn understands_marks(&self) -> bool {
        matches!(self, Self::Own(packet) if packet.understands_marks())
    }

    fn mark_congestion(&mut self) {
        if let Self::Own(packet) = self {
            packet.mark_congestion();
        }
    }

    fn from_report(user: u16, report: QueueReport) -> Option<Self> {
        P::from_report(user, report).map(Self::Own)
    }

    fn duplicate(&self) -> Self {
        match self {
            Self::Own(packet) => Self::Own(packet.duplicate()),
            Self::Cross { bytes, flow } => Self::Cross { bytes: *bytes, flow: *flow },
        }
    }

    fn flow(&self) -> u64 {
        match self {
            Self::Own(packet) => packet.flow(),
            Self::Cross { flow, .. } => *flow,
        }
    }

    fn is_counted(&self) -> bool {
        matches!(self, Self::Own(_))
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, Carried, Cross, CrossSettings};
    use crate::hop::SECOND;
    use crate::random::Random;
    use std::collections::HashMap;

    const RATE_BIT_S: u64 = 2_400_000;

    /// Packets by flow in so many seconds, and the time of each packet.
    fn sent(arrivals: Arrivals, seconds: u64) -> (HashMap<u64, u64>, Vec<u64>) {
        let settings = CrossSettings { rate_bit_s: RATE_BIT_S, packet_bytes: 1_500, arrivals };
        let mut cross = Cross::new(settings, Random::new(3, "cross"));
        let (mut flows, mut times) = (HashMap::new(), Vec::new());
        while cross.next_ns() < seconds * SECOND {
            times.push(cross.next_ns());
            if let Carried::<()>::Cross { flow, .. } = cross.take() {
                *flows.entry(flow).or_insert(0) += 1;
            }
        }
        (flows, times)
    }

    #[test]
    fn the_mean_rate_is_what_was_asked_for() {
        // 200 packets a second.
        assert!(sent(Arrivals::Even, 100).1.len().abs_diff(20_000) <= 1);
        let poisson = sent(Arrivals::Poisson, 1_000).1.len() as f64;
        assert!((poisson - 200_000.0).abs() < 4.0 * 200_000f64.sqrt(), "{poisson}");
        let (flows, times) = sent(Arrivals::Flows { mean_bytes: 15_000.0, access_bit_s: 12_000_000 }, 10_000);
        assert!((times.len() as f64 / 2_000_000.0 - 1.0).abs() < 0.02, "{}", times.len());
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        // A geometric number of packets with mean 10: of one alone are a tenth.
        let mean = times.len() as f64 / flows.len() as f64;
        assert!((mean - 10.0).abs() < 0.2, "{mean}");
        let single = flows.values().filter(|count| **count == 1).count() as f64 / flows.len() as f64;
        assert!((single - 0.1).abs() < 0.01, "{single}");
    }
}

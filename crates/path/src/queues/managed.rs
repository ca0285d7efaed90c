//! A line whose queue is managed: RED, CoDel, PIE, or fair queueing with CoDel, before a transmitter of constant rate.

mod codel;
mod cross;
mod disciplined;
mod drop_tail;
mod fair;
mod fifo;
mod pie;
mod queue;
mod red;

pub use codel::CoDelSettings;
pub use cross::{Arrivals, CrossSettings};
pub use fair::FairSettings;
pub use pie::PieSettings;
pub use queue::{Discipline, ManagedQueueSettings};
pub use red::RedSettings;

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds};
use crate::passage::AnyPassage;
use crate::random::Random;
use crate::settings::SettingsError;
use crate::transmitters::serialisation::Serialisation;
use cross::Cross;
use disciplined::DisciplinedLine;
pub use drop_tail::DropTailLine;

/// One direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedLineSettings {
    /// Bits a second of IP packets.
    pub rate_bit_s: u64,
    /// The time from a packet's last bit out to its last bit in.
    pub delay_ns: Nanoseconds,
    pub queue: ManagedQueueSettings,
    /// What others send over it.
    pub cross: Option<CrossSettings>,
}

/// Both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedSettings {
    pub down: ManagedLineSettings,
    pub up: ManagedLineSettings,
}

/// A link with managed queues.
#[derive(Clone, Debug)]
pub struct Managed<P> {
    down: ManagedLine<P>,
    up: ManagedLine<P>,
}

impl<P: Datagram> Managed<P> {
    /// The link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// Refuses a rate of zero and what [`ManagedQueueSettings::check`] refuses.
    pub fn new(settings: &ManagedSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        Ok(Self {
            down: ManagedLine::new(&settings.down, seed, &format!("{name}/down"))?,
            up: ManagedLine::new(&settings.up, seed, &format!("{name}/up"))?,
        })
    }
}

/// One direction, whose packets need one wake-up each with drop-tail.
#[derive(Clone, Debug)]
enum ManagedLine<P> {
    DropTail(Box<DropTailLine<P>>),
    Disciplined(Box<DisciplinedLine<P>>),
}

impl<P: Datagram> ManagedLine<P> {
    fn new(settings: &ManagedLineSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        if settings.queue.discipline != Discipline::DropTail {
            return Ok(Self::Disciplined(Box::new(DisciplinedLine::new(settings, seed, name)?)));
        }
        let cross = match settings.cross {
            Some(cross) => {
                cross.check()?;
                Some(Cross::new(cross, Random::new(seed, &format!("{name}/cross"))))
            }
            None => None,
        };
        let serialisation = Serialisation::new(settings.rate_bit_s)?;
        let limit_packets = settings.queue.limit_packets as usize;
        Ok(Self::DropTail(Box::new(DropTailLine::new(serialisation, limit_packets, settings.delay_ns, cross))))
    }

    #[inline]
    fn take(&mut self, now: Nanoseconds, packet: P) {
        match self {
            Self::DropTail(line) => line.take(now, packet),
            Self::Disciplined(line) => line.take(now, packet),
        }
    }

    #[inline]
    fn advance(&mut self, now: Nanoseconds) {
        if let Self::Disciplined(line) = self {
            line.advance(now);
        }
    }

    #[inline]
    fn give(&mut self, now: Nanoseconds) -> Option<P> {
        match self {
            Self::DropTail(line) => line.give(now),
            Self::Disciplined(line) => line.give(now),
        }
    }

    #[inline]
    fn next_time(&self) -> Nanoseconds {
        match self {
            Self::DropTail(line) => line.first_arrival(),
            Self::Disciplined(line) => line.next_time(),
        }
    }

    fn counts(&self) -> HopCounts {
        match self {
            Self::DropTail(line) => line.counts,
            Self::Disciplined(line) => line.counts,
        }
    }

    fn waiting(&self, now: Nanoseconds) -> (usize, Nanoseconds) {
        match self {
            Self::DropTail(line) => line.waiting(now),
            Self::Disciplined(line) => line.waiting(now),
        }
    }
}

impl<P: Datagram> Hop<P> for Managed<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        match direction {
            Direction::Down => self.down.take(now, packet),
            Direction::Up => self.up.take(now, packet),
        }
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.down.advance(now);
        self.up.advance(now);
    }

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        let down = self.down.give(now).map(|packet| (Direction::Down, packet));
        down.or_else(|| self.up.give(now).map(|packet| (Direction::Up, packet)))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.down.next_time().min(self.up.next_time())
    }

    fn passages(&mut self) -> Option<(AnyPassage<'_, P>, AnyPassage<'_, P>)> {
        match (&mut self.down, &mut self.up) {
            (ManagedLine::DropTail(down), ManagedLine::DropTail(up)) => {
                Some((down.as_mut().into(), up.as_mut().into()))
            }
            _ => None,
        }
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        match direction {
            Direction::Down => self.down.counts(),
            Direction::Up => self.up.counts(),
        }
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        let ((down_packets, down_ns), (up_packets, up_ns)) = (self.down.waiting(now), self.up.waiting(now));
        record("down_queue_packets", down_packets as f64);
        record("down_queue_delay_s", down_ns as f64 / 1e9);
        record("up_queue_packets", up_packets as f64);
        record("up_queue_delay_s", up_ns as f64 / 1e9);
    }
}

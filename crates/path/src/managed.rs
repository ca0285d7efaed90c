//! A line whose queue is managed: RED, CoDel, PIE, or fair queueing with CoDel, before a transmitter of constant rate.

mod codel;
mod cross;
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

use std::collections::VecDeque;

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NEVER};
use crate::random::Random;
use crate::serialisation::Serialisation;
use crate::settings::SettingsError;
use cross::{Carried, Cross};
use queue::ManagedQueue;

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

#[derive(Clone, Debug)]
struct ManagedLine<P> {
    queue: ManagedQueue<Carried<P>>,
    cross: Option<Cross>,
    serialisation: Serialisation,
    /// The packet that is sent, with the end of its transmission.
    in_service: Option<(Nanoseconds, Carried<P>)>,
    delay_ns: Nanoseconds,
    under_way: VecDeque<(Nanoseconds, P)>,
    counts: HopCounts,
}

impl<P: Datagram> ManagedLine<P> {
    fn new(settings: &ManagedLineSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        if let Some(cross) = &settings.cross {
            cross.check()?;
        }
        Ok(Self {
            queue: ManagedQueue::new(&settings.queue, settings.rate_bit_s, Random::new(seed, name))?,
            cross: settings.cross.map(|cross| Cross::new(cross, Random::new(seed, &format!("{name}/cross")))),
            serialisation: Serialisation::new(settings.rate_bit_s)?,
            in_service: None,
            delay_ns: settings.delay_ns,
            under_way: VecDeque::new(),
            counts: HopCounts::default(),
        })
    }

    fn take(&mut self, now: Nanoseconds, packet: P) {
        self.advance(now);
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(packet.length_bytes());
        self.queue.enqueue(now, Carried::Own(packet), &mut self.counts);
        self.serve(now);
    }

    /// Lets others' packets come and serves all, in order of time, until `now`.
    fn advance(&mut self, now: Nanoseconds) {
        while let Some(at_ns) = self.cross.as_ref().map(Cross::next_ns).filter(|at_ns| *at_ns <= now) {
            self.serve(at_ns);
            if let Some(packet) = self.cross.as_mut().map(Cross::take) {
                self.queue.enqueue(at_ns, packet, &mut self.counts);
            }
            self.serve(at_ns);
        }
        self.serve(now);
    }

    /// Whether packets of ours wait or are sent: only these need a wake-up.
    fn holds_own(&self) -> bool {
        let gone = self.counts.delivered_packets + self.counts.overflowed_packets + self.under_way.len() as u64;
        self.counts.offered_packets > gone
    }

    /// Sends what can be sent by `now`, each packet as of the time at which the one before it ended.
    fn serve(&mut self, now: Nanoseconds) {
        let mut free_ns = now;
        match self.in_service.take() {
            Some((ends_ns, packet)) if ends_ns > now => {
                self.in_service = Some((ends_ns, packet));
                return;
            }
            Some((ends_ns, packet)) => {
                self.send(ends_ns, packet);
                free_ns = ends_ns;
            }
            None => self.serialisation.begin(),
        }
        while let Some(packet) = self.queue.dequeue(free_ns, &mut self.counts) {
            let ends_ns = free_ns.saturating_add(self.serialisation.advance(packet.length_bytes()));
            if ends_ns > now {
                self.in_service = Some((ends_ns, packet));
                return;
            }
            self.send(ends_ns, packet);
            free_ns = ends_ns;
        }
    }

    fn send(&mut self, ends_ns: Nanoseconds, packet: Carried<P>) {
        if let Carried::Own(packet) = packet {
            self.under_way.push_back((ends_ns.saturating_add(self.delay_ns), packet));
        }
    }

    fn give(&mut self, now: Nanoseconds) -> Option<P> {
        self.under_way.front().filter(|(arrives_ns, _)| *arrives_ns <= now)?;
        let (_, packet) = self.under_way.pop_front()?;
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(packet.length_bytes());
        Some(packet)
    }

    fn next_time(&self) -> Nanoseconds {
        let served = self.in_service.as_ref().filter(|_| self.holds_own());
        let ends_ns = served.map_or(NEVER, |(ends_ns, _)| *ends_ns);
        self.under_way.front().map_or(ends_ns, |(arrives_ns, _)| ends_ns.min(*arrives_ns))
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

    fn counts(&self, direction: Direction) -> HopCounts {
        match direction {
            Direction::Down => self.down.counts,
            Direction::Up => self.up.counts,
        }
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        record("down_queue_packets", self.down.queue.packets() as f64);
        record("down_queue_delay_s", self.down.queue.delay_ns(now) as f64 / 1e9);
        record("up_queue_packets", self.up.queue.packets() as f64);
        record("up_queue_delay_s", self.up.queue.delay_ns(now) as f64 / 1e9);
    }
}

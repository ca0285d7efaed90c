//! A managed line whose queue decides about packets when they leave it, or draws lots for them.

use std::collections::VecDeque;

use super::cross::{Carried, Cross};
use super::queue::ManagedQueue;
use super::ManagedLineSettings;
use crate::hop::{Datagram, HopCounts, Nanoseconds, NEVER};
use crate::random::Random;
use crate::settings::SettingsError;
use crate::transmitters::serialisation::Serialisation;

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct DisciplinedLine<P> {
    queue: ManagedQueue<Carried<P>>,
    cross: Option<Cross>,
    serialisation: Serialisation,
    /// The packet that is sent, with the end of its transmission.
    in_service: Option<(Nanoseconds, Carried<P>)>,
    delay_ns: Nanoseconds,
    under_way: VecDeque<(Nanoseconds, P)>,
    pub(super) counts: HopCounts,
}

impl<P: Datagram> DisciplinedLine<P> {
    pub(super) fn new(settings: &ManagedLineSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
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

    pub(super) fn take(&mut self, now: Nanoseconds, packet: P) {
        self.advance(now);
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(packet.length_bytes());
        self.queue.enqueue(now, Carried::Own(packet), &mut self.counts);
        self.serve(now);
    }

    /// Lets others' packets come and serves all, in order of time, until `now`.
    pub(super) fn advance(&mut self, now: Nanoseconds) {
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

    pub(super) fn give(&mut self, now: Nanoseconds) -> Option<P> {
        self.under_way.front().filter(|(arrives_ns, _)| *arrives_ns <= now)?;
        let (_, packet) = self.under_way.pop_front()?;
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(packet.length_bytes());
        Some(packet)
    }

    pub(super) fn next_time(&self) -> Nanoseconds {
        let served = self.in_service.as_ref().filter(|_| self.holds_own());
        let ends_ns = served.map_or(NEVER, |(ends_ns, _)| *ends_ns);
        self.under_way.front().map_or(ends_ns, |(arrives_ns, _)| ends_ns.min(*arrives_ns))
    }

    /// Packets that wait, and how long the first of them has at `now`.
    pub(super) fn waiting(&self, now: Nanoseconds) -> (usize, Nanoseconds) {
        (self.queue.packets(), self.queue.delay_ns(now))
    }
}

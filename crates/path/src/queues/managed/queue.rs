//! A queue with its discipline.

use super::codel::{CoDel, CoDelSettings};
use super::fair::{Fair, FairSettings};
use super::fifo::Fifo;
use super::pie::{Pie, PieSettings};
use super::red::{Fate, Red, RedSettings};
use crate::hop::{Datagram, HopCounts, Nanoseconds};
use crate::random::Random;
use crate::settings::SettingsError;

/// RED's typical packet: how often an idle line counts as a sample.
const TYPICAL_BYTES: f64 = 1000.0;

/// Who decides which packets are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    #[default]
    DropTail,
    Red(RedSettings),
    CoDel(CoDelSettings),
    Pie(PieSettings),
    Fair(FairSettings),
}

/// A managed queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManagedQueueSettings {
    pub discipline: Discipline,
    /// Packets that may wait.
    pub limit_packets: u32,
    /// Packets whose sender understands marks are marked (RFC 3168) instead of dropped.
    pub marks: bool,
}

impl ManagedQueueSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Refuses what the discipline cannot work with.
    pub fn check(&self) -> Result<(), SettingsError> {
        match &self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::Red(settings) => settings.check(),
            Discipline::CoDel(settings) => settings.check(),
            Discipline::Pie(settings) => settings.check(),
            Discipline::Fair(settings) => settings.check(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct ManagedQueue<P> {
    kind: Kind<P>,
    limit_packets: usize,
    marks: bool,
    random: Random,
}

#[derive(Clone, Debug)]
enum Kind<P> {
    DropTail(Fifo<P>),
    Red(Fifo<P>, Red),
    CoDel(Fifo<P>, CoDel),
    Pie(Fifo<P>, Pie),
    Fair(Fair<P>),
}

impl<P: Datagram> ManagedQueue<P> {
    pub(super) fn new(
        settings: &ManagedQueueSettings,
        rate_bit_s: u64,
        mut random: Random,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        let marks = settings.marks;
        let kind = match settings.discipline {
            Discipline::DropTail => Kind::DropTail(Fifo::default()),
            Discipline::Red(red) => {
                Kind::Red(Fifo::default(), Red::new(red, TYPICAL_BYTES * 8e9 / rate_bit_s.max(1) as f64))
            }
            Discipline::CoDel(codel) => Kind::CoDel(Fifo::default(), CoDel::new(codel, marks)),
            Discipline::Pie(pie) => Kind::Pie(Fifo::default(), Pie::new(pie)),
            Discipline::Fair(fair) => Kind::Fair(Fair::new(fair, marks, random.bits())),
        };
        Ok(Self { kind, limit_packets: settings.limit_packets as usize, marks, random })
    }

    pub(super) fn enqueue(&mut self, now: Nanoseconds, packet: P, counts: &mut HopCounts) {
        let is_full = self.packets() >= self.limit_packets;
        let (fifo, fate) = match &mut self.kind {
            Kind::DropTail(fifo) | Kind::CoDel(fifo, _) => (fifo, Fate::Enters),
            Kind::Red(fifo, red) => {
                let fate = red.arrives(now, fifo.packets(), &mut self.random);
                (fifo, fate)
            }
            Kind::Pie(fifo, pie) => {
                pie.update(now, |at| fifo.delay_ns(at));
                let fate = pie.arrives(fifo.bytes(), &mut self.random);
                (fifo, fate)
            }
            Kind::Fair(fair) => {
                fair.enqueue(now, packet);
                if is_full {
                    fair.drop_from_longest(counts);
                }
                return;
            }
        };
        if is_full {
            counts.overflow(&packet);
        } else if let Some(packet) = warned(packet, fate, self.marks, counts) {
            fifo.push(now, packet);
        }
    }

    /// The next packet to send.
    pub(super) fn dequeue(&mut self, now: Nanoseconds, counts: &mut HopCounts) -> Option<P> {
        match &mut self.kind {
            Kind::DropTail(fifo) => fifo.pop(now).map(|(_, packet)| packet),
            Kind::CoDel(fifo, codel) => codel.dequeue(now, fifo, counts),
            Kind::Fair(fair) => fair.dequeue(now, counts),
            Kind::Pie(fifo, pie) => {
                pie.update(now, |at| fifo.delay_ns(at));
                fifo.pop(now).map(|(_, packet)| packet)
            }
            Kind::Red(fifo, red) => {
                let packet = fifo.pop(now).map(|(_, packet)| packet);
                if packet.is_none() {
                    red.idles(now);
                }
                packet
            }
        }
    }

    pub(super) fn packets(&self) -> usize {
        match &self.kind {
            Kind::DropTail(fifo) | Kind::Red(fifo, _) | Kind::CoDel(fifo, _) | Kind::Pie(fifo, _) => fifo.packets(),
            Kind::Fair(fair) => fair.packets(),
        }
    }

    /// How long the packet that waits longest has waited until `now`.
    pub(super) fn delay_ns(&self, now: Nanoseconds) -> Nanoseconds {
        match &self.kind {
            Kind::DropTail(fifo) | Kind::Red(fifo, _) | Kind::CoDel(fifo, _) | Kind::Pie(fifo, _) => fifo.delay_ns(now),
            Kind::Fair(fair) => fair.delay_ns(now),
        }
    }
}

/// The packet as it enters, marked where it was warned; None where it does not.
fn warned<P: Datagram>(mut packet: P, fate: Fate, marks: bool, counts: &mut HopCounts) -> Option<P> {
    match fate {
        Fate::Enters => Some(packet),
        Fate::Warned if marks && packet.understands_marks() => {
            packet.mark_congestion();
            counts.marked_packets += 1;
            Some(packet)
        }
        Fate::Warned | Fate::Dropped => {
            counts.overflow(&packet);
            None
        }
    }
}

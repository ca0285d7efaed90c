//! A wired link: constant rate and delay, a drop-tail buffer and losses, in each direction apart.
//!
//! Service is first come, first served at a constant rate, so when a packet leaves is known when it arrives. It is put
//! straight into the ring of packets under way with the time of its arrival at the far end, and only a small record of
//! its departure stays to say how full the buffer is. One packet costs one wake-up.

use std::collections::VecDeque;

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NEVER, SECOND};
use crate::loss::{Loss, LossSettings};
use crate::queue::{AverageQueue, Occupancy, QueueSettings};
use crate::serialisation::Serialisation;
use crate::settings::SettingsError;

/// One direction of a wired link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineSettings {
    /// Bits a second of IP packets; `None` is no limit: no packet waits then, nor takes time.
    pub rate_bit_s: Option<u64>,
    /// From a packet's last bit out to its last bit in.
    pub delay_ns: Nanoseconds,
    pub queue: QueueSettings,
    /// Packets that take their time on the link and never arrive.
    pub loss: LossSettings,
}

/// Both directions of a wired link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WiredSettings {
    pub down: LineSettings,
    pub up: LineSettings,
}

/// A wired link.
#[derive(Clone, Debug)]
pub struct Wired<P> {
    down: Line<P>,
    up: Line<P>,
}

impl<P: Datagram> Wired<P> {
    /// The link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// Refuses a rate of zero and what [`QueueSettings::check`] and [`Loss::new`] refuse.
    pub fn new(settings: &WiredSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        Ok(Self {
            down: Line::new(&settings.down, seed, &format!("{name}/down"))?,
            up: Line::new(&settings.up, seed, &format!("{name}/up"))?,
        })
    }

    #[inline]
    fn line(&self, direction: Direction) -> &Line<P> {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

impl<P: Datagram> Hop<P> for Wired<P> {
    #[inline]
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        match direction {
            Direction::Down => self.down.take(now, packet),
            Direction::Up => self.up.take(now, packet),
        }
    }

    #[inline]
    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    #[inline]
    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        if self.down.next_ns <= now {
            self.down.give().map(|packet| (Direction::Down, packet))
        } else if self.up.next_ns <= now {
            self.up.give().map(|packet| (Direction::Up, packet))
        } else {
            None
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Nanoseconds {
        self.down.next_ns.min(self.up.next_ns)
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.line(direction).counts
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        let (down, up) = (self.down.occupancy(now), self.up.occupancy(now));
        record("down_system_packets", f64::from(down.packets));
        record("down_system_bytes", down.bytes as f64);
        record("up_system_packets", f64::from(up.packets));
        record("up_system_bytes", up.bytes as f64);
        for (name, line) in [("down_average_queue_packets", &self.down), ("up_average_queue_packets", &self.up)] {
            if let Some(average) = &line.average {
                record(name, average.average_packets());
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Line<P> {
    serialisation: Option<Serialisation>,
    delay_ns: Nanoseconds,
    queue: QueueSettings,
    average: Option<AverageQueue>,
    loss: Loss,
    /// End of service and length of the packets in the system, the one in service first.
    system: VecDeque<(Nanoseconds, u32)>,
    occupancy: Occupancy,
    busy_until: Nanoseconds,
    under_way: VecDeque<(Nanoseconds, P)>,
    /// When the first of those under way arrives.
    next_ns: Nanoseconds,
    counts: HopCounts,
}

impl<P: Datagram> Line<P> {
    fn new(settings: &LineSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        settings.queue.check()?;
        Ok(Self {
            serialisation: settings.rate_bit_s.map(Serialisation::new).transpose()?,
            delay_ns: settings.delay_ns,
            queue: settings.queue,
            average: settings.queue.marking.map(AverageQueue::new),
            loss: Loss::new(&settings.loss, seed, name)?,
            system: VecDeque::new(),
            occupancy: Occupancy::default(),
            busy_until: 0,
            under_way: VecDeque::new(),
            next_ns: NEVER,
            counts: HopCounts::default(),
        })
    }

    #[inline]
    fn take(&mut self, now: Nanoseconds, mut packet: P) {
        let bytes = packet.length_bytes();
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(bytes);
        let mut departure = now;
        if self.serialisation.is_some() {
            self.forget_departed(now);
            let in_service = self.system.front().map(|&(_, served)| served);
            if !self.queue.admits(self.occupancy, in_service, bytes) {
                self.counts.overflowed_packets += 1;
                return;
            }
            if self.average.is_some() && self.warns(now, bytes) && packet.understands_marks() {
                packet.mark_congestion();
                self.counts.marked_packets += 1;
            }
            departure = self.serve(now, bytes);
        }
        if self.loss.loses_next() {
            self.counts.lost_packets += 1;
            return;
        }
        let arrival = departure.saturating_add(self.delay_ns);
        if self.under_way.is_empty() {
            self.next_ns = arrival;
        }
        self.under_way.push_back((arrival, packet));
    }

    #[inline]
    fn serve(&mut self, now: Nanoseconds, bytes: u32) -> Nanoseconds {
        let Some(serialisation) = &mut self.serialisation else {
            return now;
        };
        if self.busy_until < now {
            self.busy_until = now;
            serialisation.begin();
        }
        self.busy_until = self.busy_until.saturating_add(serialisation.advance(bytes));
        self.system.push_back((self.busy_until, bytes));
        self.occupancy.add(bytes);
        self.busy_until
    }

    #[inline]
    fn forget_departed(&mut self, now: Nanoseconds) {
        while let Some(&(departure, bytes)) = self.system.front() {
            if departure > now {
                break;
            }
            self.system.pop_front();
            self.occupancy.remove(bytes);
        }
    }

    /// Samples the average queue for an arrival of `bytes`; whether it is to be marked.
    fn warns(&mut self, now: Nanoseconds, bytes: u32) -> bool {
        let (Some(average), Some(serialisation)) = (&mut self.average, &self.serialisation) else {
            return false;
        };
        let idle_s = now.saturating_sub(self.busy_until) as f64 / SECOND as f64;
        let idle_packets = idle_s / serialisation.seconds(bytes.max(1));
        average.sample(self.occupancy.packets.saturating_sub(1), idle_packets)
    }

    #[inline]
    fn give(&mut self) -> Option<P> {
        let (_, packet) = self.under_way.pop_front()?;
        self.next_ns = self.under_way.front().map_or(NEVER, |&(arrival, _)| arrival);
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(packet.length_bytes());
        Some(packet)
    }

    fn occupancy(&self, now: Nanoseconds) -> Occupancy {
        let departed = self.system.iter().take_while(|&&(departure, _)| departure <= now);
        departed.fold(self.occupancy, |occupancy, &(_, bytes)| occupancy.without(bytes))
    }
}

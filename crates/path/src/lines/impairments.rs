//! What a network does to packets besides queueing them: jitter, reordering, duplication.
//!
//! Each packet draws whether it is copied; it and its copy draw a delay each. Jitter keeps the order: a packet that
//! draws less than the one before it leaves with that one. A packet that is held back leaves the order, so that those
//! behind overtake it.

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds};
use crate::queues::schedule::Schedule;
use crate::random::Random;
use crate::settings::{check_probability, SettingsError};

/// What happens to packets in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImpairedLineSettings {
    /// The least time from in to out.
    pub delay_ns: Nanoseconds,
    /// The most that is added at random, uniformly, without changing the order.
    pub jitter_ns: Nanoseconds,
    /// Share of packets that are held back `reorder_ns` longer.
    pub reordered: f64,
    pub reorder_ns: Nanoseconds,
    /// Share of packets that leave twice.
    pub duplicated: f64,
}

impl ImpairedLineSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Refuses what is no probability, and packets that are to be held back for no time.
    pub fn check(&self) -> Result<(), SettingsError> {
        check_probability("reordered", self.reordered)?;
        check_probability("duplicated", self.duplicated)?;
        if self.reordered > 0.0 && self.reorder_ns == 0 {
            return Err(SettingsError::new("reorder_s", 0, "above 0 where packets are reordered"));
        }
        Ok(())
    }
}

/// Both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImpairmentsSettings {
    pub down: ImpairedLineSettings,
    pub up: ImpairedLineSettings,
}

/// A stretch of the path that shakes, reorders and copies packets.
#[derive(Clone, Debug)]
pub struct Impairments<P> {
    down: ImpairedLine<P>,
    up: ImpairedLine<P>,
}

#[derive(Clone, Debug)]
struct ImpairedLine<P> {
    settings: ImpairedLineSettings,
    random: Random,
    under_way: Schedule<P>,
    /// When the last packet that was not held back leaves.
    last_ns: Nanoseconds,
    counts: HopCounts,
}

impl<P: Datagram> Impairments<P> {
    /// The stretch called `name` in the run with `seed`.
    ///
    /// # Errors
    /// What [`ImpairedLineSettings::check`] refuses.
    pub fn new(settings: &ImpairmentsSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        Ok(Self {
            down: ImpairedLine::new(settings.down, Random::new(seed, &format!("{name}/down")))?,
            up: ImpairedLine::new(settings.up, Random::new(seed, &format!("{name}/up")))?,
        })
    }
}

impl<P: Datagram> ImpairedLine<P> {
    fn new(settings: ImpairedLineSettings, random: Random) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self { settings, random, under_way: Schedule::default(), last_ns: 0, counts: HopCounts::default() })
    }

    fn take(&mut self, now: Nanoseconds, packet: P) {
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(packet.length_bytes());
        let copy = self.random.chance(self.settings.duplicated).then(|| packet.duplicate());
        self.send(now, packet);
        if let Some(copy) = copy {
            self.counts.duplicated_packets += 1;
            self.send(now, copy);
        }
    }

    fn send(&mut self, now: Nanoseconds, packet: P) {
        let mut leaves_ns = now.saturating_add(self.settings.delay_ns);
        if self.settings.jitter_ns > 0 {
            let jitter_ns = self.random.uniform() * self.settings.jitter_ns as f64;
            leaves_ns = leaves_ns.saturating_add(jitter_ns as Nanoseconds);
        }
        leaves_ns = leaves_ns.max(self.last_ns);
        if self.random.chance(self.settings.reordered) {
            leaves_ns = leaves_ns.saturating_add(self.settings.reorder_ns);
        } else {
            self.last_ns = leaves_ns;
        }
        self.under_way.add(leaves_ns, packet);
    }

    fn give(&mut self, now: Nanoseconds) -> Option<P> {
        let packet = self.under_way.pop(now)?;
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(packet.length_bytes());
        Some(packet)
    }
}

impl<P: Datagram> Hop<P> for Impairments<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        match direction {
            Direction::Down => self.down.take(now, packet),
            Direction::Up => self.up.take(now, packet),
        }
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        let down = self.down.give(now).map(|packet| (Direction::Down, packet));
        down.or_else(|| self.up.give(now).map(|packet| (Direction::Up, packet)))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.down.under_way.next_time().min(self.up.under_way.next_time())
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        match direction {
            Direction::Down => self.down.counts,
            Direction::Up => self.up.counts,
        }
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        record("down_packets_under_way", self.down.under_way.len() as f64);
        record("up_packets_under_way", self.up.under_way.len() as f64);
    }
}

//! Handovers: for a short time nothing moves between a mobile and the network (3GPP TS 36.300, 10.1.2).
//!
//! What the mobile sends meanwhile waits in it. What comes for it is forwarded from the old cell to the new one and waits
//! there, or is lost where the cells forward nothing. Each mobile has handovers of its own.

use std::collections::BTreeMap;

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, MILLISECOND, SECOND};
use crate::queues::schedule::Schedule;
use crate::random::Random;
use crate::settings::SettingsError;

/// When handovers come and what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoverSettings {
    /// From the start of the run, or the end of a handover, to the next one.
    pub interval_ns: Nanoseconds,
    /// Whether intervals are drawn, exponentially with that mean, instead of all the same.
    pub is_random: bool,
    /// For how long nothing moves.
    pub interruption_ns: Nanoseconds,
    /// Whether packets down wait for the new cell instead of being lost.
    pub forwards: bool,
}

impl Default for HandoverSettings {
    /// The interruption is about that of LTE (3GPP TR 36.881).
    fn default() -> Self {
        Self { interval_ns: 30 * SECOND, is_random: true, interruption_ns: 50 * MILLISECOND, forwards: true }
    }
}

impl HandoverSettings {
    /// Checks the interval.
    ///
    /// # Errors
    /// Refuses handovers without time between them.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.interval_ns < MILLISECOND {
            let value = self.interval_ns as f64 / 1e9;
            return Err(SettingsError::new("interval_s", value, "at least 0.001"));
        }
        Ok(())
    }
}

/// The handovers of every mobile.
#[derive(Clone, Debug)]
pub struct Handovers<P> {
    settings: HandoverSettings,
    seed: u64,
    name: String,
    mobiles: BTreeMap<u16, Mobile>,
    under_way: Schedule<(Direction, P)>,
    counts: [HopCounts; 2],
}

#[derive(Clone, Debug)]
struct Mobile {
    random: Random,
    /// Start of the present handover or else of the next one.
    starts_ns: Nanoseconds,
}

impl Mobile {
    fn new(settings: &HandoverSettings, random: Random) -> Self {
        let mut mobile = Self { random, starts_ns: 0 };
        mobile.starts_ns = mobile.interval_ns(settings);
        mobile
    }

    fn interval_ns(&mut self, settings: &HandoverSettings) -> Nanoseconds {
        if settings.is_random {
            self.random.exponential(settings.interval_ns as f64) as Nanoseconds
        } else {
            settings.interval_ns
        }
    }

    /// The end of the handover that is under way; `None` if there is none.
    fn interrupted_until(&mut self, now: Nanoseconds, settings: &HandoverSettings) -> Option<Nanoseconds> {
        loop {
            let ends_ns = self.starts_ns.saturating_add(settings.interruption_ns);
            if now < ends_ns {
                return (self.starts_ns <= now).then_some(ends_ns);
            }
            self.starts_ns = ends_ns.saturating_add(self.interval_ns(settings).max(1));
        }
    }
}

impl<P: Datagram> Handovers<P> {
    /// The handovers called `name` in the run with `seed`.
    ///
    /// # Errors
    /// What [`HandoverSettings::check`] refuses.
    pub fn new(settings: HandoverSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self {
            settings,
            seed,
            name: name.to_owned(),
            mobiles: BTreeMap::new(),
            under_way: Schedule::default(),
            counts: [HopCounts::default(); 2],
        })
    }
}

impl<P: Datagram> Hop<P> for Handovers<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        let counts = &mut self.counts[direction.index()];
        counts.offered_packets += 1;
        counts.offered_bytes += u64::from(packet.length_bytes());
        let (settings, user) = (self.settings, packet.user());
        let mobile = self
            .mobiles
            .entry(user)
            .or_insert_with(|| Mobile::new(&settings, Random::new(self.seed, &format!("{}/{user}", self.name))));
        let until_ns = mobile.interrupted_until(now, &settings);
        if until_ns.is_some() && direction == Direction::Down && !settings.forwards {
            counts.lost_packets += 1;
            return;
        }
        self.under_way.add(until_ns.unwrap_or(now), (direction, packet));
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        let (direction, packet) = self.under_way.pop(now)?;
        let counts = &mut self.counts[direction.index()];
        counts.delivered_packets += 1;
        counts.delivered_bytes += u64::from(packet.length_bytes());
        Some((direction, packet))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.under_way.next_time()
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.counts[direction.index()]
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        record("waiting_packets", self.under_way.len() as f64);
    }
}

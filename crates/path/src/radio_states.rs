//! The states of a mobile's radio, which decide when it hears: connected, connected with DRX, idle.
//!
//! An idle mobile connects before anything moves, for packets down after it was paged. A connected one that was silent
//! for a while listens only at the start of each DRX cycle, first of short cycles, then of long ones; packets down wait
//! for that, packets up wake it. After a longer silence it is idle again (3GPP TS 36.331, 5.3.3 and 5.3.8; 36.321, 5.7;
//! 36.304, 7).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, MILLISECOND, NEVER};
use crate::random::Random;
use crate::settings::SettingsError;

/// Times of the states. The defaults are what Huang et al. measured in a commercial LTE network (*A Close Examination of
/// Performance and Power Characteristics of 4G LTE Networks*, MobiSys 2012).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioStatesSettings {
    /// From idle to connected.
    pub promotion_ns: Nanoseconds,
    /// Without a packet for so long, a connected mobile becomes idle.
    pub release_ns: Nanoseconds,
    /// Between two times at which an idle mobile can be paged; 0: at any time.
    pub paging_cycle_ns: Nanoseconds,
    /// Without a packet for so long, a connected mobile begins its cycles.
    pub inactivity_ns: Nanoseconds,
    pub short_cycle_ns: Nanoseconds,
    /// So many short cycles come before the long ones.
    pub short_cycles: u32,
    /// 0: a connected mobile always listens.
    pub long_cycle_ns: Nanoseconds,
    /// For so long it listens at the start of each cycle.
    pub on_duration_ns: Nanoseconds,
    pub starts_connected: bool,
}

impl Default for RadioStatesSettings {
    fn default() -> Self {
        Self {
            promotion_ns: 260 * MILLISECOND,
            release_ns: 11_576 * MILLISECOND,
            paging_cycle_ns: 1_280 * MILLISECOND,
            inactivity_ns: 100 * MILLISECOND,
            short_cycle_ns: 20 * MILLISECOND,
            short_cycles: 1,
            long_cycle_ns: 40 * MILLISECOND,
            on_duration_ns: MILLISECOND,
            starts_connected: false,
        }
    }
}

impl RadioStatesSettings {
    /// Checks that cycles fit into one another.
    ///
    /// # Errors
    /// Refuses a long cycle that is no multiple of the short one, and cycles in which the mobile never listens.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.long_cycle_ns == 0 {
            return Ok(());
        }
        let refuse = |field, value: Nanoseconds, allowed| Err(SettingsError::new(field, value as f64 / 1e9, allowed));
        if self.on_duration_ns == 0 {
            return refuse("on_duration_s", 0, "above 0 where there are long cycles");
        }
        if self.short_cycles == 0 {
            return Ok(());
        }
        match self.long_cycle_ns.checked_rem(self.short_cycle_ns) {
            None => refuse("short_cycle_s", 0, "above 0 where there are short cycles"),
            Some(0) => Ok(()),
            Some(_) => refuse("long_cycle_s", self.long_cycle_ns, "a multiple of short_cycle_s"),
        }
    }
}

/// The radio of every mobile, each with cycles of its own.
#[derive(Clone, Debug)]
pub struct RadioStates<P> {
    settings: RadioStatesSettings,
    seed: u64,
    name: String,
    mobiles: BTreeMap<u16, Mobile<P>>,
    /// When mobiles wake; of a mobile's entries the one counts that equals its `wakes_ns`.
    wake_ups: BinaryHeap<Reverse<(Nanoseconds, u16)>>,
    passing: VecDeque<(Direction, P)>,
    counts: [HopCounts; 2],
}

#[derive(Clone, Debug)]
struct Mobile<P> {
    /// When the last packet passed; `None` if that was never.
    last_ns: Option<Nanoseconds>,
    /// Where in its cycle the mobile begins to listen.
    offset_ns: Nanoseconds,
    paging_offset_ns: Nanoseconds,
    waiting: VecDeque<(Direction, P)>,
    /// Whether it was idle when the first of the waiting packets came.
    was_idle: bool,
    /// When the waiting packets pass; [`NEVER`] if none wait.
    wakes_ns: Nanoseconds,
}

impl<P: Datagram> RadioStates<P> {
    /// The radios called `name` in the run with `seed`.
    ///
    /// # Errors
    /// What [`RadioStatesSettings::check`] refuses.
    pub fn new(settings: RadioStatesSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self {
            settings,
            seed,
            name: name.to_owned(),
            mobiles: BTreeMap::new(),
            wake_ups: BinaryHeap::new(),
            passing: VecDeque::new(),
            counts: [HopCounts::default(); 2],
        })
    }

    fn wake(&mut self, now: Nanoseconds) {
        while let Some(&Reverse((wakes_ns, user))) = self.wake_ups.peek() {
            let Some(mobile) = self.mobiles.get_mut(&user).filter(|mobile| mobile.wakes_ns == wakes_ns) else {
                self.wake_ups.pop();
                continue;
            };
            if wakes_ns > now {
                break;
            }
            self.passing.append(&mut mobile.waiting);
            mobile.last_ns = Some(wakes_ns);
            mobile.wakes_ns = NEVER;
            self.wake_ups.pop();
        }
    }
}

impl<P> Mobile<P> {
    fn new(settings: &RadioStatesSettings, mut random: Random) -> Self {
        let mut within = |cycle_ns: Nanoseconds| (random.uniform() * cycle_ns as f64) as Nanoseconds;
        Self {
            last_ns: settings.starts_connected.then_some(0),
            offset_ns: within(settings.long_cycle_ns),
            paging_offset_ns: within(settings.paging_cycle_ns),
            waiting: VecDeque::new(),
            was_idle: false,
            wakes_ns: NEVER,
        }
    }

    fn is_idle(&self, now: Nanoseconds, settings: &RadioStatesSettings) -> bool {
        self.last_ns.is_none_or(|last_ns| now.saturating_sub(last_ns) >= settings.release_ns)
    }

    /// When a packet passes that comes `now`, at which others may wait.
    fn passes_ns(&self, now: Nanoseconds, direction: Direction, settings: &RadioStatesSettings) -> Nanoseconds {
        let waits = !self.waiting.is_empty();
        let is_idle = if waits { self.was_idle } else { self.is_idle(now, settings) };
        let alone_ns = match (is_idle, direction) {
            (true, Direction::Up) => now.saturating_add(settings.promotion_ns),
            (true, Direction::Down) => {
                let paged_ns = next_start(now, settings.paging_cycle_ns, self.paging_offset_ns, 1);
                paged_ns.saturating_add(settings.promotion_ns)
            }
            (false, Direction::Up) => now,
            (false, Direction::Down) => self.listens_ns(now, settings),
        };
        if waits {
            alone_ns.min(self.wakes_ns)
        } else {
            alone_ns
        }
    }

    /// When a connected mobile listens next.
    fn listens_ns(&self, now: Nanoseconds, settings: &RadioStatesSettings) -> Nanoseconds {
        let cycles_ns = self.last_ns.unwrap_or(0).saturating_add(settings.inactivity_ns);
        if now < cycles_ns || settings.long_cycle_ns == 0 {
            return now;
        }
        let short_ns = settings.short_cycle_ns.saturating_mul(u64::from(settings.short_cycles));
        let long_cycles_ns = cycles_ns.saturating_add(short_ns);
        if now < long_cycles_ns {
            let listens_ns = next_start(now, settings.short_cycle_ns, self.offset_ns, settings.on_duration_ns);
            if listens_ns < long_cycles_ns {
                return listens_ns;
            }
            return next_start(long_cycles_ns, settings.long_cycle_ns, self.offset_ns, settings.on_duration_ns);
        }
        next_start(now, settings.long_cycle_ns, self.offset_ns, settings.on_duration_ns)
    }
}

/// `now` if it is within `on_ns` of the start of a cycle, otherwise the next start; starts are `offset_ns` and whole
/// cycles away from it.
fn next_start(now: Nanoseconds, cycle_ns: Nanoseconds, offset_ns: Nanoseconds, on_ns: Nanoseconds) -> Nanoseconds {
    if cycle_ns == 0 {
        return now;
    }
    let since_ns = (now % cycle_ns + cycle_ns - offset_ns % cycle_ns) % cycle_ns;
    if since_ns < on_ns {
        now
    } else {
        now.saturating_add(cycle_ns - since_ns)
    }
}

impl<P: Datagram> Hop<P> for RadioStates<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        self.wake(now);
        let counts = &mut self.counts[direction.index()];
        counts.offered_packets += 1;
        counts.offered_bytes += u64::from(packet.length_bytes());
        let (settings, user) = (self.settings, packet.user());
        let mobile = self
            .mobiles
            .entry(user)
            .or_insert_with(|| Mobile::new(&settings, Random::new(self.seed, &format!("{}/{user}", self.name))));
        let passes_ns = mobile.passes_ns(now, direction, &settings);
        if mobile.waiting.is_empty() {
            mobile.was_idle = mobile.is_idle(now, &settings);
        }
        mobile.waiting.push_back((direction, packet));
        if passes_ns != mobile.wakes_ns {
            mobile.wakes_ns = passes_ns;
            self.wake_ups.push(Reverse((passes_ns, user)));
        }
        self.wake(now);
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.wake(now);
    }

    fn poll_transmit(&mut self, _now: Nanoseconds) -> Option<(Direction, P)> {
        let (direction, packet) = self.passing.pop_front()?;
        let counts = &mut self.counts[direction.index()];
        counts.delivered_packets += 1;
        counts.delivered_bytes += u64::from(packet.length_bytes());
        Some((direction, packet))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.wake_ups.peek().map_or(NEVER, |Reverse((wakes_ns, _))| *wakes_ns)
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.counts[direction.index()]
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        let connected = self.mobiles.values().filter(|mobile| !mobile.is_idle(now, &self.settings)).count();
        let waiting: usize = self.mobiles.values().map(|mobile| mobile.waiting.len()).sum();
        record("connected_mobiles", connected as f64);
        record("waiting_packets", waiting as f64);
    }
}

//! Branches: a wired link of its own for each mobile or each server, so that flows that share another hop differ in what
//! they do not share.

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds};
use crate::lines::line::{Following, Line};
use crate::lines::wired::{Wired, WiredSettings};
use crate::passage::{AnyPassage, Passage};
use crate::queues::next_times::NextTimes;
use crate::settings::SettingsError;

/// Which link a packet takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BranchesBy {
    /// That of its mobile.
    #[default]
    Mobile,
    /// That of its flow's server: the numbers of the servers by flow. Packets of no flow take the first.
    Server(Vec<u16>),
}

/// The links, by number of the mobile or server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BranchesSettings {
    pub links: Vec<WiredSettings>,
    pub by: BranchesBy,
}

/// One direction of all links.
#[derive(Clone, Debug)]
pub struct BranchLines<P> {
    lines: Vec<Line<P>>,
    by: BranchesBy,
    /// When something arrives at the end of each line.
    times: NextTimes,
    /// Packets of mobiles or servers that have no link.
    strays: HopCounts,
}

impl<P: Datagram> BranchLines<P> {
    fn new(lines: Vec<Line<P>>, by: &BranchesBy) -> Self {
        let mut times = NextTimes::default();
        times.reserve(lines.len());
        Self { lines, by: by.clone(), times, strays: HopCounts::default() }
    }

    #[inline]
    fn place_of(&self, packet: &P) -> usize {
        match &self.by {
            BranchesBy::Mobile => usize::from(packet.user()),
            BranchesBy::Server(numbers) => {
                let flow = usize::try_from(packet.flow()).unwrap_or(usize::MAX);
                numbers.get(flow).copied().map_or(0, usize::from)
            }
        }
    }

    fn give(&mut self, place: usize) -> Option<P> {
        let line = self.lines.get_mut(place)?;
        let packet = line.give();
        self.times.set(place, line.first_arrival());
        packet
    }

    fn counts(&self) -> HopCounts {
        self.lines.iter().map(Line::counts).fold(self.strays, HopCounts::plus)
    }
}

impl<P: Datagram> Passage<P> for BranchLines<P> {
    fn keeps_order(&self) -> bool {
        self.lines.len() < 2
    }

    fn least_delay_ns(&self) -> Nanoseconds {
        self.lines.iter().map(Line::least_delay_ns).min().unwrap_or(0)
    }

    #[inline(always)]
    fn first_arrival(&self) -> Nanoseconds {
        self.times.earliest()
    }

    #[inline]
    fn first(&self) -> Option<(&P, Following)> {
        let (place, others_ns) = self.times.first_and_second();
        let (packet, following) = self.lines.get(place)?.first()?;
        let branch = (place, following.arrival);
        Some((packet, Following { arrival: following.arrival.min(others_ns), branch, ..following }))
    }

    #[inline]
    fn drop_first(&mut self, following: Following) {
        let (place, next_ns) = following.branch;
        let Some(line) = self.lines.get_mut(place) else { return };
        line.drop_first(Following { arrival: next_ns, ..following });
        self.times.set(place, next_ns);
    }

    #[inline]
    fn take_with(&mut self, now: Nanoseconds, bytes: u32, make: impl FnOnce() -> P) {
        let packet = make();
        let place = self.place_of(&packet);
        match self.lines.get_mut(place) {
            Some(line) => {
                line.take_with(now, bytes, || packet);
                self.times.set(place, line.first_arrival());
            }
            None => {
                self.strays.offered_packets += 1;
                self.strays.offered_bytes += u64::from(bytes);
                self.strays.lost_packets += 1;
            }
        }
    }
}

/// Wired links beside each other.
#[derive(Clone, Debug)]
pub struct Branches<P> {
    down: BranchLines<P>,
    up: BranchLines<P>,
}

impl<P: Datagram> Branches<P> {
    /// The links called `name` in the run with `seed`.
    ///
    /// # Errors
    /// Refuses no links and what [`Wired::new`] refuses.
    pub fn new(settings: &BranchesSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        if settings.links.is_empty() {
            return Err(SettingsError::new("terminals", 0, "at least one"));
        }
        if settings.by == BranchesBy::Server(Vec::new()) {
            return Err(SettingsError::new("by", "server", "mobile where no flow tells its server, as on live paths"));
        }
        let links = settings.links.iter().enumerate();
        let links = links.map(|(user, link)| Wired::new(link, seed, &format!("{name}/{user}")).map(Wired::into_lines));
        let (down, up) = links.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        Ok(Self { down: BranchLines::new(down, &settings.by), up: BranchLines::new(up, &settings.by) })
    }
}

impl<P: Datagram> Hop<P> for Branches<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        let bytes = packet.length_bytes();
        match direction {
            Direction::Down => self.down.take_with(now, bytes, || packet),
            Direction::Up => self.up.take_with(now, bytes, || packet),
        }
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        // Of what arrives at one time, that of the first link comes first.
        let due = (self.down.times.due(now), self.up.times.due(now));
        match due {
            (Some(down), up) if up.is_none_or(|up| down <= up) => Some((Direction::Down, self.down.give(down)?)),
            (_, Some(up)) => Some((Direction::Up, self.up.give(up)?)),
            _ => None,
        }
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.down.first_arrival().min(self.up.first_arrival())
    }

    fn passages(&mut self) -> Option<(AnyPassage<'_, P>, AnyPassage<'_, P>)> {
        Some(((&mut self.down).into(), (&mut self.up).into()))
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        match direction {
            Direction::Down => self.down.counts(),
            Direction::Up => self.up.counts(),
        }
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        // What the links hold together; each alone would need a name of its own.
        let mut sums: Vec<(&'static str, f64)> = Vec::new();
        for (down, up) in self.down.lines.iter().zip(&self.up.lines) {
            for (line, direction) in [(down, Direction::Down), (up, Direction::Up)] {
                line.observe(
                    now,
                    direction,
                    &mut |name, value| match sums.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, sum)) => *sum += value,
                        None => sums.push((name, value)),
                    },
                );
            }
        }
        sums.into_iter().for_each(|(name, value)| record(name, value));
    }
}

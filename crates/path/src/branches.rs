//! Branches: a wired link of its own for each mobile or each server, so that flows that share another hop differ in what
//! they do not share.

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds};
use crate::next_times::NextTimes;
use crate::settings::SettingsError;
use crate::wired::{Wired, WiredSettings};

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

/// Wired links beside each other.
#[derive(Clone, Debug)]
pub struct Branches<P> {
    links: Vec<Wired<P>>,
    by: BranchesBy,
    /// When something arrives at an end of each link.
    times: NextTimes,
    /// Packets of mobiles or servers that have no link.
    strays: [HopCounts; 2],
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
        let links = links.map(|(user, link)| Wired::new(link, seed, &format!("{name}/{user}")));
        let by = settings.by.clone();
        let links = links.collect::<Result<Vec<_>, _>>()?;
        let mut times = NextTimes::default();
        times.reserve(links.len());
        Ok(Self { links, by, times, strays: [HopCounts::default(); 2] })
    }

    fn place_of(&self, packet: &P) -> usize {
        match &self.by {
            BranchesBy::Mobile => usize::from(packet.user()),
            BranchesBy::Server(numbers) => {
                let flow = usize::try_from(packet.flow()).unwrap_or(usize::MAX);
                numbers.get(flow).copied().map_or(0, usize::from)
            }
        }
    }
}

impl<P: Datagram> Hop<P> for Branches<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        let place = self.place_of(&packet);
        match self.links.get_mut(place) {
            Some(link) => {
                link.handle_packet(now, direction, packet);
                self.times.set(place, link.poll_timeout());
            }
            None => {
                let counts = &mut self.strays[direction.index()];
                counts.offered_packets += 1;
                counts.offered_bytes += u64::from(packet.length_bytes());
                counts.lost_packets += 1;
            }
        }
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        let place = self.times.due(now)?;
        let link = self.links.get_mut(place)?;
        let transmitted = link.poll_transmit(now);
        self.times.set(place, link.poll_timeout());
        transmitted
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.times.earliest()
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.links.iter().map(|link| link.counts(direction)).fold(self.strays[direction.index()], HopCounts::plus)
    }

    fn observe(&self, now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        // What the links hold together; each alone would need a name of its own.
        let mut sums: Vec<(&'static str, f64)> = Vec::new();
        for link in &self.links {
            link.observe(now, &mut |name, value| match sums.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += value,
                None => sums.push((name, value)),
            });
        }
        sums.into_iter().for_each(|(name, value)| record(name, value));
    }
}

//! The high-speed downlink as a hop: terminals in their cells, the clock of intervals, reports, the uplink.

use std::collections::VecDeque;

use super::cell::{Carrier, Cell, CellSettings, Terminal};
use super::channel::Channel;
use super::dedicated_bearer::DedicatedBearer;
use super::hybrid_arq::HybridArq;
use super::scheduler::Scheduler;
use super::settings::{Bearer, DedicatedSettings, HsdpaSettings, Radio};
use super::shared_bearer::{Deliveries, SharedBearer};
use super::uplink::Uplink;
use crate::{Datagram, Direction, Hop, HopCounts, Nanoseconds, Random, SettingsError, NEVER};

/// Names of what [`Hop::observe`] records of the first terminals: queue, indicator.
const OBSERVED: [(&str, &str); 8] = [
    ("queue_0_frames", "channel_quality_0"),
    ("queue_1_frames", "channel_quality_1"),
    ("queue_2_frames", "channel_quality_2"),
    ("queue_3_frames", "channel_quality_3"),
    ("queue_4_frames", "channel_quality_4"),
    ("queue_5_frames", "channel_quality_5"),
    ("queue_6_frames", "channel_quality_6"),
    ("queue_7_frames", "channel_quality_7"),
];

/// Node-Bs with their terminals.
#[derive(Clone, Debug)]
pub struct Hsdpa<P> {
    tti: Nanoseconds,
    cells: Vec<Cell<P>>,
    /// Whether each cell is active in the next interval.
    awake: Vec<bool>,
    awake_cells: usize,
    /// Cell and place in it, by terminal number.
    places: Vec<(usize, usize)>,
    next_tti: u64,
    deliveries: Deliveries<P>,
    down: HopCounts,
    uplink: Uplink<P>,
    report_period: Option<Nanoseconds>,
    reports_made: u32,
    reports: VecDeque<P>,
}

impl<P: Datagram> Hsdpa<P> {
    /// Places the terminals and starts the clock at 0. The random numbers of the link depend on `name`.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn new(settings: &HsdpaSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
        settings.check()?;
        let (dedicated, available_share) = match &settings.radio {
            Radio::Cellular(cellular) => (cellular.dedicated, 1.0 - cellular.common_share),
            Radio::SingleCell(_) => (DedicatedSettings::default(), 1.0),
        };
        let cell_settings = CellSettings {
            quality_delay_ttis: settings.quality_delay_ttis,
            users_a_tti: settings.users_a_tti,
            codes: settings.codes,
            available_share,
            hybrid_arq: settings.hybrid_arq,
        };
        // Cells without terminals are interference only: numbers of cells that have some, in order of appearance.
        let mut numbers: Vec<usize> = Vec::new();
        let mut members: Vec<Vec<Terminal<P>>> = Vec::new();
        let mut places = Vec::with_capacity(settings.users.len());
        for (number, user) in settings.users.iter().enumerate() {
            let placed = Channel::place(&settings.radio, user, settings.tti, seed, &format!("{name}/{number}"));
            let index = numbers.iter().position(|&cell| cell == placed.cell).unwrap_or_else(|| {
                numbers.push(placed.cell);
                members.push(Vec::new());
                numbers.len() - 1
            });
            let shared = |framing, recovery| {
                Carrier::Shared(Box::new(SharedBearer::new(
                    framing,
                    recovery,
                    settings.tti,
                    user.queue,
                    user.marking,
                    HybridArq::new(settings.hybrid_arq.processes),
                    settings.reordering_ttis,
                )))
            };
            let carrier = match user.bearer {
                Bearer::Acknowledged(framing, recovery) => shared(framing, Some(recovery)),
                Bearer::Unacknowledged(framing) => shared(framing, None),
                Bearer::Dedicated { compressed_header_bytes } => Carrier::Dedicated(Box::new(DedicatedBearer::new(
                    dedicated,
                    settings.tti,
                    compressed_header_bytes,
                    user.queue,
                    number,
                    Random::new(seed, &format!("{name}/{number}/dedicated")),
                ))),
            };
            places.push((index, members[index].len()));
            members[index].push(Terminal::new(number as u16, placed.channel, user.category, carrier));
        }
        let cells: Vec<Cell<P>> = members
            .into_iter()
            .zip(&numbers)
            .map(|(terminals, number)| {
                let scheduler = Scheduler::new(settings.scheduler, settings.averaging_ttis, terminals.len());
                let random = Random::new(seed, &format!("{name}/cell {number}"));
                Cell::new(cell_settings.clone(), terminals, scheduler, random)
            })
            .collect();
        Ok(Self {
            tti: settings.tti,
            awake: vec![false; cells.len()],
            awake_cells: 0,
            cells,
            places,
            next_tti: 0,
            deliveries: Deliveries::default(),
            down: HopCounts::default(),
            uplink: Uplink::new(settings.uplink, settings.users.len())?,
            report_period: settings.report_period,
            reports_made: 0,
            reports: VecDeque::new(),
        })
    }

    /// Frames (packets, for a dedicated channel) that wait at the Node-B for terminal number `user`; 0 if there is none.
    #[must_use]
    pub fn queued_frames(&self, user: u16) -> u64 {
        self.state_of(usize::from(user)).1
    }

    fn state_of(&self, user: usize) -> (u8, u64) {
        self.places.get(user).map_or((0, 0), |&(cell, place)| self.cells[cell].state_of(place))
    }

    fn next_interval(&self) -> Nanoseconds {
        if self.awake_cells > 0 {
            self.next_tti * self.tti
        } else {
            NEVER
        }
    }

    fn next_report(&self) -> Nanoseconds {
        self.report_period.map_or(NEVER, |period| (u64::from(self.reports_made) + 1) * period)
    }

    /// Processes everything that is due before `end`.
    fn run_until(&mut self, end: Nanoseconds) {
        loop {
            let (interval, report) = (self.next_interval(), self.next_report());
            if report.min(interval) >= end {
                return;
            }
            if report <= interval {
                self.report();
            } else {
                self.run_interval();
            }
        }
    }

    fn run_interval(&mut self) {
        for (cell, awake) in self.cells.iter_mut().zip(&mut self.awake) {
            if *awake {
                cell.run(self.next_tti, &mut self.deliveries);
                if cell.may_sleep() {
                    *awake = false;
                    self.awake_cells -= 1;
                }
            }
        }
        self.next_tti += 1;
    }

    fn report(&mut self) {
        for (number, &(cell, place)) in (0u16..).zip(&self.places) {
            if let Some(report) = self.cells[cell].close_period(place, self.reports_made) {
                self.reports.extend(P::from_report(number, report));
            }
        }
        self.reports_made += 1;
    }
}

impl<P: Datagram> Hop<P> for Hsdpa<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        if direction == Direction::Up {
            self.uplink.push(now, packet);
            return;
        }
        self.run_until(now);
        self.down.offered_packets += 1;
        self.down.offered_bytes += u64::from(packet.length_bytes());
        let Some(&(cell, place)) = self.places.get(usize::from(packet.user())) else {
            self.down.lost_packets += 1;
            return;
        };
        let admission = self.cells[cell].push(place, packet);
        self.down.overflowed_packets += u64::from(!admission.accepted);
        self.down.marked_packets += u64::from(admission.marked);
        if admission.accepted && !self.awake[cell] {
            if self.awake_cells == 0 {
                self.next_tti = self.next_tti.max(now.div_ceil(self.tti));
            }
            self.awake[cell] = true;
            self.awake_cells += 1;
        }
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.run_until(now.saturating_add(1));
    }

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, P)> {
        if let Some(packet) = self.deliveries.delivered.pop_front() {
            self.down.delivered_packets += 1;
            self.down.delivered_bytes += u64::from(packet.length_bytes());
            return Some((Direction::Down, packet));
        }
        if let Some(report) = self.reports.pop_front() {
            return Some((Direction::Up, report));
        }
        self.uplink.pop(now).map(|packet| (Direction::Up, packet))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.next_interval().min(self.next_report()).min(self.uplink.next_time())
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        match direction {
            Direction::Down => {
                HopCounts { lost_packets: self.down.lost_packets + self.deliveries.lost_packets, ..self.down }
            }
            Direction::Up => self.uplink.counts,
        }
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        for (user, (queue_name, quality_name)) in OBSERVED.iter().enumerate().take(self.places.len()) {
            let (quality, queued) = self.state_of(user);
            record(queue_name, queued as f64);
            record(quality_name, f64::from(quality));
        }
    }
}

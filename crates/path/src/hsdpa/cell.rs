//! One cell: its terminals, power and codes, and the processing of an interval.

use std::collections::VecDeque;

use super::channel::Channel;
use super::dedicated_bearer::DedicatedBearer;
use super::hybrid_arq::{Feedback, HybridArqSettings};
use super::scheduler::{Candidate, Scheduler};
use super::shared_bearer::{Admission, Deliveries, SharedBearer, BLOCK_HEADER_BITS};
use super::transport_format::{from_db, to_db, Category, QualityScale, TransportFormat, QUALITY_STEP_DB};
use crate::{Datagram, QueueReport, Random};

const LONGEST_QUALITY_DELAY: usize = 16;

/// Number of intervals that an idle cell is simulated before it is suspended: resuming computes every terminal's cosines again.
const LINGER_TTIS: u64 = 50;

/// How a terminal is served.
#[derive(Clone, Debug)]
pub enum Carrier<P> {
    // A bearer with its rings is larger than a dedicated one, but nearly all terminals have it.
    Shared(Box<SharedBearer<P>>),
    Dedicated(Box<DedicatedBearer<P>>),
}

/// One terminal in its cell.
#[derive(Clone, Debug)]
pub struct Terminal<P> {
    pub number: u16,
    pub channel: Channel,
    pub category: Category,
    pub carrier: Carrier<P>,
    /// Ratio with all of the cell's power, now.
    sinr: f64,
    /// Indicators of the last intervals, by interval number.
    qualities: [u8; LONGEST_QUALITY_DELAY],
}

impl<P> Terminal<P> {
    #[must_use]
    pub fn new(number: u16, channel: Channel, category: Category, carrier: Carrier<P>) -> Self {
        Self { number, channel, category, carrier, sinr: 0.0, qualities: [0; LONGEST_QUALITY_DELAY] }
    }
}

/// State that all cells share.
#[derive(Clone, Debug)]
pub struct CellSettings {
    pub quality_delay_ttis: u32,
    pub users_a_tti: u8,
    pub codes: u8,
    /// Share of the power that is left for dedicated and shared channels.
    pub available_share: f64,
    pub hybrid_arq: HybridArqSettings,
}

/// A transmission with a drawn outcome that has not reached every part yet.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    tti: u64,
    terminal: usize,
    process: usize,
    sequence: u64,
    decoded: bool,
}

/// A cell.
#[derive(Clone, Debug)]
pub struct Cell<P> {
    settings: CellSettings,
    scale: QualityScale,
    pub terminals: Vec<Terminal<P>>,
    scheduler: Scheduler,
    decoding: VecDeque<Transmission>,
    awaiting_feedback: VecDeque<Transmission>,
    candidates: Vec<Candidate>,
    random: Random,
    /// The last processed interval.
    last_tti: Option<u64>,
    last_busy: u64,
}

impl<P: Datagram> Cell<P> {
    #[must_use]
    pub fn new(settings: CellSettings, terminals: Vec<Terminal<P>>, scheduler: Scheduler, random: Random) -> Self {
        Self {
            settings,
            scale: QualityScale::default(),
            candidates: Vec::with_capacity(terminals.len()),
            terminals,
            scheduler,
            decoding: VecDeque::new(),
            awaiting_feedback: VecDeque::new(),
            random,
            last_tti: None,
            last_busy: 0,
        }
    }

    /// Queues a packet for the terminal at `place`.
    pub fn push(&mut self, place: usize, packet: P) -> Admission {
        match self.terminals.get_mut(place).map(|terminal| &mut terminal.carrier) {
            Some(Carrier::Shared(bearer)) => bearer.push(packet),
            Some(Carrier::Dedicated(bearer)) => bearer.push(packet),
            None => Admission { accepted: false, marked: false },
        }
    }

    /// Whether the cell may be suspended until a packet arrives.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        self.last_tti.is_none_or(|tti| tti >= self.last_busy + LINGER_TTIS) && self.is_idle()
    }

    /// Indicator that the terminal at `place` reported last, and its queue in frames.
    #[must_use]
    pub fn state_of(&self, place: usize) -> (u8, u64) {
        let Some(terminal) = self.terminals.get(place) else {
            return (0, 0);
        };
        let quality = self.last_tti.map_or(0, |tti| terminal.qualities[tti as usize % LONGEST_QUALITY_DELAY]);
        let queued = match &terminal.carrier {
            Carrier::Shared(bearer) => bearer.queued_frames(),
            Carrier::Dedicated(bearer) => bearer.queued_packets() as u64,
        };
        (quality, queued)
    }

    /// Closes a reporting period of the terminal at `place`; `None` for one without a shared channel.
    pub fn close_period(&mut self, place: usize, step: u32) -> Option<QueueReport> {
        match self.terminals.get_mut(place).map(|terminal| &mut terminal.carrier) {
            Some(Carrier::Shared(bearer)) => Some(bearer.close_period(step)),
            _ => None,
        }
    }

    /// Processes interval number `tti`; packets that arrive by its start are added to `deliveries`.
    pub fn run(&mut self, tti: u64, deliveries: &mut Deliveries<P>) {
        let awake = self.last_tti.is_some_and(|last| last + 1 == tti);
        if !awake {
            // Indicators from before are needed at once: measure as many as the delay asks for.
            for past in tti.saturating_sub(u64::from(self.settings.quality_delay_ttis))..tti {
                self.measure(past, self.settings.available_share);
            }
        }
        self.scheduler.elapse(self.last_tti.map_or(1, |last| tti - last));
        self.last_tti = Some(tti);
        for terminal in &mut self.terminals {
            terminal.channel.go_to(tti);
            terminal.sinr = terminal.channel.sinr();
        }
        let share = self.share_left(tti, deliveries);
        self.measure(tti, share);
        self.decode(tti);
        self.hear_feedback(tti);
        for terminal in &mut self.terminals {
            if let Carrier::Shared(bearer) = &mut terminal.carrier {
                bearer.settle(tti, deliveries);
            }
        }
        self.transmit(tti, share);
        if !self.is_idle() {
            self.last_busy = tti;
        }
    }

    fn is_idle(&self) -> bool {
        self.terminals.iter().all(|terminal| match &terminal.carrier {
            Carrier::Shared(bearer) => bearer.is_idle(),
            Carrier::Dedicated(bearer) => bearer.is_idle(),
        })
    }

    /// Power that dedicated channels do not use.
    fn share_left(&mut self, tti: u64, deliveries: &mut Deliveries<P>) -> f64 {
        let mut share = self.settings.available_share;
        for terminal in &mut self.terminals {
            if let Carrier::Dedicated(bearer) = &mut terminal.carrier {
                share -= bearer.power_share(tti, || terminal.channel.dedicated_sinr(), deliveries);
            }
        }
        share.max(0.0)
    }

    /// Every terminal measures what it could receive in interval number `tti` with `share` of the power.
    fn measure(&mut self, tti: u64, share: f64) {
        for (place, terminal) in self.terminals.iter_mut().enumerate() {
            terminal.channel.go_to(tti);
            let quality = self.scale.quality_of(terminal.channel.sinr() * share);
            terminal.qualities[tti as usize % LONGEST_QUALITY_DELAY] = quality;
            self.scheduler.report(place, quality);
        }
    }

    fn decode(&mut self, tti: u64) {
        while let Some(&transmission) = self.decoding.front() {
            if transmission.tti + u64::from(self.settings.hybrid_arq.decoding_ttis) > tti {
                break;
            }
            self.decoding.pop_front();
            if let Carrier::Shared(bearer) = &mut self.terminals[transmission.terminal].carrier {
                bearer.arrive(transmission.sequence);
            }
        }
    }

    fn hear_feedback(&mut self, tti: u64) {
        while let Some(&transmission) = self.awaiting_feedback.front() {
            if transmission.tti + u64::from(self.settings.hybrid_arq.round_trip_ttis) > tti {
                break;
            }
            self.awaiting_feedback.pop_front();
            if let Carrier::Shared(bearer) = &mut self.terminals[transmission.terminal].carrier {
                let heard = bearer.hybrid_arq.feedback(
                    transmission.process,
                    transmission.decoded,
                    self.settings.hybrid_arq.maximum_transmissions,
                );
                if let Some(Feedback::GivenUp(block)) = heard {
                    bearer.lose(block.sequence);
                }
            }
        }
    }

    /// Assigns codes and power, repeated blocks first.
    fn transmit(&mut self, tti: u64, share: f64) {
        let reported_at = tti.saturating_sub(u64::from(self.settings.quality_delay_ttis));
        let slot = reported_at as usize % LONGEST_QUALITY_DELAY;
        let mut budget = Budget { share, of: share, codes: self.settings.codes };
        let mut places = self.settings.users_a_tti;
        self.candidates.clear();
        for place in 0..self.terminals.len() {
            let terminal = &self.terminals[place];
            let Carrier::Shared(bearer) = &terminal.carrier else {
                continue;
            };
            let quality = terminal.qualities[slot];
            if bearer.hybrid_arq.has_due() {
                if places > 0 && self.repeat(tti, place, quality, &mut budget) {
                    places -= 1;
                }
            } else if bearer.sendable_frames() > 0 {
                let format = TransportFormat::of(quality, terminal.category);
                if format.frames(BLOCK_HEADER_BITS, bearer.frame_bits()) > 0 {
                    self.candidates.push(Candidate { user: place, quality, bits: format.block_bits });
                }
            }
        }
        while places > 0 && budget.share > 0.0 && budget.codes > 0 {
            let Some(chosen) = self.scheduler.choose(&self.candidates) else {
                break;
            };
            let candidate = self.candidates.swap_remove(chosen);
            if self.send_new(tti, candidate, places == 1, &mut budget) {
                places -= 1;
            }
        }
    }

    /// Sends the oldest due block of the terminal at `place` again; `false` if codes or power do not suffice.
    fn repeat(&mut self, tti: u64, place: usize, quality: u8, budget: &mut Budget) -> bool {
        let Carrier::Shared(bearer) = &self.terminals[place].carrier else {
            return false;
        };
        let Some(block) = bearer.hybrid_arq.oldest_due() else {
            return false;
        };
        let codes = TransportFormat::of(block.quality, Category::Ten).codes;
        if codes > budget.codes || budget.share <= 0.0 {
            return false;
        }
        // With what is combined already, the power that the format would need now is more than enough.
        let share = if quality >= block.quality { budget.needed(quality, block.quality) } else { budget.share };
        budget.codes -= codes;
        budget.share -= share;
        self.send(tti, place, block, share);
        self.scheduler.serve(place, 0);
        true
    }

    /// Sends a new block to a candidate; `false` if the remaining codes and power do not suffice.
    fn send_new(&mut self, tti: u64, candidate: Candidate, is_last: bool, budget: &mut Budget) -> bool {
        let terminal = &mut self.terminals[candidate.user];
        let Carrier::Shared(bearer) = &mut terminal.carrier else {
            return false;
        };
        let frame_bits = bearer.frame_bits();
        let mut format = TransportFormat::of(budget.quality(candidate.quality), terminal.category);
        while format.codes > budget.codes {
            format = TransportFormat::of(format.quality - 1, terminal.category);
        }
        let room = format.frames(BLOCK_HEADER_BITS, frame_bits);
        let wanted = bearer.sendable_frames().min(room);
        if wanted == 0 {
            return false;
        }
        // Little data takes a smaller format, which leaves codes and power or, at the least, errs less.
        loop {
            let smaller = TransportFormat::of(format.quality - 1, terminal.category);
            if smaller.frames(BLOCK_HEADER_BITS, frame_bits) < wanted {
                break;
            }
            format = smaller;
        }
        let Some(block) = bearer.take_block(room, format.quality) else {
            return false;
        };
        let share = if is_last { budget.share } else { budget.needed(candidate.quality, format.quality) };
        budget.codes -= format.codes;
        budget.share -= share;
        self.send(tti, candidate.user, block, share);
        self.scheduler.serve(candidate.user, format.block_bits);
        true
    }

    fn send(&mut self, tti: u64, place: usize, mut block: super::hybrid_arq::Block, share: f64) {
        let terminal = &mut self.terminals[place];
        let Carrier::Shared(bearer) = &mut terminal.carrier else {
            return;
        };
        let decoded = block.transmit(terminal.sinr * share, self.settings.hybrid_arq.combining, &mut self.random);
        if let Some(process) = bearer.hybrid_arq.begin(block) {
            let transmission = Transmission { tti, terminal: place, process, sequence: block.sequence, decoded };
            if decoded {
                self.decoding.push_back(transmission);
            }
            self.awaiting_feedback.push_back(transmission);
        }
    }
}

/// Remaining codes and power of a cell in an interval.
struct Budget {
    share: f64,
    /// The share for which indicators were reported.
    of: f64,
    codes: u8,
}

impl Budget {
    /// The indicator that corresponds to the remaining power.
    fn quality(&self, reported: u8) -> u8 {
        if self.share >= self.of {
            return reported;
        }
        let steps = libm::ceil(to_db(self.of / self.share) / QUALITY_STEP_DB);
        reported.saturating_sub(steps.min(30.0) as u8)
    }

    /// The share that a terminal with indicator `reported` needs for the format of `quality`.
    fn needed(&self, reported: u8, quality: u8) -> f64 {
        let spare = f64::from(reported.saturating_sub(quality));
        (self.of * from_db(-QUALITY_STEP_DB * spare)).min(self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    #[test]
    fn what_a_format_needs_is_never_more_than_what_is_left() {
        for reported in 1..=30 {
            for percent in 1..=80 {
                let budget = Budget { share: f64::from(percent) / 100.0, of: 0.8, codes: 15 };
                let quality = budget.quality(reported);
                let needed = 0.8 * super::from_db(-super::QUALITY_STEP_DB * f64::from(reported - quality));
                assert!(quality == 0 || needed <= budget.share + 1e-12, "{reported} {percent}");
                assert!((budget.needed(reported, quality) - needed.min(budget.share)).abs() < 1e-12);
            }
        }
    }
}

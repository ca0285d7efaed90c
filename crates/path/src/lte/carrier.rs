//! One direction of the air: intervals, blocks and their repetitions, shared by all terminals.

use std::collections::VecDeque;

use super::duplex::SlotPattern;
use super::interval_rate::IntervalRate;
use super::settings::{LteHybridArqSettings, LteSettings, RateSettings};
use crate::hsdpa::hybrid_arq::{Block, Feedback, HybridArq};
use crate::hsdpa::settings::Framing;
use crate::hsdpa::shared_bearer::{Admission, Deliveries, SharedBearer};
use crate::{Datagram, MarkingSettings, QueueLimit, Random};

/// RLC of LTE numbers segments by bytes: a frame is a byte here, and headers are left out.
const BYTES: Framing = Framing { payload_bytes: 1, header_bits: 0, compressed_header_bytes: None };

#[derive(Clone, Copy, Debug)]
struct Transmission {
    tti: u64,
    user: usize,
    process: usize,
    sequence: u64,
    decoded: bool,
}

/// One direction of a cell.
#[derive(Clone, Debug)]
pub struct Carrier<P> {
    hybrid_arq: LteHybridArqSettings,
    decoding_ttis: u64,
    round_trip_ttis: u64,
    bearers: Vec<SharedBearer<P>>,
    rates: Vec<IntervalRate>,
    decoding: VecDeque<Transmission>,
    awaiting_feedback: VecDeque<Transmission>,
    /// Whose turn it is.
    turn: usize,
    random: Random,
}

/// New data that an interval has carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub user: usize,
    pub bytes: u32,
}

/// What one terminal has in this direction.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub rate: RateSettings,
    pub queue: QueueLimit,
    pub marking: Option<MarkingSettings>,
}

impl<P: Datagram> Carrier<P> {
    #[must_use]
    pub fn new(settings: &LteSettings, members: &[Member], seed: u64, name: &str) -> Self {
        let round_trip_ttis = settings.hybrid_arq.round_trip.div_ceil(settings.tti);
        // One block an interval at most, so that no process is ever waited for.
        // With time-division duplex a repetition may also wait for its slot.
        let pattern = settings.slots.as_ref().map_or(0, SlotPattern::length) as u64;
        let processes = u8::try_from(round_trip_ttis + pattern).unwrap_or(u8::MAX);
        let reordering_ttis = u32::try_from(settings.reordering_timeout.div_ceil(settings.tti)).unwrap_or(u32::MAX);
        let bearer = |member: &Member| {
            SharedBearer::new(
                BYTES,
                settings.recovery,
                settings.tti,
                member.queue,
                member.marking,
                HybridArq::new(processes),
                reordering_ttis,
            )
        };
        let rate = |(user, member): (usize, &Member)| {
            IntervalRate::new(member.rate, settings.tti, Random::new(seed, &format!("{name}/{user}/rate")))
        };
        Self {
            hybrid_arq: settings.hybrid_arq,
            decoding_ttis: settings.hybrid_arq.decoding.div_ceil(settings.tti),
            round_trip_ttis,
            bearers: members.iter().map(bearer).collect(),
            rates: members.iter().enumerate().map(rate).collect(),
            decoding: VecDeque::new(),
            awaiting_feedback: VecDeque::new(),
            turn: 0,
            random: Random::new(seed, &format!("{name}/blocks")),
        }
    }

    /// Queues a packet for terminal number `user`; `None` if there is no such.
    pub fn push(&mut self, user: usize, packet: P) -> Option<Admission> {
        self.bearers.get_mut(user).map(|bearer| bearer.push(packet))
    }

    /// Bytes of terminal number `user` that have never been sent.
    #[must_use]
    pub fn queued_bytes(&self, user: usize) -> u64 {
        self.bearers.get(user).map_or(0, SharedBearer::queued_frames)
    }

    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.bearers.iter().all(SharedBearer::is_idle)
    }

    /// Does interval number `tti`, of which `share` is for this direction: decodes and hears of what was sent, then sends a
    /// block again or a new one, of a terminal whose turn it is and that is `permitted` to send so many new bytes.
    pub fn run(
        &mut self,
        tti: u64,
        share: f64,
        permitted: impl Fn(usize) -> u64,
        deliveries: &mut Deliveries<P>,
    ) -> Option<Sent> {
        while let Some(arrived) = due(&mut self.decoding, tti, self.decoding_ttis) {
            self.bearers[arrived.user].arrive(arrived.sequence);
        }
        while let Some(heard) = due(&mut self.awaiting_feedback, tti, self.round_trip_ttis) {
            let bearer = &mut self.bearers[heard.user];
            let maximum = self.hybrid_arq.maximum_transmissions;
            if let Some(Feedback::GivenUp(block)) = bearer.hybrid_arq.feedback(heard.process, heard.decoded, maximum) {
                bearer.lose(block.sequence);
            }
        }
        for bearer in &mut self.bearers {
            bearer.settle(tti, deliveries);
        }
        if share <= 0.0 {
            return None;
        }
        let users = self.bearers.len();
        // Round trips are all alike: a block that failed is due in the interval in which it is heard of, and no other is, but
        // for those that wait for their slot.
        if let Some(user) = (0..users).find(|&user| self.bearers[user].hybrid_arq.has_due()) {
            let block = self.bearers[user].hybrid_arq.oldest_due()?;
            self.send(tti, user, block);
            return None;
        }
        for offset in 0..users {
            let user = (self.turn + offset) % users;
            let bearer = &mut self.bearers[user];
            let allowed = if bearer.resends() { u64::MAX } else { permitted(user) };
            if bearer.sendable_frames() == 0 || allowed == 0 {
                continue;
            }
            let bytes = self.rates[user].bytes(tti);
            let bytes = if share < 1.0 { (f64::from(bytes) * share) as u32 } else { bytes };
            let room = u64::from(bytes).min(allowed);
            let before = bearer.queued_frames();
            let Some(block) = bearer.take_block(u32::try_from(room).unwrap_or(u32::MAX), 0) else {
                continue;
            };
            let bytes = u32::try_from(before - bearer.queued_frames()).unwrap_or(u32::MAX);
            self.turn = (user + 1) % users;
            self.send(tti, user, block);
            return Some(Sent { user, bytes });
        }
        None
    }

    fn send(&mut self, tti: u64, user: usize, mut block: Block) {
        let failure = self.hybrid_arq.failure(block.transmissions + 1);
        let decoded = block.transmit_with(failure, &mut self.random);
        if let Some(process) = self.bearers[user].hybrid_arq.begin(block) {
            let transmission = Transmission { tti, user, process, sequence: block.sequence, decoded };
            if decoded {
                self.decoding.push_back(transmission);
            }
            self.awaiting_feedback.push_back(transmission);
        }
    }
}

/// The oldest transmission if it was made `ttis` intervals ago.
fn due(transmissions: &mut VecDeque<Transmission>, tti: u64, ttis: u64) -> Option<Transmission> {
    if transmissions.front()?.tti + ttis <= tti {
        transmissions.pop_front()
    } else {
        None
    }
}

//! Flow queueing with CoDel (RFC 8290): a queue a flow, served in turn by bytes, those of sparse flows first.

use std::collections::VecDeque;

use super::codel::{CoDel, CoDelSettings};
use super::fifo::Fifo;
use crate::hop::{Datagram, HopCounts, Nanoseconds};
use crate::settings::SettingsError;

/// What flow queueing is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FairSettings {
    /// Queues among which flows are spread by a hash.
    pub queues: u32,
    /// Bytes that a queue may send before it is the next one's turn.
    pub quantum_bytes: u32,
    pub codel: CoDelSettings,
}

impl Default for FairSettings {
    fn default() -> Self {
        Self { queues: 1024, quantum_bytes: 1514, codel: CoDelSettings::default() }
    }
}

impl FairSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.queues == 0 {
            return Err(SettingsError::new("queues", 0, "at least 1"));
        }
        if self.quantum_bytes == 0 {
            return Err(SettingsError::new("quantum_bytes", 0, "at least 1"));
        }
        self.codel.check()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Fair<P> {
    settings: FairSettings,
    flows: Vec<Flow<P>>,
    /// Places of the flows that have sent less than a quantum since they came, and of the others, in their turn.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// What spreads flows among queues.
    salt: u64,
    packets: usize,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    queue: Fifo<P>,
    codel: CoDel,
    credit_bytes: i64,
    is_listed: bool,
}

impl<P: Datagram> Fair<P> {
    pub(super) fn new(settings: FairSettings, marks: bool, salt: u64) -> Self {
        let flow = || Flow {
            queue: Fifo::default(),
            codel: CoDel::new(settings.codel, marks),
            credit_bytes: 0,
            is_listed: false,
        };
        Self {
            settings,
            flows: (0..settings.queues).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            salt,
            packets: 0,
        }
    }

    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    /// The longest wait of a packet that is next in its flow.
    pub(super) fn delay_ns(&self, now: Nanoseconds) -> Nanoseconds {
        let listed = self.new.iter().chain(&self.old);
        listed.map(|&place| self.flows[place].queue.delay_ns(now)).max().unwrap_or(0)
    }

    pub(super) fn enqueue(&mut self, now: Nanoseconds, packet: P) {
        let place = self.place(packet.flow());
        let flow = &mut self.flows[place];
        flow.queue.push(now, packet);
        self.packets += 1;
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credit_bytes = i64::from(self.settings.quantum_bytes);
            self.new.push_back(place);
        }
    }

    /// Takes the first packet of the flow with most bytes (RFC 8290, section 4.1.2).
    pub(super) fn drop_from_longest(&mut self, counts: &mut HopCounts) {
        let listed = self.new.iter().chain(&self.old);
        let longest = listed.copied().max_by_key(|&place| (self.flows[place].queue.bytes(), place));
        if let Some((_, packet)) = longest.and_then(|place| self.flows[place].queue.pop(0)) {
            self.packets -= 1;
            counts.overflow(&packet);
        }
    }

    pub(super) fn dequeue(&mut self, now: Nanoseconds, counts: &mut HopCounts) -> Option<P> {
        loop {
            let (place, is_new) = match self.new.front() {
                Some(&place) => (place, true),
                None => (*self.old.front()?, false),
            };
            let flow = &mut self.flows[place];
            if flow.credit_bytes <= 0 {
                flow.credit_bytes += i64::from(self.settings.quantum_bytes);
                self.unlist_first(is_new);
                self.old.push_back(place);
                continue;
            }
            let before = flow.queue.packets();
            let packet = flow.codel.dequeue(now, &mut flow.queue, counts);
            self.packets -= before - flow.queue.packets();
            if let Some(packet) = packet {
                flow.credit_bytes -= i64::from(packet.length_bytes());
                return Some(packet);
            }
            self.unlist_first(is_new);
            // A flow that was new goes round once more, so that it cannot be new again at once (section 4.2).
            if is_new && !self.old.is_empty() {
                self.old.push_back(place);
            } else {
                self.flows[place].is_listed = false;
            }
        }
    }

    fn unlist_first(&mut self, is_new: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.pop_front();
    }

    /// The queue of a flow (multiplicative hashing).
    fn place(&self, flow: u64) -> usize {
        let mixed = (flow ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mixed) * u128::from(self.settings.queues)) >> 64) as usize
    }
}

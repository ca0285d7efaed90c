//! One terminal's packets on the shared channel: queue at the Node-B, frames, retransmission, delivery in order.

use std::collections::VecDeque;

use super::discard::DiscardTimer;
use super::hybrid_arq::{Block, HybridArq, Run};
use super::reassembly::Reassembly;
use super::reordering::{Released, Reordering};
use super::settings::{Framing, Recovery};
use crate::{AverageQueue, Datagram, MarkingSettings, QueueLimit, QueueReport};

/// A transport block's header (3GPP TS 25.321, 9.1.4: VF, queue, TSN and one SID-N-F triple).
pub const BLOCK_HEADER_BITS: u32 = 21;

/// Deliveries and losses of packets; a cell's bearers share one.
#[derive(Clone, Debug)]
pub struct Deliveries<P> {
    pub delivered: VecDeque<P>,
    pub lost_packets: u64,
}

impl<P> Default for Deliveries<P> {
    fn default() -> Self {
        Self { delivered: VecDeque::new(), lost_packets: 0 }
    }
}

/// The queue's decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    pub accepted: bool,
    pub marked: bool,
}

/// The bearer of one terminal.
#[derive(Clone, Debug)]
pub struct SharedBearer<P> {
    framing: Framing,
    recovery: Option<Recovery>,
    status_delay_ttis: u64,
    discard: Option<DiscardTimer>,
    limit: QueueLimit,
    marking: Option<AverageQueue>,
    packets: Reassembly<P>,
    /// End and length of each packet that has frames left to send for the first time.
    waiting: VecDeque<(u64, u32)>,
    waiting_bytes: u64,
    /// Number of the first frame that has never been sent.
    unsent: u64,
    /// Missed by the terminal, to be queued again at the given interval.
    reported_missing: VecDeque<(u64, Run)>,
    to_resend: VecDeque<Run>,
    pub hybrid_arq: HybridArq,
    reordering: Reordering,
    reordering_ttis: u32,
    /// Of the period that has begun; the counters saturate where no reports are read.
    report: QueueReport,
}

impl<P: Datagram> SharedBearer<P> {
    #[must_use]
    pub fn new(
        framing: Framing,
        recovery: Option<Recovery>,
        tti: u64,
        limit: QueueLimit,
        marking: Option<MarkingSettings>,
        hybrid_arq: HybridArq,
        reordering_ttis: u32,
    ) -> Self {
        Self {
            framing,
            recovery,
            status_delay_ttis: recovery.map_or(0, |recovery| recovery.status_delay.div_ceil(tti)),
            discard: recovery
                .and_then(|recovery| recovery.discard_after)
                .map(|age| DiscardTimer::new(age.div_ceil(tti))),
            limit,
            marking: marking.map(AverageQueue::new),
            packets: Reassembly::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            unsent: 0,
            reported_missing: VecDeque::new(),
            to_resend: VecDeque::new(),
            hybrid_arq,
            reordering: Reordering::default(),
            reordering_ttis,
            report: QueueReport::default(),
        }
    }

    /// Bits of a frame with its header.
    #[must_use]
    pub fn frame_bits(&self) -> u32 {
        8 * self.framing.payload_bytes + self.framing.header_bits
    }

    /// Frames in the queue: those never sent.
    #[must_use]
    pub fn queued_frames(&self) -> u64 {
        self.packets.end() - self.unsent
    }

    #[must_use]
    pub fn queued_packets(&self) -> usize {
        self.waiting.len()
    }

    /// Queues a packet, if there is room.
    pub fn push(&mut self, mut packet: P) -> Admission {
        let bytes = match self.framing.compressed_header_bytes {
            Some(header) => packet.length_bytes() - packet.header_bytes().saturating_sub(header),
            None => packet.length_bytes(),
        };
        let frames = bytes.div_ceil(self.framing.payload_bytes).max(1);
        let queued = self.queued_frames();
        let fits = match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Frames(limit) => queued + u64::from(frames) <= u64::from(limit),
            QueueLimit::Packets(limit) => self.waiting.len() < limit as usize,
            QueueLimit::Bytes(limit) => self.waiting_bytes + u64::from(packet.length_bytes()) <= limit,
        };
        // The queue of a terminal that is out of luck is not idle, so idle time does not enter the average.
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let crowded = self.marking.as_mut().is_some_and(|average| average.sample(waiting, 0.0));
        let marked = fits && crowded && packet.understands_marks();
        if marked {
            packet.mark_congestion();
        }
        if fits {
            let length = packet.length_bytes();
            let end = self.packets.push(packet, frames);
            self.waiting.push_back((end, length));
            if let Some(discard) = &mut self.discard {
                discard.take(end);
            }
            self.waiting_bytes += u64::from(length);
        } else {
            self.report.dropped_frames = self.report.dropped_frames.saturating_add(frames);
        }
        Admission { accepted: fits, marked }
    }

    /// Frames that could be sent now, apart from blocks that hybrid ARQ repeats: of one lost stretch, else of the
    /// queue.
    #[must_use]
    pub fn sendable_frames(&self) -> u32 {
        if !self.hybrid_arq.has_free() {
            return 0;
        }
        if let Some(run) = self.to_resend.front() {
            return run.frames;
        }
        let window = self.recovery.map_or(u64::MAX, |recovery| {
            (self.packets.settled() + u64::from(recovery.window_frames)).saturating_sub(self.unsent)
        });
        u32::try_from(self.queued_frames().min(window)).unwrap_or(u32::MAX)
    }

    /// Whether the next block is one that the network sends again.
    #[must_use]
    pub fn resends(&self) -> bool {
        !self.to_resend.is_empty()
    }

    /// Whether nothing is queued, on the air or awaited.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queued_frames() == 0
            && self.to_resend.is_empty()
            && self.reported_missing.is_empty()
            && self.reordering.is_empty()
            && self.hybrid_arq.is_idle()
    }

    /// Takes the next block of at most `room` frames in the format of `quality`.
    pub fn take_block(&mut self, room: u32, quality: u8) -> Option<Block> {
        let frames = self.sendable_frames().min(room);
        if frames == 0 {
            return None;
        }
        let run = if let Some(run) = self.to_resend.front_mut() {
            let taken = Run { first: run.first, frames, sendings: run.sendings };
            run.first += u64::from(frames);
            run.frames -= frames;
            if run.frames == 0 {
                self.to_resend.pop_front();
            }
            taken
        } else {
            let run = Run { first: self.unsent, frames, sendings: 1 };
            self.unsent = run.end();
            self.report.served_frames = self.report.served_frames.saturating_add(frames);
            self.report.offered_frames = self.report.offered_frames.saturating_add(room);
            self.forget_sent();
            run
        };
        Some(Block::new(self.reordering.send(run), run, quality))
    }

    /// The terminal has decoded the block numbered `sequence`.
    pub fn arrive(&mut self, sequence: u64) {
        self.reordering.arrive(sequence);
    }

    /// Hybrid ARQ has given up the block numbered `sequence`.
    pub fn lose(&mut self, sequence: u64) {
        self.reordering.lose(sequence);
    }

    /// Processes interval number `tti`: releases blocks, declares others missing, queues missing frames again.
    pub fn settle(&mut self, tti: u64, deliveries: &mut Deliveries<P>) {
        if self.discard.as_mut().is_some_and(|discard| discard.expire(tti)) {
            self.discard_expired();
            self.deliver(deliveries);
        }
        while let Some(released) = self.reordering.release(tti, self.reordering_ttis) {
            match (released, self.recovery) {
                (Released::Received(run), _) => self.packets.receive(run.first, run.end()),
                (Released::Missing(run), Some(recovery)) if run.sendings < recovery.maximum_transmissions => {
                    let again = Run { sendings: run.sendings + 1, ..self.still_wanted(run) };
                    if again.frames > 0 {
                        self.reported_missing.push_back((tti + self.status_delay_ttis, again));
                    }
                }
                (Released::Missing(run), _) => self.packets.give_up(run.first, run.end()),
            }
            self.deliver(deliveries);
        }
        while let Some(&(due, run)) = self.reported_missing.front() {
            if due > tti {
                break;
            }
            self.reported_missing.pop_front();
            self.to_resend.push_back(run);
        }
    }

    fn deliver(&mut self, deliveries: &mut Deliveries<P>) {
        while let Some((packet, whole)) = self.packets.pop() {
            if whole {
                deliveries.delivered.push_back(packet);
            } else {
                deliveries.lost_packets += 1;
            }
        }
    }

    /// Removes packets from the queue whose last frame has been sent.
    fn forget_sent(&mut self) {
        while let Some(&(_, length)) = self.waiting.front().filter(|&&(end, _)| end <= self.unsent) {
            self.waiting_bytes -= u64::from(length);
            self.waiting.pop_front();
        }
    }

    /// Discards queued frames and pending retransmissions of packets that are too old; blocks on the air continue.
    fn discard_expired(&mut self) {
        let end = self.discard.as_ref().map_or(0, DiscardTimer::expired_before);
        if self.unsent < end {
            let frames = u32::try_from(end - self.unsent).unwrap_or(u32::MAX);
            self.report.dropped_frames = self.report.dropped_frames.saturating_add(frames);
            self.packets.give_up(self.unsent, end);
            self.unsent = end;
            self.forget_sent();
        }
        for _ in 0..self.to_resend.len() {
            if let Some(run) = self.to_resend.pop_front().map(|run| self.still_wanted(run)).filter(|run| run.frames > 0)
            {
                self.to_resend.push_back(run);
            }
        }
        for _ in 0..self.reported_missing.len() {
            if let Some((due, run)) = self.reported_missing.pop_front() {
                let run = self.still_wanted(run);
                if run.frames > 0 {
                    self.reported_missing.push_back((due, run));
                }
            }
        }
    }

    /// The part of a range that belongs to packets that are not too old; the rest is discarded.
    fn still_wanted(&mut self, run: Run) -> Run {
        let expired = self.discard.as_ref().map_or(0, DiscardTimer::expired_before).clamp(run.first, run.end());
        if expired == run.first {
            return run;
        }
        self.packets.give_up(run.first, expired);
        Run { first: expired, frames: (run.end() - expired) as u32, ..run }
    }

    /// Closes a period, and returns its report.
    pub fn close_period(&mut self, step: u32) -> QueueReport {
        let queued_frames = u32::try_from(self.queued_frames()).unwrap_or(u32::MAX);
        let report = QueueReport { step, queued_frames, ..self.report };
        self.report = QueueReport::default();
        report
    }
}

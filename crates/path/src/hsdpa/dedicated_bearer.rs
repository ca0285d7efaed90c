//! Speech on a dedicated channel beside the shared one: a frame every 20 ms, and the power that it uses.

use std::collections::VecDeque;

use super::settings::DedicatedSettings;
use super::shared_bearer::{Admission, Deliveries};
use super::transport_format::from_db;
use crate::{Datagram, Nanoseconds, QueueLimit, Random};

const FRAME_HEADER_BYTES: u32 = 1; // RLC unacknowledged mode (seed 002, table 4)

/// A dedicated channel down to one terminal, under ideal fast power control.
#[derive(Clone, Debug)]
pub struct DedicatedBearer<P> {
    settings: DedicatedSettings,
    target: f64,
    ttis_a_frame: u64,
    /// Channels do not start together; this one's frames begin at intervals of this remainder.
    stagger: u64,
    compressed_header_bytes: Option<u32>,
    limit: QueueLimit,
    /// Packets with the bytes that are still to be sent.
    queue: VecDeque<(P, u32)>,
    sending: bool,
    starved_ttis: u64,
    random: Random,
}

impl<P: Datagram> DedicatedBearer<P> {
    #[must_use]
    pub fn new(
        settings: DedicatedSettings,
        tti: Nanoseconds,
        compressed_header_bytes: Option<u32>,
        limit: QueueLimit,
        user: usize,
        random: Random,
    ) -> Self {
        let ttis_a_frame = settings.frame.div_ceil(tti).max(1);
        Self {
            settings,
            target: from_db(settings.target_db),
            ttis_a_frame,
            stagger: user as u64 % ttis_a_frame,
            compressed_header_bytes,
            limit,
            queue: VecDeque::new(),
            sending: false,
            starved_ttis: 0,
            random,
        }
    }

    /// Queues a packet, if there is room.
    pub fn push(&mut self, packet: P) -> Admission {
        let bytes = match self.compressed_header_bytes {
            Some(header) => packet.length_bytes() - packet.header_bytes().saturating_sub(header),
            None => packet.length_bytes(),
        };
        let queued_bytes = |queue: &VecDeque<(P, u32)>| queue.iter().map(|entry| u64::from(entry.1)).sum::<u64>();
        let accepted = match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(limit) | QueueLimit::Frames(limit) => self.queue.len() < limit as usize,
            QueueLimit::Bytes(limit) => queued_bytes(&self.queue) + u64::from(bytes) <= limit,
        };
        if accepted {
            self.queue.push_back((packet, bytes));
        }
        Admission { accepted, marked: false }
    }

    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    #[must_use]
    pub fn queued_packets(&self) -> usize {
        self.queue.len()
    }

    /// Share of the cell's power that it uses in interval number `tti`; `sinr` is the ratio with all of the power.
    ///
    /// At the end of a frame its bytes have arrived; its packet is lost where power was insufficient for most of the frame, and
    /// with the residual error rate otherwise.
    pub fn power_share(&mut self, tti: u64, sinr: impl FnOnce() -> f64, deliveries: &mut Deliveries<P>) -> f64 {
        if tti % self.ttis_a_frame == self.stagger {
            if self.sending {
                self.end_frame(deliveries);
            }
            self.sending = !self.queue.is_empty();
            self.starved_ttis = 0;
        }
        if !self.sending {
            return 0.0;
        }
        let needed = self.target / sinr();
        if needed > self.settings.greatest_share {
            self.starved_ttis += 1;
        }
        needed.min(self.settings.greatest_share)
    }

    fn end_frame(&mut self, deliveries: &mut Deliveries<P>) {
        let Some((_, left)) = self.queue.front_mut() else {
            return;
        };
        let lost = 2 * self.starved_ttis > self.ttis_a_frame || self.random.chance(self.settings.block_error_rate);
        *left = left.saturating_sub(self.settings.frame_bytes - FRAME_HEADER_BYTES);
        let done = *left == 0;
        if lost {
            self.queue.pop_front();
            deliveries.lost_packets += 1;
        } else if done {
            deliveries.delivered.extend(self.queue.pop_front().map(|(packet, _)| packet));
        }
    }
}

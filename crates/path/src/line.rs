//! One direction of a link: a buffer, a transmitter, losses and a delay.
//!
//! Service is first come, first served, so when a packet leaves is known when it arrives, whatever the transmitter. It
//! is put straight into the ring of packets under way with the time of its arrival at the far end, and only a small
//! record of its departure stays to say how full the buffer is. One packet costs one wake-up.

use crate::hop::{Datagram, Direction, HopCounts, Nanoseconds, NEVER, SECOND};
use crate::loss::Loss;
use crate::queue::{AverageQueue, Occupancy, Places, QueueLimit, QueueSettings, Size};
use crate::ring::Ring;
use crate::settings::SettingsError;

/// When packets have been sent, given when they come.
pub(crate) trait Transmitter {
    /// Whether packets take time; where they take none, none ever waits.
    #[inline]
    fn takes_time(&self) -> bool {
        true
    }

    /// When the last bit of the next packet is out, if it comes at `now` and the one before is out at `busy_until`.
    fn finish(&mut self, now: Nanoseconds, busy_until: Nanoseconds, bytes: u32) -> Nanoseconds;

    /// The typical time of a packet of `bytes`, in seconds.
    fn packet_s(&self, bytes: u32) -> f64;

    /// Radio frames that a packet of `bytes` is sent in.
    #[inline]
    fn frames(&self, _bytes: u32) -> u32 {
        0
    }

    /// How many frames of the packet in service, which is out at `departure`, are still to be sent at `now`.
    fn frames_left(&self, _now: Nanoseconds, _departure: Nanoseconds, bytes: u32) -> u32 {
        self.frames(bytes)
    }
}

/// A packet under way, and when it arrives.
#[derive(Clone, Debug)]
struct Passage<P> {
    arrival: Nanoseconds,
    packet: Option<P>,
}

impl<P> Default for Passage<P> {
    #[inline]
    fn default() -> Self {
        Self { arrival: 0, packet: None }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Line<P, T> {
    transmitter: T,
    delay_ns: Nanoseconds,
    queue: QueueSettings,
    average: Option<AverageQueue>,
    loss: Loss,
    /// End of service and length of the packets in the system, the one in service first.
    system: Ring<(Nanoseconds, u32)>,
    occupancy: Occupancy,
    busy_until: Nanoseconds,
    under_way: Ring<Passage<P>>,
    next_ns: Nanoseconds,
    /// What is delivered follows from the others when it is asked for.
    counts: HopCounts,
    overflowed_bytes: u64,
    lost_bytes: u64,
    departed_frames: u64,
    overflowed_frames: u64,
}

impl<P: Datagram, T: Transmitter> Line<P, T> {
    pub(crate) fn new(
        transmitter: T,
        delay_ns: Nanoseconds,
        queue: &QueueSettings,
        loss: Loss,
    ) -> Result<Self, SettingsError> {
        queue.check()?;
        Ok(Self {
            transmitter,
            delay_ns,
            queue: *queue,
            average: queue.marking.map(AverageQueue::new),
            loss,
            system: Ring::new(),
            occupancy: Occupancy::default(),
            busy_until: 0,
            under_way: Ring::new(),
            next_ns: NEVER,
            counts: HopCounts::default(),
            overflowed_bytes: 0,
            lost_bytes: 0,
            departed_frames: 0,
            overflowed_frames: 0,
        })
    }

    /// Takes a packet that enters at `now`.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Nanoseconds, packet: P) {
        let bytes = packet.length_bytes();
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(bytes);
        let mut departure = now;
        let mut is_marked = false;
        if self.transmitter.takes_time() {
            self.forget_departed(now);
            let arriving = self.size(bytes);
            if !self.admits(now, arriving) {
                self.counts.overflowed_packets += 1;
                self.overflowed_bytes += u64::from(bytes);
                self.overflowed_frames += u64::from(arriving.frames);
                return;
            }
            if self.average.is_some() && self.warns(now, bytes) && packet.understands_marks() {
                is_marked = true;
                self.counts.marked_packets += 1;
            }
            self.busy_until = self.transmitter.finish(now, self.busy_until, bytes);
            self.system.push((self.busy_until, bytes));
            self.occupancy.add(arriving);
            departure = self.busy_until;
        }
        if self.loss.loses_next() {
            self.counts.lost_packets += 1;
            self.lost_bytes += u64::from(bytes);
            return;
        }
        let arrival = departure.saturating_add(self.delay_ns);
        if self.under_way.len() == 0 {
            self.next_ns = arrival;
        }
        let passage = self.under_way.push_slot();
        passage.arrival = arrival;
        let packet = passage.packet.insert(packet);
        if is_marked {
            packet.mark_congestion();
        }
    }

    /// When the first packet under way arrives; [`NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_ns(&self) -> Nanoseconds {
        self.next_ns
    }

    /// The first packet under way.
    #[inline(always)]
    pub(crate) fn give(&mut self) -> Option<P> {
        let packet = self.under_way.take_first()?.packet;
        self.next_ns = self.under_way.get(0).map_or(NEVER, |passage| passage.arrival);
        packet
    }

    /// The same packet, left where it is.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&P> {
        self.under_way.get(0)?.packet.as_ref()
    }

    /// When the packet behind it arrives; [`NEVER`] if there is none.
    #[inline(always)]
    pub(crate) fn second_ns(&self) -> Nanoseconds {
        self.under_way.get(1).map_or(NEVER, |passage| passage.arrival)
    }

    /// Done with the first packet under way.
    #[inline(always)]
    pub(crate) fn drop_first(&mut self) {
        self.give();
    }

    /// What is neither refused nor lost nor under way is delivered: nothing needs to be counted twice for each packet.
    pub(crate) fn counts(&self) -> HopCounts {
        let under_way_bytes: u64 = self
            .under_way
            .iter()
            .filter_map(|passage| passage.packet.as_ref())
            .map(|packet| u64::from(packet.length_bytes()))
            .sum();
        let counts = self.counts;
        HopCounts {
            delivered_packets: counts.offered_packets
                - counts.overflowed_packets
                - counts.lost_packets
                - self.under_way.len() as u64,
            delivered_bytes: counts.offered_bytes - self.overflowed_bytes - self.lost_bytes - under_way_bytes,
            ..counts
        }
    }

    pub(crate) fn transmitter(&self) -> &T {
        &self.transmitter
    }

    pub(crate) fn transmitter_mut(&mut self) -> &mut T {
        &mut self.transmitter
    }

    /// Radio frames at `now`: waiting, sent since the start, refused since the start.
    pub(crate) fn frames(&mut self, now: Nanoseconds) -> (u32, u64, u64) {
        self.forget_departed(now);
        let sent = self.sent_of_packet_in_service(now);
        (self.occupancy.frames - sent, self.departed_frames + u64::from(sent), self.overflowed_frames)
    }

    pub(crate) fn observe(&self, now: Nanoseconds, direction: Direction, record: &mut dyn FnMut(&'static str, f64)) {
        let departed = self.system.iter().take_while(|&&(departure, _)| departure <= now);
        let system = departed.fold(self.occupancy, |occupancy, &(_, bytes)| occupancy.without(self.size(bytes)));
        let (packets, bytes, average) = match direction {
            Direction::Down => ("down_system_packets", "down_system_bytes", "down_average_queue_packets"),
            Direction::Up => ("up_system_packets", "up_system_bytes", "up_average_queue_packets"),
        };
        record(packets, f64::from(system.packets));
        record(bytes, system.bytes as f64);
        if let Some(queue) = &self.average {
            record(average, queue.average_packets());
        }
    }

    #[inline(always)]
    fn size(&self, bytes: u32) -> Size {
        Size { bytes, frames: self.transmitter.frames(bytes) }
    }

    #[inline(always)]
    fn admits(&self, now: Nanoseconds, arriving: Size) -> bool {
        if self.queue.limit == QueueLimit::Unlimited
            || self.occupancy.packets == 0 && self.queue.places == Places::Waiting
        {
            return true;
        }
        let mut system = self.occupancy;
        let mut in_service = self.system.get(0).map(|&(_, bytes)| self.size(bytes));
        if matches!(self.queue.limit, QueueLimit::Frames(_)) {
            let sent = self.sent_of_packet_in_service(now);
            system.frames -= sent;
            if let Some(served) = &mut in_service {
                served.frames -= sent;
            }
        }
        self.queue.admits(system, in_service, arriving)
    }

    fn sent_of_packet_in_service(&self, now: Nanoseconds) -> u32 {
        let Some(&(departure, bytes)) = self.system.get(0) else {
            return 0;
        };
        self.transmitter.frames(bytes) - self.transmitter.frames_left(now, departure, bytes)
    }

    #[inline(always)]
    fn forget_departed(&mut self, now: Nanoseconds) {
        while let Some(&(departure, bytes)) = self.system.get(0) {
            if departure > now {
                break;
            }
            self.system.take_first();
            let size = self.size(bytes);
            self.departed_frames += u64::from(size.frames);
            self.occupancy.remove(size);
        }
    }

    /// Samples the average queue for an arrival of `bytes`; whether it is to be marked.
    fn warns(&mut self, now: Nanoseconds, bytes: u32) -> bool {
        let Some(average) = &mut self.average else {
            return false;
        };
        let idle_s = now.saturating_sub(self.busy_until) as f64 / SECOND as f64;
        let idle_packets = idle_s / self.transmitter.packet_s(bytes.max(1));
        average.sample(self.occupancy.packets.saturating_sub(1), idle_packets)
    }
}

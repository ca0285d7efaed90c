//! One direction of a link: a buffer, a transmitter, losses and a delay.
//!
//! Service is first come, first served, so the time at which a packet leaves is known when it enters, whatever the
//! transmitter. The line puts it into a ring with the time of its arrival at the far end, and keeps it there until it is
//! delivered. Two marks go through the ring: entries before the first have left the buffer, and entries before the
//! second are delivered. One packet costs one wake-up.

mod admission;

use crate::hop::{Datagram, Direction, HopCounts, Nanoseconds, NEVER};
use crate::lines::loss::Loss;
use crate::queues::queue::{AverageQueue, Occupancy, Places, QueueLimit, QueueSettings, Size};
use crate::queues::ring::Ring;
use crate::settings::SettingsError;
use crate::transmitters::transmission::{Transmission, Transmitter};

/// A packet in the buffer or under way.
#[derive(Clone, Debug)]
struct LineEntry<P> {
    /// When it arrives at the far end: [`Line::delay_ns`] after the last bit is out.
    arrival: Nanoseconds,
    bytes: u32,
    is_lost: bool,
    packet: Option<P>,
}

impl<P> Default for LineEntry<P> {
    fn default() -> Self {
        Self { arrival: 0, bytes: 0, is_lost: false, packet: None }
    }
}

/// The packet behind the first one under way.
#[derive(Clone, Copy, Debug)]
pub struct Following {
    pub(crate) place: usize,
    /// When it arrives; [`NEVER`] if there is none.
    pub arrival: Nanoseconds,
    /// The number of the first one's line among others, and when the next one arrives on that line.
    pub(crate) branch: (usize, Nanoseconds),
}

impl Following {
    #[inline(always)]
    pub(crate) fn alone(place: usize, arrival: Nanoseconds) -> Self {
        Self { place, arrival, branch: (0, arrival) }
    }
}

/// One direction of a link that is running.
#[derive(Clone, Debug)]
pub struct Line<P> {
    transmission: Transmission,
    delay_ns: Nanoseconds,
    queue: QueueSettings,
    /// A packet that finds fewer packets in the system is admitted, whatever their sizes.
    admit_below_packets: usize,
    average: Option<AverageQueue>,
    loss: Loss,
    entries: Ring<LineEntry<P>>,
    /// Place of a packet before which all have left the buffer; some from there on may have left it too.
    first_in_system: usize,
    /// Place of the first packet to be delivered.
    first_under_way: usize,
    next_ns: Nanoseconds,
    busy_until: Nanoseconds,
    /// Bytes that entered since the start. The departed ones lie before the first entry that may be in the buffer.
    entered_bytes: u64,
    departed_bytes: u64,
    entered_frames: u64,
    departed_frames: u64,
    /// The totals but for offered and delivered packets, which [`Line::counts`] computes from the others.
    counts: HopCounts,
    overflowed_bytes: u64,
    overflowed_frames: u64,
    lost_bytes: u64,
}

impl<P: Datagram> Line<P> {
    pub(crate) fn new(
        transmission: Transmission,
        delay_ns: Nanoseconds,
        queue: &QueueSettings,
        loss: Loss,
    ) -> Result<Self, SettingsError> {
        queue.check()?;
        let admit_below_packets = match (queue.limit, queue.places) {
            _ if queue.marking.is_some() || transmission.frames(1) > 0 => 0,
            (QueueLimit::Unlimited, _) => usize::MAX,
            (QueueLimit::Packets(limit), Places::Waiting) => limit as usize + 1,
            (QueueLimit::Packets(limit), Places::WaitingAndInService) => limit as usize,
            (QueueLimit::Bytes(_) | QueueLimit::Frames(_), _) => 0,
        };
        Ok(Self {
            transmission,
            delay_ns,
            queue: *queue,
            admit_below_packets,
            average: queue.marking.map(AverageQueue::new),
            loss,
            entries: Ring::new(),
            first_in_system: 0,
            first_under_way: 0,
            next_ns: NEVER,
            busy_until: 0,
            entered_bytes: 0,
            departed_bytes: 0,
            entered_frames: 0,
            departed_frames: 0,
            counts: HopCounts::default(),
            overflowed_bytes: 0,
            overflowed_frames: 0,
            lost_bytes: 0,
        })
    }

    /// Takes a packet that enters at `now`.
    #[inline(always)]
    pub fn take(&mut self, now: Nanoseconds, packet: P) {
        self.take_with(now, packet.length_bytes(), || packet);
    }

    /// Takes a packet of `bytes` that enters at `now`. If the queue admits it, `make` writes it straight into its entry.
    #[inline(always)]
    pub fn take_with(&mut self, now: Nanoseconds, bytes: u32, make: impl FnOnce() -> P) {
        self.take_or_pass(now, bytes, 0, make);
    }

    /// See [`crate::Passage::take_or_pass`].
    #[inline(always)]
    pub fn take_or_pass<F: FnOnce() -> P>(
        &mut self,
        now: Nanoseconds,
        bytes: u32,
        until: Nanoseconds,
        make: F,
    ) -> Option<(Nanoseconds, F)> {
        let mut departure = now;
        let mut is_warned = false;
        if self.transmission.takes_time() {
            if self.packets_in_system() >= self.admit_below_packets {
                match self.admit(now, bytes) {
                    Some(warns) => is_warned = warns,
                    None => return None,
                }
            }
            departure = self.transmission.finish(now, self.busy_until, bytes);
            self.busy_until = departure;
        } else {
            self.first_in_system = self.entries.end() + 1;
            self.departed_bytes += u64::from(bytes);
        }
        self.entered_bytes += u64::from(bytes);
        if self.entries.seems_full() {
            self.forget_departed(now);
            self.entries.make_room(self.first_in_system.min(self.first_under_way));
        }
        let arrival = departure.saturating_add(self.delay_ns);
        let is_lost = self.loss.loses_next();
        let place = self.entries.end();
        let entry = self.entries.push_into_room();
        entry.arrival = arrival;
        entry.bytes = bytes;
        entry.is_lost = is_lost;
        if arrival < until && self.first_under_way == place && !is_lost && !is_warned {
            entry.packet = None;
            self.first_under_way = place + 1;
            return Some((arrival, make));
        }
        let packet = entry.packet.insert(make());
        if is_warned && packet.understands_marks() {
            packet.mark_congestion();
            self.counts.marked_packets += 1;
        }
        if is_lost {
            self.lose(place, bytes);
        } else if self.first_under_way == place {
            self.next_ns = arrival;
        }
        None
    }

    /// No packet arrives sooner than so long after it entered.
    #[must_use]
    pub fn least_delay_ns(&self) -> Nanoseconds {
        self.delay_ns
    }

    /// When the first packet under way arrives; [`NEVER`] if there is none.
    #[inline(always)]
    #[must_use]
    pub fn first_arrival(&self) -> Nanoseconds {
        self.next_ns
    }

    /// The first packet under way, and what is behind it.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> Option<(&P, Following)> {
        let packet = self.entries.at(self.first_under_way)?.packet.as_ref()?;
        Some((packet, self.following()))
    }

    /// Removes the first packet under way; `following` is the one behind it.
    #[inline(always)]
    pub fn drop_first(&mut self, following: Following) {
        self.first_under_way = following.place;
        self.next_ns = following.arrival;
    }

    /// Moves the first packet under way, which arrives at `now`, into `next`. Returns `false` and does nothing if another
    /// packet arrives at the same time.
    #[inline(always)]
    pub fn pass_first_alone(&mut self, now: Nanoseconds, next: &mut Self) -> bool
    where
        P: Copy,
    {
        let following = self.following();
        match self.entries.at(self.first_under_way) {
            Some(&LineEntry { bytes, packet: Some(ref packet), .. }) if following.arrival > now => {
                next.take_with(now, bytes, || *packet);
            }
            _ => return false,
        }
        self.drop_first(following);
        true
    }

    /// The first packet under way.
    #[inline(always)]
    pub(crate) fn give(&mut self) -> Option<P> {
        if self.next_ns == NEVER {
            return None;
        }
        let following = self.following();
        let packet = self.entries.at_mut(self.first_under_way)?.packet.take();
        self.drop_first(following);
        packet
    }

    /// What is behind the first packet under way.
    #[inline(always)]
    fn following(&self) -> Following {
        let place = self.first_under_way + 1;
        if place >= self.entries.end() {
            return Following::alone(place, NEVER);
        }
        match self.entries.at(place) {
            Some(entry) if !entry.is_lost => Following::alone(place, entry.arrival),
            _ => self.following_from(place),
        }
    }

    /// The first packet from `place` on that was not lost.
    #[cold]
    #[inline(never)]
    fn following_from(&self, place: usize) -> Following {
        let mut rest = self.places(place).filter(|(_, entry)| !entry.is_lost);
        rest.next().map_or(Following::alone(self.entries.end(), NEVER), |(place, entry)| {
            Following::alone(place, entry.arrival)
        })
    }

    /// Everything from `place` on.
    fn places(&self, place: usize) -> impl Iterator<Item = (usize, &LineEntry<P>)> {
        (place..self.entries.end()).filter_map(|place| Some((place, self.entries.at(place)?)))
    }

    #[cold]
    fn lose(&mut self, place: usize, bytes: u32) {
        self.counts.lost_packets += 1;
        self.lost_bytes += u64::from(bytes);
        if let Some(entry) = self.entries.at_mut(place) {
            entry.packet = None;
        }
        if self.first_under_way == place {
            self.first_under_way += 1;
        }
    }

    /// Totals since the start. A packet that is neither refused nor lost nor under way is delivered, so that the fast path
    /// counts each packet once.
    pub(crate) fn counts(&self) -> HopCounts {
        let (mut under_way_packets, mut under_way_bytes) = (0, 0);
        for (_, entry) in self.places(self.first_under_way).filter(|(_, entry)| !entry.is_lost) {
            under_way_packets += 1;
            under_way_bytes += u64::from(entry.bytes);
        }
        let entered_packets = self.entries.end() as u64;
        HopCounts {
            offered_packets: entered_packets + self.counts.overflowed_packets,
            offered_bytes: self.entered_bytes + self.overflowed_bytes,
            delivered_packets: entered_packets - self.counts.lost_packets - under_way_packets,
            delivered_bytes: self.entered_bytes - self.lost_bytes - under_way_bytes,
            ..self.counts
        }
    }

    pub(crate) fn transmission(&self) -> &Transmission {
        &self.transmission
    }

    pub(crate) fn transmission_mut(&mut self) -> &mut Transmission {
        &mut self.transmission
    }

    /// Radio frames at `now`: waiting, sent since the start, refused since the start.
    pub(crate) fn frames(&mut self, now: Nanoseconds) -> (u32, u64, u64) {
        self.forget_departed(now);
        let sent = self.sent_of_packet_in_service(now);
        (self.system().frames - sent, self.departed_frames + u64::from(sent), self.overflowed_frames)
    }

    pub(crate) fn observe(&self, now: Nanoseconds, direction: Direction, record: &mut dyn FnMut(&'static str, f64)) {
        let until = now.saturating_add(self.delay_ns);
        let departed = self.places(self.first_in_system).take_while(|(_, entry)| entry.arrival <= until);
        let system = departed.fold(self.system(), |system, (_, entry)| system.without(self.size(entry.bytes)));
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
        Size { bytes, frames: self.transmission.frames(bytes) }
    }

    #[inline(always)]
    fn packets_in_system(&self) -> usize {
        self.entries.end() - self.first_in_system
    }

    /// What waits or is being sent.
    fn system(&self) -> Occupancy {
        Occupancy {
            packets: self.packets_in_system() as u32,
            bytes: self.entered_bytes - self.departed_bytes,
            frames: (self.entered_frames - self.departed_frames) as u32,
        }
    }

    /// The packet being sent: its departure and length.
    fn in_service(&self) -> Option<(Nanoseconds, u32)> {
        let (_, entry) = self.places(self.first_in_system).next()?;
        Some((entry.arrival.saturating_sub(self.delay_ns), entry.bytes))
    }

    fn sent_of_packet_in_service(&self, now: Nanoseconds) -> u32 {
        self.in_service().map_or(0, |(departure, bytes)| {
            self.transmission.frames(bytes) - self.transmission.frames_left(now, departure, bytes)
        })
    }

    /// Finds the first packet that is in the buffer or being sent at `now`.
    #[inline(never)]
    fn forget_departed(&mut self, now: Nanoseconds) {
        let until = now.saturating_add(self.delay_ns);
        let sends_frames = self.transmission.frames(1) > 0;
        let (mut place, mut bytes) = (self.first_in_system, 0);
        while place < self.entries.end() {
            let Some(entry) = self.entries.at(place).filter(|entry| entry.arrival <= until) else { break };
            place += 1;
            bytes += u64::from(entry.bytes);
            if sends_frames {
                self.departed_frames += u64::from(self.transmission.frames(entry.bytes));
            }
        }
        self.first_in_system = place;
        self.departed_bytes += bytes;
    }
}

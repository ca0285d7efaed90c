//! The time that a machine takes: its kernel for packets, its programs until they act.

mod passing;

use pepscope_path::{
    Cooling, DrawnTime, Interruptions, Nanoseconds, ProcessingTime, Random, RunOfActs, MICROSECOND, NEVER,
};

use super::Role;
use crate::flow_table::FlowTable;
use crate::packets::packet::Packet;
use crate::packets::segment::{ContentId, Flags, Segment};

use passing::PassingPackets;

/// How long a machine takes. The defaults were measured between kernels in network namespaces, with programs in Python
/// (docs/models/hosts.md).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessingSettings<Time = ProcessingTime> {
    /// From the arrival of a packet until the kernel has answered it, where packets come in close succession; and of a
    /// SYN.
    pub receiving: Time,
    /// The same of data; `None` for as long as other packets.
    pub receiving_data: Option<Time>,
    /// The same of data behind a gap, for which the kernel wakes no program; `None` for as long as other data.
    pub receiving_out_of_order: Option<Time>,
    pub opening: Time,
    /// The same of a SYN or SYN-ACK that is the first packet of all, for which the kernel has no route at hand; `None` for
    /// as long as after a long pause.
    pub first_opening: Option<Time>,
    /// How a time without packets counts, and the factors for both where it counts fully, on a machine of usual speed.
    pub cooling: Cooling,
    pub cold_receiving: f64,
    pub cold_opening: f64,
    /// The factor for the first data of a connection, which finds its code and memory cold and a program asleep.
    pub first_data: f64,
    /// The share of packets before which something else has the processor, and for how long.
    pub interrupted_share: f64,
    pub interruption: Time,
    /// How much the times of neighbouring packets are alike, from 0 to 1 (see [`RunOfActs`]).
    pub persistence: f64,
    /// From one packet that leaves to the next one, and to the next one of the same burst. The second one of a burst may
    /// take longer than later ones, which find code and memory warm; `None` for as long.
    pub sending: Time,
    pub sending_second: Option<Time>,
    pub sending_in_burst: Time,
    /// Until a program that only reads has read or closes, one that works on what it got acts, and one first acts on a
    /// connection: one that connected, one that accepted.
    pub reading: Time,
    pub waking: Time,
    pub connected: Time,
    pub accepted: Time,
    /// Until a program has seen the end of what it gets and closes; `None` for as long as it takes to read or act.
    pub closing: Option<Time>,
    /// Standard deviation of the logarithm of a factor that all of a machine's times have in a run.
    pub machine_spread: f64,
}

impl Default for ProcessingSettings {
    fn default() -> Self {
        let time = |least_us: f64, median_us: f64, spread| {
            ProcessingTime::log_normal(least_us * MICROSECOND as f64, median_us * MICROSECOND as f64, spread)
        };
        Self {
            receiving: time(3.0, 7.0, 0.8),
            receiving_data: None,
            receiving_out_of_order: None,
            opening: time(14.0, 17.0, 0.5),
            first_opening: None,
            cooling: Cooling { full_ns: 20e6, exponent: 1.0 },
            cold_receiving: 4.0,
            cold_opening: 2.1,
            first_data: 1.0,
            interrupted_share: 0.015,
            interruption: time(20.0, 100.0, 1.2),
            persistence: 0.0,
            sending: time(2.0, 3.4, 0.75),
            sending_second: None,
            sending_in_burst: time(0.5, 1.0, 0.6),
            reading: time(40.0, 110.0, 0.6),
            waking: time(150.0, 330.0, 0.5),
            connected: time(140.0, 230.0, 0.9),
            accepted: time(420.0, 620.0, 0.5),
            closing: None,
            machine_spread: 0.35,
        }
    }
}

impl ProcessingSettings {
    /// With tables for what is drawn.
    fn drawn(self) -> ProcessingSettings<DrawnTime> {
        ProcessingSettings {
            receiving: self.receiving.into(),
            receiving_data: self.receiving_data.map(DrawnTime::from),
            receiving_out_of_order: self.receiving_out_of_order.map(DrawnTime::from),
            opening: self.opening.into(),
            first_opening: self.first_opening.map(DrawnTime::from),
            cooling: self.cooling,
            cold_receiving: self.cold_receiving,
            cold_opening: self.cold_opening,
            first_data: self.first_data,
            interrupted_share: self.interrupted_share,
            interruption: self.interruption.into(),
            persistence: self.persistence,
            sending: self.sending.into(),
            sending_second: self.sending_second.map(DrawnTime::from),
            sending_in_burst: self.sending_in_burst.into(),
            reading: self.reading.into(),
            waking: self.waking.into(),
            connected: self.connected.into(),
            accepted: self.accepted.into(),
            closing: self.closing.map(DrawnTime::from),
            machine_spread: self.machine_spread,
        }
    }
}

/// What a program wakes up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A connection that is new to it.
    Connection(Role),
    /// Data, or their end, for one that reads and then waits.
    ToRead,
    /// Data for one that writes or closes when it has read.
    ToActOn,
    /// The end has come, and what is before it is read with it; where that takes no time of its own, for a program that only reads or not.
    End { only_reads: bool },
}

/// Packets between the network and the kernel of a machine that takes time.
#[derive(Debug)]
pub(crate) struct Processing {
    settings: ProcessingSettings<DrawnTime>,
    /// Of packets without data, with data, and with data behind a gap.
    receiving: [DrawnTime; 3],
    random: Random,
    machine_factor: f64,
    interruptions: Interruptions,
    arrivals: RunOfActs,
    departures: RunOfActs,
    last_arrival_ns: Option<Nanoseconds>,
    /// Flows whose first data have arrived.
    with_data: FlowTable<()>,
    pub(super) arriving: PassingPackets,
    pub(super) leaving: PassingPackets,
    free_to_receive_ns: Nanoseconds,
    free_to_send_ns: Nanoseconds,
    /// Where the next segment of the last burst would begin, and whether the burst has two already.
    next_in_burst: Option<(u32, ContentId, u32)>,
    has_second: bool,
}

impl Processing {
    pub fn new(settings: ProcessingSettings, mut random: Random) -> Self {
        let of_data = settings.receiving_data.unwrap_or(settings.receiving);
        let of_gap = settings.receiving_out_of_order.unwrap_or(of_data);
        Self {
            receiving: [settings.receiving, of_data, of_gap].map(DrawnTime::from),
            machine_factor: libm::exp(settings.machine_spread * random.normal()),
            interruptions: Interruptions::new(settings.interrupted_share, &mut random),
            arrivals: RunOfActs::new(settings.persistence),
            departures: RunOfActs::new(settings.persistence),
            last_arrival_ns: None,
            with_data: FlowTable::default(),
            settings: settings.drawn(),
            random,
            arriving: PassingPackets::new(),
            leaving: PassingPackets::new(),
            free_to_receive_ns: 0,
            free_to_send_ns: 0,
            next_in_burst: None,
            has_second: false,
        }
    }

    /// Whether it matters if data arrive behind a gap: where no other packet is under way, so that what the connection
    /// expects next is known.
    #[inline(always)]
    pub fn asks_for_order(&self) -> bool {
        self.settings.receiving_out_of_order.is_some() && self.arriving.first_ns() == NEVER
    }

    /// A packet comes from the network, with data behind a gap if it `is_out_of_order`.
    #[inline(never)]
    pub fn push_arriving(&mut self, now: Nanoseconds, packet: &Packet, is_out_of_order: bool) {
        let received_ns = self.receive(now, packet, is_out_of_order);
        self.arriving.push(received_ns, packet);
    }

    /// When the kernel gets a packet that comes from the network.
    #[inline(always)]
    pub(super) fn receive(&mut self, now: Nanoseconds, packet: &Packet, is_out_of_order: bool) -> Nanoseconds {
        let has_data = matches!(packet, Packet::Tcp(segment) if segment.payload_bytes > 0);
        let is_opening = matches!(packet, Packet::Tcp(segment) if segment.flags.has(Flags::SYN));
        let pause_ns = self.last_arrival_ns.replace(now).map(|last_ns| now - last_ns);
        let coldness = self.settings.cooling.share(pause_ns);
        let looks = has_data && self.settings.first_data != 1.0;
        let first = if looks && self.is_first_data(packet) { self.settings.first_data } else { 1.0 };
        let time_ns = if is_opening {
            self.opening_time(pause_ns.is_none(), coldness)
        } else if self.interruptions.interrupt(&mut self.random) {
            self.interruption_time()
        } else {
            let time = &self.receiving[usize::from(has_data) + usize::from(is_out_of_order)];
            let longer = first * cold(self.settings.cold_receiving, coldness, self.machine_factor);
            time.draw_in_run(longer, self.machine_factor, &mut self.arrivals, &mut self.random)
        };
        self.free_to_receive_ns = self.free_to_receive_ns.max(now).saturating_add(time_ns);
        self.free_to_receive_ns
    }

    #[cold]
    #[inline(never)]
    fn opening_time(&mut self, is_first_packet: bool, coldness: f64) -> Nanoseconds {
        let (settings, factor) = (&self.settings, self.machine_factor);
        match settings.first_opening.as_ref().filter(|_| is_first_packet) {
            Some(time) => time.draw(factor, &mut self.random),
            None => {
                let longer = cold(settings.cold_opening, coldness, factor);
                settings.opening.draw_longer(longer, 1.0, &mut self.random)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn interruption_time(&mut self) -> Nanoseconds {
        self.settings.interruption.draw(self.machine_factor, &mut self.random)
    }

    fn is_first_data(&mut self, packet: &Packet) -> bool {
        let Packet::Tcp(segment) = packet else { return false };
        let is_first = self.with_data.get(segment.flow).is_none();
        self.with_data.get_or_make(segment.flow, || ());
        is_first
    }

    /// A packet that the kernel gets by `now`.
    pub fn pop_arriving(&mut self, now: Nanoseconds) -> Option<Packet> {
        self.arriving.pop(now)
    }

    /// The kernel sends a packet at `now`.
    #[inline]
    pub fn push_leaving(&mut self, now: Nanoseconds, packet: &Packet) {
        let leaves_ns = self.send(now, packet);
        self.leaving.push(leaves_ns, packet);
    }

    /// When a packet leaves that the kernel sends at `now`.
    #[inline]
    pub(super) fn send(&mut self, now: Nanoseconds, packet: &Packet) -> Nanoseconds {
        let is_in_burst = self.continues_burst(packet);
        let is_second = is_in_burst && !self.has_second;
        self.has_second = is_in_burst;
        if self.free_to_send_ns > now || is_in_burst {
            let settings = &self.settings;
            // What a burst has warmed up takes as long on a machine whose caches hold other things.
            let (time, factor) = match (&settings.sending_second, is_in_burst, is_second) {
                (Some(second), true, true) => (second, self.machine_factor),
                (Some(_), true, false) => (&settings.sending_in_burst, 1.0),
                (None, true, _) => (&settings.sending_in_burst, self.machine_factor),
                (_, false, _) => (&settings.sending, self.machine_factor),
            };
            let time_ns = time.draw_in_run(1.0, factor, &mut self.departures, &mut self.random);
            self.free_to_send_ns = self.free_to_send_ns.max(now).saturating_add(time_ns);
        } else {
            self.free_to_send_ns = now;
        }
        let leaves_ns = self.free_to_send_ns;
        // The next one leaves later, however soon it follows.
        self.free_to_send_ns += 1;
        leaves_ns
    }

    fn continues_burst(&mut self, packet: &Packet) -> bool {
        let Packet::Tcp(segment) = packet else { return false };
        let place = |segment: &Segment, more: u32| (segment.flow, segment.content, segment.sequence.wrapping_add(more));
        let continues = self.next_in_burst == Some(place(segment, 0));
        let goes_on = segment.payload_bytes > 0 && !segment.flags.has(Flags::PSH);
        self.next_in_burst = goes_on.then(|| place(segment, segment.payload_bytes.into()));
        continues
    }

    /// A packet that the network gets by `now`.
    pub fn pop_leaving(&mut self, now: Nanoseconds) -> Option<Packet> {
        self.leaving.pop(now)
    }

    /// When the next packet arrives or leaves.
    #[inline(always)]
    pub fn next_time(&self) -> Nanoseconds {
        self.arriving.first_ns().min(self.leaving.first_ns())
    }

    /// How long a program takes to act.
    pub fn waking_time(&mut self, news: News) -> Nanoseconds {
        let settings = &self.settings;
        let time = match news {
            News::Connection(Role::Client) => &settings.connected,
            News::Connection(Role::Server) => &settings.accepted,
            News::ToRead => &settings.reading,
            News::ToActOn => &settings.waking,
            News::End { only_reads } => {
                let otherwise = if only_reads { &settings.reading } else { &settings.waking };
                settings.closing.as_ref().unwrap_or(otherwise)
            }
        };
        time.draw(self.machine_factor, &mut self.random).max(1)
    }
}

/// How much longer a time is after a pause that counts as `coldness`, on a machine with this factor.
fn cold(most: f64, coldness: f64, factor: f64) -> f64 {
    1.0 + (most - 1.0) * coldness * factor
}

#[cfg(test)]
mod tests;

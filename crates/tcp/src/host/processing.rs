//! The time that a machine takes: its kernel for packets, its programs until they act.

use pepscope_path::{Cooling, Nanoseconds, ProcessingTime, Random, TimeDraws, MICROSECOND};

use super::passing::PassingPackets;
use super::Role;
use crate::flow_table::FlowTable;
use crate::packet::Packet;
use crate::segment::{ContentId, Flags, Segment};

/// How long a machine takes. The defaults were measured between kernels in network namespaces, with programs in Python
/// (docs/models/hosts.md).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessingSettings {
    /// From the arrival of a packet until the kernel has answered it, where packets come in close succession; and of a
    /// SYN.
    pub receiving: ProcessingTime,
    /// The same of data; `None` for as long as other packets.
    pub receiving_data: Option<ProcessingTime>,
    pub opening: ProcessingTime,
    /// How a time without packets counts, and the factors for both where it counts fully, on a machine of usual speed.
    pub cooling: Cooling,
    pub cold_receiving: f64,
    pub cold_opening: f64,
    /// The factor for the first data of a connection, which finds its code and memory cold and a program asleep.
    pub first_data: f64,
    /// The share of packets before which something else has the processor, and for how long.
    pub interrupted_share: f64,
    pub interruption: ProcessingTime,
    /// From one packet that leaves to the next one, and to the next one of the same burst.
    pub sending: ProcessingTime,
    pub sending_in_burst: ProcessingTime,
    /// Until a program that only reads has read or closes, one that works on what it got acts, and one first acts on a
    /// connection: one that connected, one that accepted.
    pub reading: ProcessingTime,
    pub waking: ProcessingTime,
    pub connected: ProcessingTime,
    pub accepted: ProcessingTime,
    /// Until a program has seen the end of what it gets and closes; `None` for as long as it takes to read or act.
    pub closing: Option<ProcessingTime>,
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
            opening: time(14.0, 17.0, 0.5),
            cooling: Cooling { full_ns: 20e6, exponent: 1.0 },
            cold_receiving: 4.0,
            cold_opening: 2.1,
            first_data: 1.0,
            interrupted_share: 0.015,
            interruption: time(20.0, 100.0, 1.2),
            sending: time(2.0, 3.4, 0.75),
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

/// What a program wakes up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A connection that is new to it.
    Connection(Role),
    /// Data, or their end, for one that only reads.
    ToRead,
    ToActOn,
    /// All has been read and the end has come; where that takes no time of its own, for a program that only reads or not.
    End {
        only_reads: bool,
    },
}

/// Packets between the network and the kernel of a machine that takes time.
#[derive(Debug)]
pub(crate) struct Processing {
    settings: ProcessingSettings,
    random: TimeDraws,
    machine_factor: f64,
    last_arrival_ns: Option<Nanoseconds>,
    /// Flows whose first data have arrived.
    with_data: FlowTable<()>,
    pub(super) arriving: PassingPackets,
    pub(super) leaving: PassingPackets,
    free_to_receive_ns: Nanoseconds,
    free_to_send_ns: Nanoseconds,
    /// Where the next segment of the last burst would begin.
    next_in_burst: Option<(u32, ContentId, u32)>,
}

impl Processing {
    pub fn new(settings: ProcessingSettings, mut random: Random) -> Self {
        Self {
            machine_factor: libm::exp(settings.machine_spread * random.normal()),
            last_arrival_ns: None,
            with_data: FlowTable::default(),
            settings,
            random: TimeDraws::new(random),
            arriving: PassingPackets::new(),
            leaving: PassingPackets::new(),
            free_to_receive_ns: 0,
            free_to_send_ns: 0,
            next_in_burst: None,
        }
    }

    /// A packet comes from the network.
    #[inline]
    pub fn push_arriving(&mut self, now: Nanoseconds, packet: &Packet) {
        let received_ns = self.receive(now, packet);
        self.arriving.push(received_ns, packet);
    }

    /// When the kernel gets a packet that comes from the network.
    #[inline]
    pub(super) fn receive(&mut self, now: Nanoseconds, packet: &Packet) -> Nanoseconds {
        let has_data = matches!(packet, Packet::Tcp(segment) if segment.payload_bytes > 0);
        let is_opening = matches!(packet, Packet::Tcp(segment) if segment.flags.has(Flags::SYN));
        let pause_ns = self.last_arrival_ns.replace(now).map(|last_ns| now - last_ns);
        let coldness = self.settings.cooling.share(pause_ns);
        let looks = has_data && self.settings.first_data != 1.0;
        let first = if looks && self.is_first_data(packet) { self.settings.first_data } else { 1.0 };
        let (settings, random, factor) = (&self.settings, &mut self.random, self.machine_factor);
        let cold = |most: f64| 1.0 + (most - 1.0) * coldness * factor;
        let time_ns = if is_opening {
            settings.opening.draw_longer(cold(settings.cold_opening), 1.0, random)
        } else if random.chance(settings.interrupted_share) {
            settings.interruption.draw(factor, random)
        } else {
            let time = settings.receiving_data.as_ref().filter(|_| has_data).unwrap_or(&settings.receiving);
            time.draw_longer(first * cold(settings.cold_receiving), factor, random)
        };
        self.free_to_receive_ns = self.free_to_receive_ns.max(now).saturating_add(time_ns);
        self.free_to_receive_ns
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
        if self.free_to_send_ns > now || is_in_burst {
            let time = if is_in_burst { &self.settings.sending_in_burst } else { &self.settings.sending };
            self.free_to_send_ns =
                self.free_to_send_ns.max(now).saturating_add(time.draw(self.machine_factor, &mut self.random));
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

#[cfg(test)]
mod tests {
    use pepscope_path::{Nanoseconds, ProcessingTime, Random, MICROSECOND, SECOND};

    use super::{News, Processing, ProcessingSettings};
    use crate::packet::Packet;
    use crate::segment::Segment;

    fn processing(seed: u64) -> Processing {
        let settings = ProcessingSettings { interrupted_share: 0.0, ..ProcessingSettings::default() };
        Processing::new(settings, Random::new(seed, "processing"))
    }

    fn median(mut times: Vec<Nanoseconds>) -> Nanoseconds {
        times.sort_unstable();
        times[times.len() / 2]
    }

    fn answers(pause: Nanoseconds) -> Vec<Nanoseconds> {
        let packet = Packet::Tcp(Segment::default());
        let one_of = |seed| {
            let mut processing = processing(seed);
            processing.push_arriving(0, &packet);
            let now = SECOND + pause;
            processing.push_arriving(SECOND, &packet);
            processing.push_arriving(now, &packet);
            processing.arriving.last_ns() - now
        };
        (0..200).map(one_of).collect()
    }

    #[test]
    fn a_machine_that_was_idle_answers_later() {
        let (warm, cold) = (answers(MICROSECOND * 500), answers(SECOND));
        assert!(warm.iter().all(|time| *time >= 3 * MICROSECOND));
        assert!((6_000..9_000).contains(&median(warm.clone())), "{}", median(warm));
        assert!((20_000..38_000).contains(&median(cold.clone())), "{}", median(cold));
    }

    #[test]
    fn data_and_the_first_of_a_connection_have_times_of_their_own() {
        let constant = |us: f64| {
            let ns = us * MICROSECOND as f64;
            ProcessingTime::log_normal(ns, ns, 0.0)
        };
        let settings = ProcessingSettings {
            receiving: constant(5.0),
            receiving_data: Some(constant(10.0)),
            first_data: 3.0,
            cold_receiving: 1.0,
            interrupted_share: 0.0,
            ..ProcessingSettings::default()
        };
        let mut processing = Processing::new(settings, Random::new(1, "processing"));
        let packet = |flow, payload_bytes| Packet::Tcp(Segment { flow, payload_bytes, ..Segment::default() });
        let mut taken = |now, packet: Packet| {
            processing.push_arriving(now, &packet);
            (processing.arriving.last_ns() - now) / MICROSECOND
        };
        let packets = [packet(0, 0), packet(0, 100), packet(0, 100), packet(1, 100), packet(0, 0)];
        let times: Vec<_> = (1..).zip(packets).map(|(second, packet)| taken(second * SECOND, packet)).collect();
        assert_eq!(times, [5, 30, 10, 30, 5]);
    }

    #[test]
    fn the_end_takes_as_long_as_reading_or_acting_unless_it_is_said() {
        let median_of = |settings: ProcessingSettings, only_reads| {
            let of = |seed| Processing::new(settings, Random::new(seed, "end")).waking_time(News::End { only_reads });
            median((0..200).map(of).collect())
        };
        let usual = ProcessingSettings::default();
        assert!(2 * median_of(usual, true) < median_of(usual, false));
        let said = ProcessingSettings { closing: Some(usual.connected), ..usual };
        assert_eq!(median_of(said, true), median_of(said, false));
    }

    #[test]
    fn packets_leave_one_after_the_other_in_their_order() {
        let mut processing = processing(1);
        for identification in 0..50 {
            let segment = Segment { ip_identification: identification, ..Segment::default() };
            processing.push_leaving(SECOND, &Packet::Tcp(segment));
        }
        assert!(processing.pop_leaving(SECOND - 1).is_none());
        let (mut last, mut seen) = (0, 0);
        while processing.next_time() < 2 * SECOND {
            let now = processing.next_time();
            assert!(now > last);
            last = now;
            let Some(Packet::Tcp(segment)) = processing.pop_leaving(now) else { panic!("a segment is due") };
            assert_eq!(segment.ip_identification, seen);
            seen += 1;
        }
        assert_eq!(seen, 50);
    }

    #[test]
    fn programs_take_longer_to_act_than_to_read() {
        let times = |news| median((0..200).map(|seed| processing(seed).waking_time(news)).collect());
        assert!(2 * times(News::ToRead) < times(News::ToActOn));
    }
}

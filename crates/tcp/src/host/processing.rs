//! The time that a machine takes: its kernel for packets, its programs until they act.

use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, Random, MICROSECOND, NEVER};

use crate::packet::Packet;
use crate::segment::{ContentId, Flags, Segment};

/// A time drawn from a log-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessingTime {
    pub median_ns: f64,
    /// Standard deviation of the natural logarithm.
    pub spread: f64,
}

impl ProcessingTime {
    fn draw(self, random: &mut Random) -> Nanoseconds {
        (self.median_ns * (self.spread * random.normal()).exp()) as Nanoseconds
    }
}

/// How long a machine takes. The defaults were measured between kernels in network namespaces (docs/models/hosts.md).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessingSettings {
    /// From the arrival of a SYN, and of any other packet, until the kernel has answered it.
    pub opening: ProcessingTime,
    pub receiving: ProcessingTime,
    /// From one packet that leaves to the next one, and to the next one of the same burst.
    pub sending: ProcessingTime,
    pub sending_in_burst: ProcessingTime,
    /// Until a program acts on what has happened to a connection, and until it first does.
    pub waking: ProcessingTime,
    pub starting: ProcessingTime,
}

impl Default for ProcessingSettings {
    fn default() -> Self {
        let time = |median_us: f64, spread| ProcessingTime { median_ns: median_us * MICROSECOND as f64, spread };
        Self {
            opening: time(20.0, 0.4),
            receiving: time(4.0, 0.4),
            sending: time(2.5, 0.4),
            sending_in_burst: time(1.0, 0.25),
            waking: time(150.0, 0.5),
            starting: time(600.0, 0.5),
        }
    }
}

/// Packets between the network and the kernel of a machine that takes time.
#[derive(Debug)]
pub(super) struct Processing {
    settings: ProcessingSettings,
    random: Random,
    arriving: VecDeque<(Nanoseconds, Packet)>,
    leaving: VecDeque<(Nanoseconds, Packet)>,
    free_to_receive_ns: Nanoseconds,
    free_to_send_ns: Nanoseconds,
    /// Where the next segment of the last burst would begin.
    next_in_burst: Option<(u32, ContentId, u32)>,
}

impl Processing {
    pub fn new(settings: ProcessingSettings, random: Random) -> Self {
        Self {
            settings,
            random,
            arriving: VecDeque::new(),
            leaving: VecDeque::new(),
            free_to_receive_ns: 0,
            free_to_send_ns: 0,
            next_in_burst: None,
        }
    }

    /// A packet comes from the network.
    pub fn push_arriving(&mut self, now: Nanoseconds, packet: &Packet) {
        let is_opening = matches!(packet, Packet::Tcp(segment) if segment.flags.has(Flags::SYN));
        let time = if is_opening { self.settings.opening } else { self.settings.receiving };
        self.free_to_receive_ns = self.free_to_receive_ns.max(now).saturating_add(time.draw(&mut self.random));
        self.arriving.push_back((self.free_to_receive_ns, *packet));
    }

    /// A packet that the kernel gets by `now`.
    pub fn pop_arriving(&mut self, now: Nanoseconds) -> Option<Packet> {
        pop_due(&mut self.arriving, now)
    }

    /// The kernel sends a packet at `now`.
    pub fn push_leaving(&mut self, now: Nanoseconds, packet: Packet) {
        let is_in_burst = self.continues_burst(&packet);
        if self.free_to_send_ns > now || is_in_burst {
            let time = if is_in_burst { self.settings.sending_in_burst } else { self.settings.sending };
            self.free_to_send_ns = self.free_to_send_ns.max(now).saturating_add(time.draw(&mut self.random));
        } else {
            self.free_to_send_ns = now;
        }
        self.leaving.push_back((self.free_to_send_ns, packet));
        // The next one leaves later, however soon it follows.
        self.free_to_send_ns += 1;
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
        pop_due(&mut self.leaving, now)
    }

    /// When the next packet arrives or leaves.
    pub fn next_time(&self) -> Nanoseconds {
        let first = |packets: &VecDeque<(Nanoseconds, Packet)>| packets.front().map_or(NEVER, |(at, _)| *at);
        first(&self.arriving).min(first(&self.leaving))
    }

    /// How long a program takes to act; longer where it `starts` to serve the connection.
    pub fn waking_time(&mut self, starts: bool) -> Nanoseconds {
        let time = if starts { self.settings.starting } else { self.settings.waking };
        time.draw(&mut self.random).max(1)
    }
}

fn pop_due(packets: &mut VecDeque<(Nanoseconds, Packet)>, now: Nanoseconds) -> Option<Packet> {
    packets.front().filter(|(at, _)| *at <= now)?;
    packets.pop_front().map(|(_, packet)| packet)
}

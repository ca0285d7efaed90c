//! A middlebox that acknowledges data in the receiver's name and passes the segments on as they came: local
//! acknowledgement without a second connection (RFC 3135, section 3.1.2; the idea of snoop and of satellite gateways).
//!
//! It keeps a copy of each data segment, acknowledges it towards its sender at once, and sends it on when the receiver's
//! window and a congestion window of its own allow it. What is lost behind it, it sends again. Handshakes, resets and the
//! end of a stream are acknowledged by the hosts themselves.

mod held;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use pepscope_path::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NextTimes, Random};

use crate::control::ControlKind;
use crate::flow_table::FlowTable;
use crate::packets::packet::Packet;
use crate::packets::segment::{Flags, Segment};
use stream::{End, Stream};

/// What a local acknowledger does.
#[derive(Clone, Debug, PartialEq)]
pub struct AcknowledgerSettings {
    /// Whether the data of a direction are acknowledged, by [`Direction::index`].
    pub acknowledges: [bool; 2],
    /// What it may hold of a stream; what is left of it is the window of its acknowledgements.
    pub buffer_bytes: u64,
    /// The receiver's own acknowledgements reach the sender, too.
    pub passes_receivers: bool,
    /// The IP identification of its acknowledgements counts, and is not 0.
    pub counts_identifications: bool,
    /// Behind which it sends to the receiver; one that needs nothing but acknowledgements and losses.
    pub control: ControlKind,
    /// Flows that it leaves alone, in order.
    pub bypassed_flows: Vec<u32>,
}

/// What it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcknowledgerCounts {
    /// Acknowledgements made in a receiver's name.
    pub acknowledgements: u64,
    /// Segments that it sent again.
    pub retransmitted_segments: u64,
    /// The most that it held of one stream.
    pub most_held_bytes: u64,
}

/// One connection. Streams are indexed by the direction of their data.
#[derive(Debug)]
struct Flow {
    streams: [Stream; 2],
    /// Reset: everything passes.
    is_over: bool,
    is_ready: bool,
}

/// The hop.
#[derive(Debug)]
pub struct Acknowledger {
    settings: AcknowledgerSettings,
    random: Random,
    flows: Vec<Flow>,
    places: FlowTable<usize>,
    times: NextTimes,
    ready: VecDeque<usize>,
    passing: VecDeque<(Direction, Packet)>,
    totals: AcknowledgerCounts,
    counts: [HopCounts; 2],
}

impl Acknowledger {
    /// One called `name` in the run with `seed`, which decide its IP identifications.
    #[must_use]
    pub fn new(mut settings: AcknowledgerSettings, seed: u64, name: &str) -> Self {
        settings.bypassed_flows.sort_unstable();
        Self {
            settings,
            random: Random::new(seed, name),
            flows: Vec::new(),
            places: FlowTable::default(),
            times: NextTimes::default(),
            ready: VecDeque::new(),
            passing: VecDeque::new(),
            totals: AcknowledgerCounts::default(),
            counts: [HopCounts::default(); 2],
        }
    }

    /// What it did so far.
    #[must_use]
    pub fn totals(&self) -> AcknowledgerCounts {
        self.totals
    }

    /// The place of a segment's connection; a SYN begins one, and connections whose SYN it did not see pass.
    fn place_of(&mut self, segment: &Segment) -> Option<usize> {
        if let Some(place) = self.places.get(segment.flow) {
            return Some(*place);
        }
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        if !opens || self.settings.bypassed_flows.binary_search(&segment.flow).is_ok() {
            return None;
        }
        let place = self.flows.len();
        self.places.get_or_make(segment.flow, || place)?;
        let settings = &self.settings;
        let random = &mut self.random;
        let mut new_stream = |direction: Direction| {
            Stream::new(settings, settings.acknowledges[direction.index()], random.bits() as u16)
        };
        let streams = [new_stream(Direction::Down), new_stream(Direction::Up)];
        self.flows.push(Flow { streams, is_over: false, is_ready: false });
        self.times.reserve(self.flows.len());
        Some(place)
    }

    fn handle_segment(&mut self, now: Nanoseconds, direction: Direction, segment: Segment) {
        let Some(place) = self.place_of(&segment).filter(|place| !self.flows[*place].is_over) else {
            self.passing.push_back((direction, Packet::Tcp(segment)));
            return;
        };
        let flow = &mut self.flows[place];
        if flow.is_ready {
            // Segments that arrive at one time are answered one by one, as a host answers them.
            while let Some(packet) = flow.poll_transmit(now, &mut self.totals) {
                self.passing.push_back(packet);
            }
        }
        if flow.handle_segment(now, direction, &segment, &mut self.totals) {
            flow.streams[direction.index()].note_passed(&segment);
            self.passing.push_back((direction, Packet::Tcp(segment)));
        } else if segment.payload_bytes == 0 {
            self.counts[direction.index()].lost_packets += 1;
        }
        self.note_ready(place);
    }

    fn note_ready(&mut self, place: usize) {
        if !self.flows[place].is_ready {
            self.flows[place].is_ready = true;
            self.ready.push_back(place);
        }
    }
}

impl Flow {
    /// Takes a segment; whether it goes on as it is, now.
    fn handle_segment(
        &mut self,
        now: Nanoseconds,
        direction: Direction,
        segment: &Segment,
        totals: &mut AcknowledgerCounts,
    ) -> bool {
        let (ahead, back) = (direction.index(), direction.opposite().index());
        if segment.flags.has(Flags::RST) {
            self.is_over = true;
            return true;
        }
        // The sender of this segment is the receiver of the other stream.
        let scales = [self.streams[0].offered_scale(), self.streams[1].offered_scale()];
        let scale = if scales.iter().all(Option::is_some) { scales[back].unwrap_or(0).min(14) } else { 0 };
        self.streams[back].receiver.note(segment, scale);
        if segment.flags.has(Flags::SYN) {
            self.streams[ahead].begin(segment);
            return true;
        }
        let is_superfluous = segment.flags.has(Flags::ACK) && self.streams[back].handle_acknowledgement(now, segment);
        if segment.payload_bytes == 0 && !segment.flags.has(Flags::FIN) {
            return !is_superfluous;
        }
        let passes = !self.streams[ahead].take(now, segment);
        totals.most_held_bytes = totals.most_held_bytes.max(self.streams[ahead].held_bytes());
        passes
    }

    fn poll_transmit(&mut self, now: Nanoseconds, totals: &mut AcknowledgerCounts) -> Option<(Direction, Packet)> {
        for direction in [Direction::Down, Direction::Up] {
            let (own, other) = if direction == Direction::Down {
                let [down, up] = &mut self.streams;
                (down, up)
            } else {
                let [down, up] = &mut self.streams;
                (up, down)
            };
            // What the receiver of this stream sends begins the other one.
            let timestamp = other.passed_timestamp().or(own.receiver.timestamp);
            let receiver = End { next_number: other.next_number(), timestamp, ..own.receiver.clone() };
            if let Some(acknowledgement) = own.poll_acknowledgement(now, &receiver) {
                totals.acknowledgements += 1;
                return Some((direction.opposite(), Packet::Tcp(acknowledgement)));
            }
            if let Some((segment, is_again)) = own.poll_data(now) {
                totals.retransmitted_segments += u64::from(is_again);
                return Some((direction, Packet::Tcp(segment)));
            }
        }
        None
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.streams[0].poll_timeout().min(self.streams[1].poll_timeout())
    }
}

impl Hop<Packet> for Acknowledger {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        let counts = &mut self.counts[direction.index()];
        counts.offered_packets += 1;
        counts.offered_bytes += u64::from(packet.length_bytes());
        match packet {
            Packet::Tcp(segment) => self.handle_segment(now, direction, segment),
            Packet::Voice(_) | Packet::Report { .. } | Packet::Datagram(_) => {
                self.passing.push_back((direction, packet))
            }
        }
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        while let Some(place) = self.times.due(now) {
            for stream in &mut self.flows[place].streams {
                stream.handle_timeout(now);
            }
            self.times.set(place, pepscope_path::NEVER); // set anew once it has nothing more to send
            self.note_ready(place);
        }
    }

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        let next = self.passing.pop_front().or_else(|| {
            while let Some(place) = self.ready.front().copied() {
                let flow = &mut self.flows[place];
                if let Some(packet) = (!flow.is_over).then(|| flow.poll_transmit(now, &mut self.totals)).flatten() {
                    return Some(packet);
                }
                flow.is_ready = false;
                // What waits behind a shut window may be overdue.
                let time = if flow.is_over { pepscope_path::NEVER } else { flow.poll_timeout().max(now) };
                self.times.set(place, time);
                self.ready.pop_front();
            }
            None
        });
        let (direction, packet) = next?;
        let counts = &mut self.counts[direction.index()];
        counts.delivered_packets += 1;
        counts.delivered_bytes += u64::from(packet.length_bytes());
        Some((direction, packet))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.times.earliest()
    }

    /// `offered` counts what entered and `delivered` what left in that direction: it makes packets of its own, so that they
    /// need not agree. `lost` are the receivers' acknowledgements that it replaced.
    fn counts(&self, direction: Direction) -> HopCounts {
        self.counts[direction.index()]
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        let held = |direction: Direction| {
            self.flows.iter().map(|flow| flow.streams[direction.index()].held_bytes()).sum::<u64>() as f64
        };
        record("held_down_bytes", held(Direction::Down));
        record("held_up_bytes", held(Direction::Up));
    }
}

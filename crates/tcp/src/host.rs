//! A machine at an end of the path: connections with an application each, and speakers.

mod assembly;
mod attribution;
mod datagrams;
mod error;
mod fast_path;
mod flow;
mod identifications;
mod observing;
mod processing;
mod protocols;
mod results;

use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, NextTimes, NEVER};

use crate::applications::voice::{VoiceReception, VoiceSource};
use crate::flow_table::FlowTable;
use crate::packets::packet::Packet;
use crate::packets::packet_sink::PacketSink;
use crate::packets::segment::Segment;

use attribution::Attribution;
use datagrams::DatagramFlow;
pub use datagrams::{DatagramFlowResult, DatagramFlowSettings};
pub use error::HostError;
use fast_path::FastFlows;
use flow::Flow;
pub use flow::{FlowResult, FlowSettings, Outcome, Role};
use identifications::Identifications;
pub use processing::ProcessingSettings;
pub(crate) use processing::{News, Processing};

/// The machine. Calls come in the order that [`pepscope_path::Hop`] describes.
#[derive(Debug)]
pub struct Host {
    name: String,
    seed: u64,
    flows: Vec<Flow>,
    places: FlowTable<usize>,
    times: NextTimes,
    ready: VecDeque<usize>,
    /// The flows whose timeouts are not up to date.
    fast_flows: FastFlows,
    /// A lower bound of the earliest timeout, for the fast path.
    earliest_ns: Nanoseconds,
    speakers: Vec<VoiceSource>,
    speaker_times: NextTimes,
    datagram_flows: Vec<DatagramFlow>,
    datagram_places: FlowTable<usize>,
    datagram_times: NextTimes,
    /// What leaves before what the ready flows have.
    leaving: VecDeque<Packet>,
    /// By user.
    heard: Vec<VoiceReception>,
    /// Flows whose outcome is open.
    open_flows: usize,
    stray_packets: u64,
    /// Which application answers on which connection, where that changes.
    attribution: Attribution,
    identifications: Identifications,
    /// `None` where nothing takes time.
    processing: Option<Processing>,
}

impl Host {
    /// Takes a packet from the path.
    #[inline]
    pub fn handle_packet(&mut self, now: Nanoseconds, packet: &Packet) {
        if self.processing.is_none() {
            self.take_packet(now, packet);
        } else {
            self.push_arriving(now, packet);
        }
    }

    /// The kernel of a machine that takes time gets a packet.
    #[inline]
    fn push_arriving(&mut self, now: Nanoseconds, packet: &Packet) {
        let is_out_of_order = self.is_out_of_order(packet);
        if let Some(processing) = &mut self.processing {
            processing.push_arriving(now, packet, is_out_of_order);
        }
    }

    /// Whether a packet that arrives has data behind a gap, where a kernel takes another time for these.
    #[inline(always)]
    fn is_out_of_order(&self, packet: &Packet) -> bool {
        let is_behind_gap = |segment: &Segment| {
            self.places.get(segment.flow).is_some_and(|place| self.flows[*place].connection.is_behind_gap(segment))
        };
        self.processing.as_ref().is_some_and(Processing::asks_for_order)
            && matches!(packet, Packet::Tcp(segment) if segment.payload_bytes > 0 && is_behind_gap(segment))
    }

    #[inline]
    fn take_packet(&mut self, now: Nanoseconds, packet: &Packet) {
        match packet {
            Packet::Tcp(segment) => self.handle_segment(now, segment),
            Packet::Voice(frame) => {
                let user = usize::from(frame.user);
                if user >= self.heard.len() {
                    self.heard.resize(user + 1, VoiceReception::default());
                }
                self.heard[user].receive(*frame);
            }
            Packet::Datagram(datagram) => self.take_datagram(now, datagram),
            Packet::Report { .. } => self.stray_packets += 1,
        }
    }

    #[inline]
    fn handle_segment(&mut self, now: Nanoseconds, segment: &Segment) {
        let Some(place) = self.places.get(segment.flow).copied() else {
            self.stray_packets += 1;
            return;
        };
        let flow = &mut self.flows[place];
        if flow.is_ready {
            // Segments that arrive at one time are answered one by one: sharing ACKs is for the path to do.
            while let Some(answer) = flow.poll_transmit(now, &mut self.identifications) {
                self.leaving.push_back(Packet::Tcp(answer));
            }
        }
        flow.connection.handle_segment(now, segment);
        if flow.is_dormant {
            self.rouse(place);
        }
        self.proceed(now, place);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Nanoseconds) {
        while let Some(packet) = self.processing.as_mut().and_then(|processing| processing.pop_arriving(now)) {
            self.take_packet(now, &packet);
        }
        while let Some(place) = self.speaker_times.due(now) {
            let speaker = &mut self.speakers[place];
            speaker.handle_timeout(now);
            self.leaving.extend(speaker.poll_transmit().map(Packet::Voice));
            self.speaker_times.set(place, speaker.poll_timeout());
        }
        self.handle_datagram_timeouts(now);
        while let Some(place) = self.times.due(now) {
            let flow = &mut self.flows[place];
            if flow.connect_ns <= now {
                flow.connect_ns = NEVER;
                flow.connection.connect(now);
            }
            flow.connection.handle_timeout(now);
            self.times.set(place, NEVER); // set anew once it has nothing more to send
            self.proceed(now, place);
        }
    }

    /// Passes the events to the application.
    #[inline]
    fn proceed(&mut self, now: Nanoseconds, place: usize) {
        let flow = &mut self.flows[place];
        let was_open = flow.is_open();
        if let Some(processing) = &mut self.processing {
            if !flow.wakes(now, |news| processing.waking_time(news)) {
                self.finish_advance(now, place, was_open);
                return;
            }
        }
        if self.attribution.is_used() {
            self.hand_over(now, place);
        }
        let flow = &mut self.flows[place];
        let was_open = flow.is_open();
        flow.take_events(now);
        flow.application.advance(now, &mut flow.connection);
        self.finish_advance(now, place, was_open);
    }

    /// The application of a flow that `was_open` has acted.
    #[inline]
    fn finish_advance(&mut self, now: Nanoseconds, place: usize, was_open: bool) {
        let flow = &mut self.flows[place];
        let to_wake = flow.application.take_flows_to_wake();
        if flow.application.has_aborted() {
            flow.end(now, Outcome::Aborted);
        }
        let has_ended = was_open && !flow.is_open();
        if !flow.is_ready {
            flow.is_ready = true;
            self.ready.push_back(place);
        }
        if has_ended {
            self.end(now, place);
        }
        to_wake.into_iter().for_each(|flow| self.wake_flow(now, flow));
    }

    fn end(&mut self, now: Nanoseconds, place: usize) {
        self.open_flows -= 1;
        if let Some((then, think_time_ns)) = self.flows[place].successor.take() {
            let start_ns = now.saturating_add(think_time_ns);
            let flow = &mut self.flows[then];
            flow.connect_ns = start_ns;
            flow.result.start_ns = start_ns;
            self.times.set(then, start_ns);
        }
    }

    /// The next packet that leaves at `now`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanoseconds) -> Option<Packet> {
        if self.processing.is_none() {
            return self.poll_kernel(now);
        }
        while let Some(packet) = self.poll_kernel(now) {
            if let Some(processing) = &mut self.processing {
                processing.push_leaving(now, &packet);
            }
        }
        self.processing.as_mut().and_then(|processing| processing.pop_leaving(now))
    }

    #[inline]
    fn poll_kernel(&mut self, now: Nanoseconds) -> Option<Packet> {
        if let Some(packet) = self.leaving.pop_front() {
            return Some(packet);
        }
        while let Some(place) = self.ready.front().copied() {
            let flow = &mut self.flows[place];
            if let Some(segment) = flow.poll_transmit(now, &mut self.identifications) {
                return Some(Packet::Tcp(segment));
            }
            flow.is_ready = false;
            self.times.set(place, flow.next_time());
            self.ready.pop_front();
        }
        None
    }

    /// Hands every packet that leaves at `now` to `sink`, as [`Host::poll_transmit`] would give them.
    #[inline]
    pub fn transmit(&mut self, now: Nanoseconds, sink: &mut (impl PacketSink + ?Sized)) {
        if self.processing.is_some() {
            while let Some(packet) = self.poll_transmit(now) {
                sink.send(packet);
            }
            return;
        }
        while let Some(packet) = self.leaving.pop_front() {
            sink.send(packet);
        }
        while let Some(place) = self.ready.front().copied() {
            let flow = &mut self.flows[place];
            while let Some(segment) = flow.poll_transmit(now, &mut self.identifications) {
                sink.send(Packet::Tcp(segment));
            }
            flow.is_ready = false;
            self.times.set(place, flow.next_time());
            self.ready.pop_front();
        }
    }

    /// When [`Host::handle_timeout`] is due next.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Nanoseconds {
        debug_assert!(self.fast_flows.is_empty(), "the timeouts are not up to date");
        self.next_time()
    }

    /// When the next flow, speaker, datagram or packet in processing is due, as far as the tables know.
    #[inline(always)]
    fn next_time(&self) -> Nanoseconds {
        let packets_ns = self.processing.as_ref().map_or(NEVER, Processing::next_time);
        self.times.earliest().min(self.speaker_times.earliest()).min(self.datagram_times.earliest()).min(packets_ns)
    }
}

#[cfg(test)]
mod kernel_tests;
#[cfg(test)]
mod linux_tests;
#[cfg(test)]
mod protocol_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transfers;

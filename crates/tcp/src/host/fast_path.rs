//! The fast path through a host: from a packet that header prediction takes to the packets that answer it.
//!
//! It does what [`Host::handle_packet`], [`Host::transmit`] and [`Host::poll_timeout`] do, one after the other; what it
//! does not cover it leaves to them.

use pepscope_path::Nanoseconds;

use super::Host;
use crate::packets::packet::Packet;
use crate::packets::packet_sink::PacketSink;
use crate::packets::segment::Segment;

/// The flows that the fast path has answered. Their entries in the table of timeouts may be out of date: a timer that
/// moves with every packet is entered once something asks for the earliest.
#[derive(Clone, Debug)]
pub(super) struct FastFlows {
    /// Number and place of the last one.
    flow: u32,
    place: usize,
    /// The places of all.
    places: Vec<usize>,
}

impl Default for FastFlows {
    fn default() -> Self {
        // No flow has such a number.
        Self { flow: u32::MAX, place: usize::MAX, places: Vec::new() }
    }
}

impl FastFlows {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl Host {
    /// Does what [`Host::handle_packet`] and [`Host::transmit`] do where nothing takes time, on the fast path where header
    /// prediction takes the packet and answers it.
    ///
    /// Call [`Host::refresh_timeouts`] after it and before [`Host::poll_timeout`].
    #[inline(always)]
    pub fn answer(&mut self, now: Nanoseconds, packet: &Packet, sink: &mut impl PacketSink) {
        debug_assert!(!self.takes_time(), "packets arrive there by another function");
        let is_answered = match packet {
            Packet::Tcp(segment) if segment.payload_bytes > 0 => self.answer_data(now, segment, sink),
            Packet::Tcp(segment) => self.answer_acknowledgement(now, segment, sink),
            _ => false,
        };
        if !is_answered {
            self.answer_on_slow_path(now, packet, sink);
        }
    }

    #[inline(never)]
    fn answer_on_slow_path(&mut self, now: Nanoseconds, packet: &Packet, sink: &mut impl PacketSink) {
        match packet {
            Packet::Tcp(segment) if segment.flow == self.fast_flows.flow => {
                self.answer_mispredicted(now, segment, sink);
            }
            _ => {
                self.handle_packet(now, packet);
                self.transmit_on_slow_path(now, sink);
            }
        }
    }

    /// Answers a segment of the fast flow that header prediction does not take. The application mostly has nothing to
    /// do.
    fn answer_mispredicted(&mut self, now: Nanoseconds, segment: &Segment, sink: &mut impl PacketSink) {
        let place = self.fast_flows.place;
        let flow = &mut self.flows[place];
        if flow.connection.handle_mispredicted(now, segment) && flow.application.has_nothing_to_do(now) {
            while let Some(segment) = flow.poll_transmit(now, &mut self.identifications) {
                sink.send(Packet::Tcp(segment));
            }
            self.earliest_ns = self.earliest_ns.min(flow.connection.poll_timeout());
        } else {
            self.proceed(now, place);
            self.transmit_on_slow_path(now, sink);
        }
    }

    /// When [`Host::handle_timeout`] is due next, or earlier.
    #[inline(always)]
    #[must_use]
    pub fn earliest_timeout(&self) -> Nanoseconds {
        self.earliest_ns
    }

    /// Brings the table of timeouts up to date, which [`Host::answer`] leaves for later.
    #[inline(always)]
    pub fn refresh_timeouts(&mut self) {
        for place in self.fast_flows.places.drain(..) {
            let flow = &mut self.flows[place];
            flow.is_fast = false;
            self.times.set(place, flow.next_time());
        }
        (self.fast_flows.flow, self.fast_flows.place) = (u32::MAX, usize::MAX);
        self.earliest_ns = self.next_time();
    }

    /// Whether [`Host::wake`] is due at `now`: what [`Host::earliest_timeout`] says may be too early.
    #[inline]
    pub fn is_due(&mut self, now: Nanoseconds) -> bool {
        if self.fast_flows.is_empty() {
            return true;
        }
        self.refresh_timeouts();
        self.earliest_ns <= now
    }

    /// Whether the machine takes time for packets.
    #[must_use]
    pub fn takes_time(&self) -> bool {
        self.processing.is_some()
    }

    /// The place of a flow that the fast path may answer: nothing of any flow waits to be sent.
    #[inline(always)]
    fn place_of(&mut self, flow: u32) -> Option<usize> {
        if self.fast_flows.flow == flow {
            return Some(self.fast_flows.place);
        }
        self.switch_fast_flow(flow)
    }

    #[inline(never)]
    fn switch_fast_flow(&mut self, flow: u32) -> Option<usize> {
        if !self.leaving.is_empty() || !self.ready.is_empty() {
            return None;
        }
        let place = self.places.get(flow).copied()?;
        let answered = &mut self.flows[place];
        if answered.is_dormant || !answered.connection.predicts() {
            return None;
        }
        if !std::mem::replace(&mut answered.is_fast, true) {
            self.fast_flows.places.push(place);
        }
        (self.fast_flows.flow, self.fast_flows.place) = (flow, place);
        Some(place)
    }

    #[inline(always)]
    fn answer_data(&mut self, now: Nanoseconds, segment: &Segment, sink: &mut impl PacketSink) -> bool {
        let Some(place) = self.place_of(segment.flow) else { return false };
        let Some(flow) = self.flows.get_mut(place).filter(|flow| flow.application.only_reads()) else { return false };
        let Some(run) = flow.connection.accept_data(now, segment) else { return false };
        flow.application.take_run(now, run);
        let connection = &mut flow.connection;
        if connection.may_send_data() {
            self.transmit_predicted(now, place, false, sink);
        } else if connection.acknowledge_predicted(now, sink) {
            self.earliest_ns = self.earliest_ns.min(connection.acknowledgement_timeout());
        } else {
            self.transmit_flow(now, place, sink);
        }
        true
    }

    #[inline(always)]
    fn answer_acknowledgement(&mut self, now: Nanoseconds, segment: &Segment, sink: &mut impl PacketSink) -> bool {
        let Some(place) = self.place_of(segment.flow) else { return false };
        let Some(flow) = self.flows.get_mut(place) else { return false };
        let Some(writable) = flow.connection.accept_acknowledgement(now, segment) else { return false };
        if writable && flow.application.continue_writing(now, &mut flow.connection) {
            self.transmit_predicted(now, place, true, sink);
        } else {
            self.advance_application(now, place, writable);
            self.transmit_on_slow_path(now, sink);
        }
        true
    }

    #[inline(always)]
    fn transmit_predicted(&mut self, now: Nanoseconds, place: usize, is_orderly: bool, sink: &mut impl PacketSink) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        if flow.connection.transmit_predicted(now, is_orderly, sink) {
            self.earliest_ns = self.earliest_ns.min(flow.connection.predicted_timeout());
        } else {
            self.transmit_flow(now, place, sink);
        }
    }

    #[inline(never)]
    fn transmit_flow(&mut self, now: Nanoseconds, place: usize, sink: &mut dyn PacketSink) {
        self.flows[place].is_ready = true;
        self.ready.push_back(place);
        self.transmit_on_slow_path(now, sink);
    }

    /// Passes an ACK's events to the application.
    #[inline(never)]
    fn advance_application(&mut self, now: Nanoseconds, place: usize, has_room: bool) {
        let flow = &mut self.flows[place];
        if has_room {
            flow.application.note_room();
        }
        let was_open = flow.is_open();
        flow.application.advance(now, &mut flow.connection);
        self.finish_advance(now, place, was_open);
    }

    /// [`Host::transmit`] after packets that arrived at one time.
    pub fn transmit_together(&mut self, now: Nanoseconds, sink: &mut impl PacketSink) {
        self.transmit_on_slow_path(now, sink);
    }

    /// [`Host::transmit`] without inlining, so that there is one copy of its code.
    #[inline(never)]
    fn transmit_on_slow_path(&mut self, now: Nanoseconds, sink: &mut dyn PacketSink) {
        self.transmit(now, sink);
        let next_ns = self.next_time();
        self.earliest_ns = if self.fast_flows.is_empty() { next_ns } else { self.earliest_ns.min(next_ns) };
    }
}

mod kernels;
#[cfg(test)]
mod tests;

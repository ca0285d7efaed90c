//! The short way through a host: from a packet that a connection predicted to what it answers.

use pepscope_path::Nanoseconds;

use super::Host;
use crate::outlet::Outlet;
use crate::packet::Packet;
use crate::segment::Segment;

/// The flow that was answered on the short way last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answering {
    flow: u32,
    place: usize,
}

impl Answering {
    /// No flow has such a number.
    pub(super) const NONE: Self = Self { flow: u32::MAX, place: usize::MAX };

    pub(super) fn is_none(self) -> bool {
        self.place == usize::MAX
    }
}

impl Host {
    /// [`Host::handle_packet`] and then [`Host::transmit`], with a short cut where a connection takes and answers what it
    /// predicted.
    ///
    /// After it, [`Host::poll_timeout`] may not be called before [`Host::settle_times`].
    #[inline(always)]
    pub fn answer(&mut self, now: Nanoseconds, packet: &Packet, outlet: &mut impl Outlet) {
        let is_answered = match packet {
            Packet::Tcp(segment) if segment.payload_bytes > 0 => self.answer_data(now, segment, outlet),
            Packet::Tcp(segment) => self.answer_acknowledgement(now, segment, outlet),
            _ => false,
        };
        if !is_answered {
            self.answer_anyhow(now, packet, outlet);
        }
    }

    #[inline(never)]
    fn answer_anyhow(&mut self, now: Nanoseconds, packet: &Packet, outlet: &mut impl Outlet) {
        match packet {
            Packet::Tcp(segment) if segment.flow == self.answering.flow => self.answer_surprise(now, segment, outlet),
            _ => {
                self.handle_packet(now, packet);
                self.transmit_slowly(now, outlet);
            }
        }
    }

    /// The same for the flow that is being answered and a segment that is not as predicted, which mostly changes nothing
    /// for the application.
    fn answer_surprise(&mut self, now: Nanoseconds, segment: &Segment, outlet: &mut impl Outlet) {
        let place = self.answering.place;
        let flow = &mut self.flows[place];
        if flow.connection.handle_surprise(now, segment) && flow.application.rests(now) {
            while let Some(segment) = flow.connection.poll_transmit(now) {
                outlet.send(Packet::Tcp(segment));
            }
            self.earliest_ns = self.earliest_ns.min(flow.connection.poll_timeout());
        } else {
            self.proceed(now, place);
            self.transmit_slowly(now, outlet);
        }
    }

    /// When [`Host::handle_timeout`] wants to be called next, or earlier.
    #[inline(always)]
    #[must_use]
    pub fn earliest_timeout(&self) -> Nanoseconds {
        self.earliest_ns
    }

    /// Sets right what [`Host::answer`] left for later.
    #[inline(always)]
    pub fn settle_times(&mut self) {
        if let Some(flow) = self.flows.get(self.answering.place) {
            self.times.set(self.answering.place, flow.next_time());
        }
        self.answering = Answering::NONE;
        self.earliest_ns = self.times.earliest().min(self.speaker_times.earliest());
    }

    /// The place of a flow that is answered on the short way. Until the times are settled, its time may be too early, and
    /// nothing waits to be sent.
    #[inline(always)]
    fn place_of(&mut self, flow: u32) -> Option<usize> {
        if self.answering.flow == flow {
            return Some(self.answering.place);
        }
        self.begin_answering(flow)
    }

    #[inline(never)]
    fn begin_answering(&mut self, flow: u32) -> Option<usize> {
        if !self.leaving.is_empty() || !self.ready.is_empty() {
            return None;
        }
        let place = self.places.get(flow).copied()?;
        self.settle_times();
        self.answering = Answering { flow, place };
        Some(place)
    }

    #[inline(always)]
    fn answer_data(&mut self, now: Nanoseconds, segment: &Segment, outlet: &mut impl Outlet) -> bool {
        let Some(place) = self.place_of(segment.flow) else { return false };
        let Some(flow) = self.flows.get_mut(place).filter(|flow| flow.application.only_reads()) else { return false };
        let Some(run) = flow.connection.accept_data(now, segment) else { return false };
        flow.application.take_run(now, run);
        let connection = &mut flow.connection;
        if connection.may_send_data() {
            self.transmit_predicted(now, place, false, outlet);
        } else if connection.acknowledge_predicted(now, outlet) {
            self.earliest_ns = self.earliest_ns.min(connection.acknowledgement_timeout());
        } else {
            self.transmit_flow(now, place, outlet);
        }
        true
    }

    #[inline(always)]
    fn answer_acknowledgement(&mut self, now: Nanoseconds, segment: &Segment, outlet: &mut impl Outlet) -> bool {
        let Some(place) = self.place_of(segment.flow) else { return false };
        let Some(flow) = self.flows.get_mut(place) else { return false };
        let Some(writable) = flow.connection.accept_acknowledgement(now, segment) else { return false };
        if writable && flow.application.write_on(now, &mut flow.connection) {
            self.transmit_predicted(now, place, true, outlet);
        } else {
            self.take_turn(now, place, writable);
            self.transmit_slowly(now, outlet);
        }
        true
    }

    #[inline(always)]
    fn transmit_predicted(&mut self, now: Nanoseconds, place: usize, is_orderly: bool, outlet: &mut impl Outlet) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        if flow.connection.transmit_predicted(now, is_orderly, outlet) {
            self.earliest_ns = self.earliest_ns.min(flow.connection.predicted_timeout());
        } else {
            self.transmit_flow(now, place, outlet);
        }
    }

    #[inline(never)]
    fn transmit_flow(&mut self, now: Nanoseconds, place: usize, outlet: &mut dyn Outlet) {
        self.flows[place].is_ready = true;
        self.ready.push_back(place);
        self.transmit_slowly(now, outlet);
    }

    /// Lets the application act on an ACK.
    #[inline(never)]
    fn take_turn(&mut self, now: Nanoseconds, place: usize, has_room: bool) {
        let flow = &mut self.flows[place];
        if has_room {
            flow.application.find_room();
        }
        let was_open = flow.is_open();
        flow.application.advance(now, &mut flow.connection);
        self.finish_turn(now, place, was_open);
    }

    /// [`Host::transmit`] for what is rare, with one copy of its code however often it is called.
    #[inline(never)]
    fn transmit_slowly(&mut self, now: Nanoseconds, outlet: &mut dyn Outlet) {
        self.transmit(now, outlet);
        self.settle_times();
    }
}

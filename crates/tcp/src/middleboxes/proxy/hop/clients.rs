//! Which clients a proxy serves, and over which connection with the server.

use pepscope_path::{Direction, Nanoseconds};

use super::{AdmissionCounts, Decision, Leg, Packet, Proxy, ReuseSettings, Segment};
use crate::connection::Connection;

impl Proxy {
    /// Whether it limits the connections of clients, or lets them share those with servers.
    #[must_use]
    pub fn tells_clients_apart(&self) -> bool {
        self.settings.machine.limit.is_some() || self.settings.machine.reuse.is_some()
    }

    /// What became of the connections of clients.
    #[must_use]
    pub fn admissions(&self) -> AdmissionCounts {
        self.admission.counts
    }

    /// Answers the SYN of a connection that is not served.
    pub(super) fn turn_away(&mut self, now: Nanoseconds, decision: Decision, direction: Direction, syn: &Segment) {
        if decision == Decision::Bypass {
            if let Err(place) = self.settings.bypassed_flows.binary_search(&syn.flow) {
                self.settings.bypassed_flows.insert(place, syn.flow);
            }
        }
        if decision == Decision::Refuse {
            let settings = if direction == Direction::Up { self.settings.mobile_leg } else { self.settings.server_leg };
            let settings = self.drawn(settings, syn);
            let mut closed = Connection::client(settings, syn.flow, syn.user); // a closed port
            closed.handle_segment(now, syn);
            let reset = closed.poll_transmit(now);
            self.passing.extend(reset.map(|reset| (direction.opposite(), Packet::Tcp(reset))));
        }
    }

    /// Counts a relay whose client has gone.
    pub(super) fn note_end(&mut self, place: usize) {
        let relay = &mut self.relays[place];
        if relay.is_idle() {
            let flow = relay.leg(relay.request).flow();
            let server = self.settings.machine.reuse.as_ref().and_then(|reuse| reuse.server_of(flow));
            if let Some(server) = server {
                self.idle_legs.keep(server, place);
            }
        }
        if relay.is_served && !relay.has_ended && relay.is_done() {
            relay.has_ended = true;
            self.admission.end();
        }
    }

    /// Serves connections that wait, as far as others have ended.
    pub(super) fn serve_waiting(&mut self, now: Nanoseconds) {
        while let Some(place) = self.admission.next() {
            self.relays[place].is_served = true;
            self.advance(now, place);
        }
    }

    /// Gives a relay the connection with the server that it asks for: one that another client left, or a new one.
    pub(super) fn find_leg(&mut self, now: Nanoseconds, place: usize) {
        let flow = self.relays[place].leg(self.relays[place].request).flow();
        let server = self.settings.machine.reuse.as_ref().and_then(|reuse: &ReuseSettings| reuse.server_of(flow));
        let relays = &self.relays;
        let other = server.and_then(|server| self.idle_legs.take(server, |other| relays[other].is_idle()));
        let Some(other) = other else {
            self.relays[place].open_own_leg(now);
            return;
        };
        let unopened = Connection::client(self.settings.server_leg, flow, 0);
        let leg = self.relays[other].release_far_leg(Leg::new(unopened));
        let kept_flow = leg.connection.flow();
        self.relays[place].adopt_far_leg(now, leg);
        match self.adopters.get_mut(kept_flow) {
            Some(adopter) => *adopter = place,
            None => {
                self.adopters.get_or_make(kept_flow, || place);
            }
        }
        self.admission.counts.reused += 1;
        // The place that gave its connection away has other things to wait for now.
        if !self.is_ready[other] {
            self.is_ready[other] = true;
            self.ready.push_back(other);
        }
    }
}

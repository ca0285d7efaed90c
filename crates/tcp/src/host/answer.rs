//! The short way through a host: from a packet that a connection predicted to what it answers.

use pepscope_path::Nanoseconds;

use super::Host;
use crate::connection::Taken;
use crate::outlet::Outlet;
use crate::packet::Packet;

impl Host {
    /// [`Host::handle_packet`] and then [`Host::transmit`], with a short cut where a connection takes and answers what it
    /// predicted.
    #[inline(always)]
    pub fn answer(&mut self, now: Nanoseconds, packet: &Packet, outlet: &mut impl Outlet) {
        if !self.answer_predicted(now, packet, outlet) {
            self.handle_packet(now, packet);
            self.transmit_slowly(now, outlet);
        }
    }

    #[inline(always)]
    fn answer_predicted(&mut self, now: Nanoseconds, packet: &Packet, outlet: &mut impl Outlet) -> bool {
        let Packet::Tcp(segment) = packet else { return false };
        if !self.leaving.is_empty() || !self.ready.is_empty() {
            return false;
        }
        let Some(place) = self.places.get(segment.flow).copied() else { return false };
        let Some(flow) = self.flows.get_mut(place) else { return false };
        match flow.connection.accept(now, segment, flow.application.only_reads()) {
            Taken::Not => return false,
            Taken::Data(run) => flow.application.take_run(now, run),
            Taken::Acknowledgement { writable } => {
                if !writable || !flow.application.write_on(now, &mut flow.connection) {
                    self.take_turn(now, place, writable);
                    self.transmit_slowly(now, outlet);
                    return true;
                }
            }
        }
        if !flow.connection.transmit_predicted(now, outlet) {
            flow.is_ready = true;
            self.ready.push_back(place);
            self.transmit_slowly(now, outlet);
            return true;
        }
        self.times.set(place, flow.connection.predicted_timeout().min(flow.application_ns).min(flow.connect_ns));
        true
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
    }
}

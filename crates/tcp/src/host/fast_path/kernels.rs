//! The fast path through a machine that takes time: one packet that its kernel has got, or one program that acts, to the
//! packets that leave it.
//!
//! What a machine does until the next packet can arrive depends on nothing outside, and what leaves it matters to nothing
//! outside before it arrives there. So a packet is handed over with the time at which it leaves, instead of by an event at
//! that time, and a packet that arrives is served with the time at which the kernel has it.

use pepscope_path::Nanoseconds;

use crate::host::identifications::Identifications;
use crate::host::{Host, Processing};
use crate::packets::packet::Packet;
use crate::packets::packet_sink::PacketSink;
use crate::packets::segment::Segment;
use crate::settings::Stack;

impl Host {
    /// Does what [`Host::handle_timeout`] and [`Host::transmit`] do.
    #[inline]
    pub fn wake(&mut self, now: Nanoseconds, sink: &mut impl PacketSink) {
        if !self.serve_predicted(now, sink) {
            self.wake_on_slow_path(now, sink);
        }
        self.hand_over_leaving(now, sink);
        self.earliest_ns = self.next_time();
    }

    /// Takes a packet that arrives at a machine that takes time. If its kernel has it before `undisturbed_until`, up to
    /// which no other packet arrives, what the kernel then does is done, too, if nothing else is due before; returns
    /// whether it was.
    #[inline]
    pub fn receive(
        &mut self,
        now: Nanoseconds,
        packet: &Packet,
        undisturbed_until: Nanoseconds,
        sink: &mut impl PacketSink,
    ) -> bool {
        let is_out_of_order = self.is_out_of_order(packet);
        let Some(processing) = &mut self.processing else { return false };
        let received_ns = processing.receive(now, packet, is_out_of_order);
        let is_next = received_ns < undisturbed_until && received_ns < self.earliest_ns;
        let is_served = is_next && self.serve_at_once(received_ns, packet, sink);
        if is_served {
            self.hand_over_leaving(received_ns, sink);
        } else if let Some(processing) = &mut self.processing {
            processing.arriving.push(received_ns, packet);
        }
        self.earliest_ns = self.next_time();
        is_served
    }

    #[inline(never)]
    fn wake_on_slow_path(&mut self, now: Nanoseconds, sink: &mut dyn PacketSink) {
        self.handle_timeout(now);
        self.transmit(now, sink);
    }

    /// What leaves at `now`, and what `sink` takes of what leaves later.
    #[inline(always)]
    fn hand_over_leaving(&mut self, now: Nanoseconds, sink: &mut impl PacketSink) {
        let Some(processing) = &mut self.processing else { return };
        while let Some((leaves_ns, packet)) = processing.leaving.first() {
            if !sink.send_at(now, leaves_ns, packet) {
                break;
            }
            processing.leaving.drop_first();
        }
    }

    /// Does what the kernel does with a predicted packet that it has at `now`, where nothing else is due by then; `false`
    /// and nothing with any other.
    #[inline(always)]
    fn serve_at_once(&mut self, now: Nanoseconds, packet: &Packet, sink: &mut impl PacketSink) -> bool {
        let Packet::Tcp(segment) = packet else { return false };
        if !self.leaving.is_empty() || !self.ready.is_empty() || self.attribution.is_used() {
            return false;
        }
        let Some(place) = self.places.get(segment.flow).copied() else { return false };
        let Some(processing) = &mut self.processing else { return false };
        let flow = &mut self.flows[place];
        if flow.is_dormant || !flow.connection.accept_as_kernel(now, segment) {
            return false;
        }
        // It does not act by now, or that would be due.
        flow.note_news(now, |news| processing.waking_time(news));
        self.transmit_alone(now, place, sink);
        true
    }

    /// Does what is due at `now` if that is one predicted packet for a connection, or one program, or neither; `false` where
    /// the general code has to go on.
    #[inline(always)]
    fn serve_predicted(&mut self, now: Nanoseconds, sink: &mut impl PacketSink) -> bool {
        let others_ns = self.speaker_times.earliest().min(self.datagram_times.earliest());
        if others_ns <= now || !self.leaving.is_empty() || !self.ready.is_empty() || self.attribution.is_used() {
            return false;
        }
        let Some(processing) = &mut self.processing else { return false };
        let is_flow_due = self.times.earliest() <= now;
        let arrived = processing.arriving.first().filter(|(received_ns, _)| *received_ns <= now);
        let place = match (arrived, is_flow_due) {
            (Some((_, Packet::Tcp(segment))), false) => {
                let Some(place) = self.places.get(segment.flow).copied() else { return false };
                let flow = &mut self.flows[place];
                if flow.is_dormant || !flow.connection.accept_as_kernel(now, segment) {
                    return false;
                }
                processing.arriving.drop_first();
                if processing.arriving.first_ns() <= now {
                    // The next one comes before the answers leave.
                    self.proceed(now, place);
                    return false;
                }
                place
            }
            (Some(_), _) => return false,
            (None, true) => {
                let Some(place) = self.take_due_program(now) else { return false };
                place
            }
            (None, false) => return true,
        };
        let flow = &mut self.flows[place];
        if flow.is_only_to_read(now) {
            flow.read(now);
        } else {
            self.notify_program(now, place);
            if self.times.earliest() <= now {
                self.make_ready(place);
                return false;
            }
            if !self.is_next_alone(place) {
                self.transmit_on_kernels_slow_path(now, place);
                return true;
            }
        }
        self.transmit_alone(now, place, sink);
        true
    }

    /// The place of the flow whose program is due at `now`, if nothing else of any flow is.
    #[inline(always)]
    fn take_due_program(&mut self, now: Nanoseconds) -> Option<usize> {
        let place = self.times.due(now)?;
        let flow = &self.flows[place];
        if flow.connect_ns <= now || flow.connection.poll_timeout() <= now {
            return None;
        }
        let due_ns = self.times.earliest();
        self.times.set(place, Nanoseconds::MAX);
        if self.times.earliest() <= now {
            self.times.set(place, due_ns);
            return None;
        }
        Some(place)
    }

    /// Has the program of a flow act if it is time, or wake up later if there is news.
    #[inline(always)]
    fn notify_program(&mut self, now: Nanoseconds, place: usize) {
        let Some(processing) = &mut self.processing else { return };
        if self.flows[place].wakes(now, |news| processing.waking_time(news)) {
            self.act(now, place);
        }
    }

    /// The program of a flow takes its events and acts.
    #[inline(never)]
    fn act(&mut self, now: Nanoseconds, place: usize) {
        let flow = &mut self.flows[place];
        let was_open = flow.is_open();
        flow.take_events(now);
        flow.application.advance(now, &mut flow.connection);
        self.finish_advance(now, place, was_open);
    }

    /// Whether nothing but what the flow at `place` has waits to be sent. It need not wait for its turn then.
    #[inline(always)]
    fn is_next_alone(&mut self, place: usize) -> bool {
        let flow = &mut self.flows[place];
        // A flow is in the queue once.
        let is_alone = self.ready.len() == usize::from(flow.is_ready) && self.leaving.is_empty();
        if is_alone {
            flow.is_ready = false;
            self.ready.clear();
        }
        is_alone
    }

    /// Sends what the flow at `place` has to send, where nothing else waits to be sent.
    #[inline(always)]
    fn transmit_alone(&mut self, now: Nanoseconds, place: usize, sink: &mut impl PacketSink) {
        let flow = &mut self.flows[place];
        let Some(processing) = &mut self.processing else { return };
        let stack = flow.connection.settings().stack;
        let mut leaving = Leaving { now, stack, processing, identifications: &mut self.identifications, sink };
        if flow.connection.transmit_as_kernel(now, &mut leaving) {
            self.times.set(place, flow.established_time());
        } else {
            self.transmit_on_kernels_slow_path(now, place);
        }
    }

    fn make_ready(&mut self, place: usize) {
        if !std::mem::replace(&mut self.flows[place].is_ready, true) {
            self.ready.push_back(place);
        }
    }

    #[inline(never)]
    fn transmit_on_kernels_slow_path(&mut self, now: Nanoseconds, place: usize) {
        self.make_ready(place);
        while let Some(packet) = self.poll_kernel(now) {
            if let Some(processing) = &mut self.processing {
                processing.push_leaving(now, &packet);
            }
        }
    }
}

/// What a connection sends, on its way to the network.
struct Leaving<'a, S> {
    now: Nanoseconds,
    stack: Stack,
    processing: &'a mut Processing,
    identifications: &'a mut Identifications,
    sink: &'a mut S,
}

impl<S: PacketSink> Leaving<'_, S> {
    #[inline(always)]
    fn push(&mut self, packet: &Packet) {
        let leaves_ns = self.processing.send(self.now, packet);
        let is_first = self.processing.leaving.first().is_none();
        if !is_first || !self.sink.send_at(self.now, leaves_ns, packet) {
            self.processing.leaving.push(leaves_ns, packet);
        }
    }

    #[inline(never)]
    fn push_assigned(&mut self, segment: Segment) {
        let segment = self.identifications.assign(self.stack, segment);
        self.push(&Packet::Tcp(segment));
    }
}

impl<S: PacketSink> PacketSink for Leaving<'_, S> {
    #[inline(always)]
    fn send(&mut self, packet: Packet) {
        self.send_stamped(0, &packet);
    }

    #[inline(always)]
    fn send_at(&mut self, _now: Nanoseconds, _at: Nanoseconds, packet: &Packet) -> bool {
        self.send_stamped(0, packet);
        true
    }

    #[inline(always)]
    fn send_stamped(&mut self, _bytes: u32, packet: &Packet) {
        match packet {
            Packet::Tcp(segment) if self.stack == Stack::Windows => self.push_assigned(*segment),
            _ => self.push(packet),
        }
    }
}

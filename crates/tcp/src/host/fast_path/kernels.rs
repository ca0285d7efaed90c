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
        let is_next = received_ns < undisturbed_until && received_ns < self.next_time();
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
        let flow = &mut self.flows[place];
        if flow.is_dormant || !flow.connection.accept_as_kernel(now, segment) {
            return false;
        }
        self.notify_program(now, place);
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
        let flows_ns = self.times.earliest();
        let arrived = processing.arriving.first().filter(|(received_ns, _)| *received_ns <= now);
        match (arrived, flows_ns <= now) {
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
                self.notify_program(now, place);
                self.transmit_as_kernel(now, place, sink)
            }
            (Some(_), _) => false,
            (None, true) => self.serve_program(now, sink),
            (None, false) => true,
        }
    }

    /// Has the program act that is due, if nothing else is.
    #[inline(always)]
    fn serve_program(&mut self, now: Nanoseconds, sink: &mut impl PacketSink) -> bool {
        let Some(place) = self.times.due(now) else { return true };
        let flow = &mut self.flows[place];
        if flow.connect_ns <= now || flow.connection.poll_timeout() <= now {
            return false;
        }
        let due_ns = flow.next_time();
        self.times.set(place, Nanoseconds::MAX);
        if self.times.earliest() <= now {
            self.times.set(place, due_ns);
            return false;
        }
        self.notify_program(now, place);
        self.transmit_as_kernel(now, place, sink)
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
    #[inline(always)]
    fn act(&mut self, now: Nanoseconds, place: usize) {
        let flow = &mut self.flows[place];
        if flow.application.only_reads() && flow.connection.has_only_data_events() {
            flow.take_events(now);
            while let Some(run) = flow.connection.read(u64::MAX) {
                flow.application.take_run(now, run);
            }
        } else {
            self.act_on_slow_path(now, place);
        }
    }

    #[inline(never)]
    fn act_on_slow_path(&mut self, now: Nanoseconds, place: usize) {
        let flow = &mut self.flows[place];
        let was_open = flow.is_open();
        flow.take_events(now);
        flow.application.advance(now, &mut flow.connection);
        self.finish_advance(now, place, was_open);
    }

    /// Sends what the flow at `place` has to send, and what others have; `false` where other flows act before.
    #[inline(always)]
    fn transmit_as_kernel(&mut self, now: Nanoseconds, place: usize, sink: &mut impl PacketSink) -> bool {
        if self.times.earliest() <= now {
            self.make_ready(place);
            return false;
        }
        self.transmit_alone(now, place, sink);
        true
    }

    #[inline(always)]
    fn transmit_alone(&mut self, now: Nanoseconds, place: usize, sink: &mut impl PacketSink) {
        // A flow is in the queue once.
        let others = self.ready.len() - usize::from(self.flows[place].is_ready);
        let flow = &mut self.flows[place];
        let Some(processing) = &mut self.processing else { return };
        let stack = flow.connection.settings().stack;
        let mut leaving = Leaving { now, stack, processing, identifications: &mut self.identifications, sink };
        if others == 0 && self.leaving.is_empty() && flow.connection.transmit_as_kernel(now, &mut leaving) {
            if std::mem::take(&mut flow.is_ready) {
                self.ready.pop_front();
            }
            self.times.set(place, flow.next_time());
        } else {
            self.make_ready(place);
            self.transmit_on_kernels_slow_path(now);
        }
    }

    fn make_ready(&mut self, place: usize) {
        if !std::mem::replace(&mut self.flows[place].is_ready, true) {
            self.ready.push_back(place);
        }
    }

    #[inline(never)]
    fn transmit_on_kernels_slow_path(&mut self, now: Nanoseconds) {
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
            Packet::Tcp(segment) if self.stack == Stack::Windows => {
                let segment = self.identifications.assign(self.stack, *segment);
                self.push(&Packet::Tcp(segment));
            }
            _ => self.push(packet),
        }
    }
}

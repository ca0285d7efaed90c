//! The proxy as a hop: which flows it takes, and when each of them has something to do.

mod clients;

use std::collections::VecDeque;

use pepscope_path::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NextTimes, QueueReport, Random};

use super::admission::{Admission, AdmissionCounts, Decision};
use super::gate::{AdaptationSettings, Gate};
use super::leg::Leg;
use super::machine::{Machine, MachineSettings};
use super::pipe::Pipe;
use super::relay::{AbortPropagation, Manners, Opening, Relay, RelayResult};
use super::reuse::{IdleLegs, ReuseSettings};
use super::store::{Catalogue, StoreSettings};
use crate::connection::Connection;
use crate::control::UNLIMITED;
use crate::flow_table::FlowTable;
use crate::packets::packet::Packet;
use crate::packets::segment::{Flags, Segment};
use crate::settings::{Settings, TimestampSource};

/// What a proxy does with the bytes between its legs.
#[derive(Clone, Debug, PartialEq)]
pub enum Forwarding {
    /// Split-TCP (RFC 3135, section 2.4): both legs at once. At most `buffer_bytes` a direction wait or are sent and
    /// not acknowledged; once they are full, the sender's own leg fills its receive buffer and shuts the window.
    Relay { buffer_bytes: u64 },
    /// A TCP proxy: objects are taken whole, then forwarded.
    Store(StoreSettings),
    /// Split-TCP whose leg to the mobile sends what the control law allows (seed 003). The leg's own congestion control
    /// is off, and the server is held back by the window that it is offered once `buffer_bytes` wait.
    Adapt { buffer_bytes: u64, adaptation: AdaptationSettings },
}

/// A proxy between two paths.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySettings {
    /// Of the connection with the server, and of the one with the mobile. Initial sequence numbers, timestamp offsets
    /// and IP identifications are drawn a flow.
    pub server_leg: Settings,
    pub mobile_leg: Settings,
    pub forwarding: Forwarding,
    pub opening: Opening,
    pub aborts: AbortPropagation,
    /// Flows that it leaves alone, in order.
    pub bypassed_flows: Vec<u32>,
    pub machine: MachineSettings,
}

/// The hop. It does not change addresses; taps can translate them.
#[derive(Debug)]
pub struct Proxy {
    settings: ProxySettings,
    random: Random,
    /// Of legs whose timestamps the machine counts.
    timestamp_offset: u32,
    relays: Vec<Relay>,
    places: FlowTable<usize>,
    times: NextTimes,
    ready: VecDeque<usize>,
    is_ready: Vec<bool>,
    catalogue: Option<Catalogue>,
    /// The gates by user, if the proxy adapts the window.
    gates: FlowTable<Gate>,
    /// The places of each user's relays, the one whose turn it is first.
    turns: FlowTable<VecDeque<usize>>,
    passing: VecDeque<(Direction, Packet)>,
    machine: Machine,
    admission: Admission,
    idle_legs: IdleLegs,
    /// The places of relays that took over the server's connection of another flow, by that flow.
    adopters: FlowTable<usize>,
    counts: [HopCounts; 2],
}

impl Proxy {
    /// A proxy called `name` in the run with `seed`.
    #[must_use]
    pub fn new(mut settings: ProxySettings, seed: u64, name: &str) -> Self {
        let catalogue = match &settings.forwarding {
            Forwarding::Store(store) => Some(Catalogue::new(store)),
            Forwarding::Relay { .. } => None,
            Forwarding::Adapt { .. } => {
                settings.mobile_leg.control = UNLIMITED;
                None
            }
        };
        settings.bypassed_flows.sort_unstable();
        Self {
            machine: Machine::new(&settings.machine, seed, name),
            admission: Admission::new(settings.machine.limit),
            idle_legs: IdleLegs::default(),
            adopters: FlowTable::default(),
            settings,
            random: Random::new(seed, name),
            timestamp_offset: Random::new(seed, &format!("{name}: timestamp clock")).bits() as u32,
            relays: Vec::new(),
            places: FlowTable::default(),
            times: NextTimes::default(),
            ready: VecDeque::new(),
            is_ready: Vec::new(),
            catalogue,
            gates: FlowTable::default(),
            turns: FlowTable::default(),
            passing: VecDeque::new(),
            counts: [HopCounts::default(); 2],
        }
    }

    /// What became of each flow, in the order in which they were opened.
    pub fn relays(&self) -> impl Iterator<Item = RelayResult> + '_ {
        self.relays.iter().map(Relay::result)
    }

    /// A packet that the kernel has.
    fn take_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        match &packet {
            Packet::Tcp(segment) if self.settings.bypassed_flows.binary_search(&segment.flow).is_err() => {
                self.handle_segment(now, direction, segment);
            }
            Packet::Report { user, report } if matches!(self.settings.forwarding, Forwarding::Adapt { .. }) => {
                self.handle_report(now, *user, report);
            }
            _ => self.passing.push_back((direction, packet)),
        }
    }

    fn handle_segment(&mut self, now: Nanoseconds, direction: Direction, segment: &Segment) {
        let Some(place) = self.place_of(now, direction, segment) else {
            if self.settings.bypassed_flows.binary_search(&segment.flow).is_ok() {
                self.passing.push_back((direction, Packet::Tcp(*segment)));
            } else {
                self.counts[direction.index()].lost_packets += 1;
            }
            return;
        };
        if self.is_ready[place] {
            // Segments that arrive at one time are answered one by one, as a host answers them.
            while let Some((side, answer)) = self.relays[place].poll_transmit(now) {
                self.passing.push_back((side, Packet::Tcp(answer)));
            }
        }
        self.relays[place].handle_segment(now, direction, segment);
        self.advance(now, place);
        self.serve_waiting(now);
    }

    /// The relay of a segment's flow; a SYN makes one.
    fn place_of(&mut self, now: Nanoseconds, direction: Direction, segment: &Segment) -> Option<usize> {
        let adopter = self.adopters.get(segment.flow).filter(|place| self.relays[**place].request != direction);
        if let Some(place) = adopter.or_else(|| self.places.get(segment.flow)) {
            return Some(*place);
        }
        if !segment.flags.has(Flags::SYN) || segment.flags.has(Flags::ACK) {
            return None;
        }
        let decision = self.admission.decide();
        match decision {
            Decision::Serve | Decision::Wait => {}
            Decision::Refuse | Decision::Drop | Decision::Bypass => {
                self.turn_away(now, decision, direction, segment);
                return None;
            }
        }
        let place = self.relays.len();
        self.places.get_or_make(segment.flow, || place)?;
        let mut relay = self.new_relay(direction, segment);
        relay.is_served = decision == Decision::Serve;
        if relay.is_served {
            self.admission.serve();
        } else {
            self.admission.wait(place);
        }
        self.relays.push(relay);
        self.is_ready.push(false);
        self.times.reserve(self.relays.len());
        if matches!(self.settings.forwarding, Forwarding::Adapt { .. }) {
            if let Some(turns) = self.turns.get_or_make(u32::from(segment.user), VecDeque::new) {
                turns.push_back(place);
            }
        }
        Some(place)
    }

    fn new_relay(&mut self, request: Direction, syn: &Segment) -> Relay {
        let server_leg = self.drawn(self.settings.server_leg, syn);
        let mobile_leg = self.drawn(self.settings.mobile_leg, syn);
        let (near, far) = if request == Direction::Up { (mobile_leg, server_leg) } else { (server_leg, mobile_leg) };
        let near = Connection::server(near, syn.flow, syn.user);
        let far = Connection::client(far, syn.flow, syn.user);
        let machine = &self.settings.machine;
        let reuse = machine.reuse.as_ref().filter(|reuse| reuse.server_of(syn.flow).is_some());
        let new_pipe = || {
            let pipe = match &self.settings.forwarding {
                Forwarding::Relay { buffer_bytes } | Forwarding::Adapt { buffer_bytes, .. } => {
                    Pipe::relaying(*buffer_bytes)
                }
                Forwarding::Store(store) => Pipe::storing(store.storage_bytes),
            };
            let pipe = pipe.read_by(machine);
            match reuse {
                Some(reuse) => pipe.counting(reuse),
                None => pipe,
            }
        };
        let manners = Manners {
            opening: self.settings.opening,
            aborts: self.settings.aborts,
            keeps_server_ns: reuse.map(|reuse| reuse.idle_ns),
        };
        Relay::new(manners, request, near, far, [new_pipe(), new_pipe()])
    }

    /// Settings of a leg with the numbers that differ from flow to flow.
    fn drawn(&mut self, settings: Settings, syn: &Segment) -> Settings {
        let numbers = self.random.bits();
        Settings {
            initial_sequence_number: numbers as u32,
            timestamp_offset: match settings.timestamp_source {
                TimestampSource::Connection => (numbers >> 32) as u32,
                TimestampSource::Machine => self.timestamp_offset,
            },
            ip_identification: self.random.bits() as u16,
            version_6: syn.version_6,
            ..settings
        }
    }

    fn handle_report(&mut self, now: Nanoseconds, user: u16, report: &QueueReport) {
        let Forwarding::Adapt { adaptation, .. } = self.settings.forwarding else {
            return;
        };
        if let Some(gate) = self.gates.get_or_make(u32::from(user), || Gate::new(adaptation)) {
            gate.handle_report(now, report);
        }
        self.take_turns(now, user);
    }

    /// Distributes the quota among a user's flows, beginning with another one each time.
    fn take_turns(&mut self, now: Nanoseconds, user: u16) {
        let Some(turns) = self.turns.get_mut(u32::from(user)) else {
            return;
        };
        turns.rotate_left(usize::from(turns.len() > 1));
        for turn in 0..turns.len() {
            let place = self.turns.get(u32::from(user)).and_then(|turns| turns.get(turn)).copied();
            if let Some(place) = place {
                self.advance(now, place);
            }
        }
    }

    /// Has the program do what it may do now for a relay, and its connections send.
    fn advance(&mut self, now: Nanoseconds, place: usize) {
        if self.acts_now(now, place) {
            self.act(now, place);
            while !self.machine.delays_program() && self.relays[place].has_piece_to_read() {
                self.act(now, place);
            }
            self.acts_now(now, place); // when it acts again
        }
        self.note_end(place);
        if !self.is_ready[place] {
            self.is_ready[place] = true;
            self.ready.push_back(place);
        }
    }

    fn acts_now(&mut self, now: Nanoseconds, place: usize) -> bool {
        let relay = &mut self.relays[place];
        if !self.machine.delays_program() {
            return relay.is_served;
        }
        let gate = self.gates.get(u32::from(relay.leg(Direction::Up).user()));
        relay.wakes(now, self.catalogue.as_ref(), gate, |is_new| self.machine.waking_time(is_new))
    }

    /// One turn of the program.
    fn act(&mut self, now: Nanoseconds, place: usize) {
        self.turn(now, place);
        if self.relays[place].takes_leg_request() {
            self.find_leg(now, place);
            self.turn(now, place);
        }
    }

    fn turn(&mut self, now: Nanoseconds, place: usize) {
        let relay = &mut self.relays[place];
        let user = u32::from(relay.leg(Direction::Up).user());
        if let Forwarding::Adapt { adaptation, .. } = self.settings.forwarding {
            let gate = self.gates.get_or_make(user, || Gate::new(adaptation));
            relay.advance(now, &mut self.catalogue, gate);
        } else {
            relay.advance(now, &mut self.catalogue, None);
        }
    }

    fn poll_kernel(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        self.passing.pop_front().or_else(|| self.poll_relays(now))
    }

    fn next_time(&self, place: usize) -> Nanoseconds {
        let relay = &self.relays[place];
        let gate = self.gates.get(u32::from(relay.leg(Direction::Up).user()));
        relay.poll_timeout(self.catalogue.as_ref(), gate)
    }

    fn poll_relays(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        while let Some(place) = self.ready.front().copied() {
            if let Some((direction, segment)) = self.relays[place].poll_transmit(now) {
                return Some((direction, Packet::Tcp(segment)));
            }
            self.is_ready[place] = false;
            let time = self.next_time(place);
            self.times.set(place, time);
            self.ready.pop_front();
        }
        None
    }
}

impl Hop<Packet> for Proxy {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        let counts = &mut self.counts[direction.index()];
        counts.offered_packets += 1;
        counts.offered_bytes += u64::from(packet.length_bytes());
        if self.machine.delays_packets() {
            self.machine.push_arriving(now, direction, &packet);
        } else {
            self.take_packet(now, direction, packet);
        }
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        while let Some((direction, packet)) = self.machine.pop_arriving(now) {
            self.take_packet(now, direction, packet);
        }
        while let Some(place) = self.times.due(now) {
            self.relays[place].handle_timeout(now);
            self.times.set(place, pepscope_path::NEVER); // set anew once it has nothing more to send
            self.advance(now, place);
        }
        self.serve_waiting(now);
    }

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        let (direction, packet) = if self.machine.delays_packets() {
            while let Some((direction, packet)) = self.poll_kernel(now) {
                self.machine.push_leaving(now, direction, packet);
            }
            self.machine.pop_leaving(now)?
        } else {
            self.poll_kernel(now)?
        };
        let counts = &mut self.counts[direction.index()];
        counts.delivered_packets += 1;
        counts.delivered_bytes += u64::from(packet.length_bytes());
        Some((direction, packet))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.times.earliest().min(self.machine.next_time())
    }

    /// `offered` counts what entered and `delivered` what left in that direction: a proxy makes packets of its own, so
    /// they need not agree.
    fn counts(&self, direction: Direction) -> HopCounts {
        self.counts[direction.index()]
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        let held = |direction| self.relays.iter().map(|relay| relay.held_bytes(direction)).sum::<u64>() as f64;
        record("held_down_bytes", held(Direction::Down));
        record("held_up_bytes", held(Direction::Up));
        let mobile_legs = || self.relays.iter().map(|relay| relay.leg(Direction::Up));
        let server_legs = || self.relays.iter().map(|relay| relay.leg(Direction::Down));
        record(
            "mobile_leg_unacknowledged_bytes",
            mobile_legs().map(Connection::unacknowledged_bytes).sum::<u64>() as f64,
        );
        record("server_leg_receive_window_bytes", server_legs().map(Connection::receive_window).sum::<u64>() as f64);
        if matches!(self.settings.forwarding, Forwarding::Adapt { .. }) {
            let quotas = (0..=u32::from(u16::MAX)).map_while(|user| self.gates.get(user));
            record("quota_packets", quotas.map(Gate::quota_packets).sum());
        } else {
            record(
                "mobile_leg_congestion_window_bytes",
                mobile_legs().map(Connection::congestion_window).sum::<u64>() as f64,
            );
        }
    }
}

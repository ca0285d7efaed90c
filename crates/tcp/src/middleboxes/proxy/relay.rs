//! One flow through a proxy: two connections, and what happens between them.

mod keeping;
mod turns;

use pepscope_path::{Direction, Nanoseconds, NEVER};

use super::gate::Gate;
use super::leg::Leg;
use super::pipe::Pipe;
use super::store::{Catalogue, Released};
use crate::connection::Connection;
use crate::packets::segment::Segment;
use crate::state::Event;
use crate::statistics::Statistics;

/// When the proxy opens the connection that the client did not ask it for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Opening {
    /// Together with its own answer to the client's SYN.
    #[default]
    AtOnce,
    /// When the client's connection is established, as a program does that accepts it.
    AfterAccept,
    /// It connects before it answers the client, which it does once the far end has accepted.
    FarEndFirst,
    /// It connects with the first data to be forwarded.
    WithData,
}

/// What becomes of one leg when the other was aborted, reset or given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AbortPropagation {
    #[default]
    AtOnce,
    After(Nanoseconds),
    Never,
}

/// What one flow did at the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayResult {
    pub flow: u32,
    /// When the leg to the far end began to connect.
    pub far_leg_opened_ns: Option<Nanoseconds>,
    /// Bytes taken from the sender and given to the receiver, by [`Direction::index`].
    pub taken_bytes: [u64; 2],
    pub given_bytes: [u64; 2],
    pub most_held_bytes: [u64; 2],
    /// Requests answered without asking the far end.
    pub cache_hits: u32,
    /// The statistics of the connection with the server; `mobile_leg` has those of the one with the mobile.
    pub server_leg: Statistics,
    pub mobile_leg: Statistics,
}

/// How a relay behaves, the same for all flows of a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    pub opening: Opening,
    pub aborts: AbortPropagation,
    /// How long a connection with the server is kept for another client; `None` ends it with its own.
    pub keeps_server_ns: Option<Nanoseconds>,
}

/// A flow at the proxy. Legs and pipes are indexed by the direction of what they receive: what travels down arrives at
/// the leg towards the server, goes through the pipe of that direction and leaves by the leg towards the mobile.
#[derive(Debug)]
pub(crate) struct Relay {
    legs: [Leg; 2],
    pipes: [Pipe; 2],
    manners: Manners,
    /// The direction in which the client's SYN came.
    pub request: Direction,
    /// The client's SYN while the far end is asked first.
    held_syn: Option<Segment>,
    far_leg_opened_ns: Option<Nanoseconds>,
    /// Requests passed on whose answers have not come.
    unanswered: u32,
    cache_hits: u32,
    /// The program serves it, and does not only let it wait.
    pub is_served: bool,
    /// It no longer counts as served.
    pub has_ended: bool,
    /// When the program acts on what happened; [`NEVER`] where nothing did.
    wake_ns: Nanoseconds,
    /// When the connection with the server, which waits for another client, is closed; [`NEVER`] while it is in use.
    idle_until: Nanoseconds,
    /// It was not used for so long that it is closed.
    is_expired: bool,
    /// The far leg is wanted, and one that another client left would do.
    asks_for_leg: bool,
}

impl Relay {
    /// A relay for the flow that a client opens with a SYN in direction `request`.
    pub fn new(manners: Manners, request: Direction, near: Connection, far: Connection, pipes: [Pipe; 2]) -> Self {
        let (near, far) = (Leg::new(near), Leg::new(far));
        let legs = if request == Direction::Down { [near, far] } else { [far, near] };
        Self {
            legs,
            pipes,
            manners,
            request,
            held_syn: None,
            far_leg_opened_ns: None,
            unanswered: 0,
            cache_hits: 0,
            is_served: true,
            has_ended: false,
            wake_ns: NEVER,
            idle_until: NEVER,
            is_expired: false,
            asks_for_leg: false,
        }
    }

    /// Takes a segment that travels in `direction`.
    pub fn handle_segment(&mut self, now: Nanoseconds, direction: Direction, segment: &Segment) {
        let waits = self.manners.opening == Opening::FarEndFirst && !self.far_leg().is_connected;
        if direction == self.request && waits && !self.far_leg().is_over {
            self.held_syn = Some(*segment);
        } else {
            self.legs[direction.index()].connection.handle_segment(now, segment);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Nanoseconds) {
        for leg in &mut self.legs {
            leg.connection.handle_timeout(now);
            if leg.abort_at <= now {
                leg.abort(now);
            }
        }
        if self.idle_until <= now {
            self.idle_until = NEVER;
            self.is_expired = true;
        }
    }

    /// Moves everything on that can move in one turn of the program: at most one read from either leg.
    pub fn advance(&mut self, now: Nanoseconds, catalogue: &mut Option<Catalogue>, mut gate: Option<&mut Gate>) {
        for side in [Direction::Down, Direction::Up] {
            self.take_events(now, side);
        }
        if self.opens_now() {
            self.open_far_leg(now);
        }
        for direction in [self.request, self.request.opposite()] {
            self.fill(now, direction, catalogue);
            let gate = gate.as_deref_mut().filter(|_| direction == Direction::Down);
            self.drain(now, direction, gate);
        }
    }

    /// Whether the program connects to the far end now, whatever there is to forward.
    fn opens_now(&self) -> bool {
        let near = self.near_leg();
        match self.manners.opening {
            Opening::AtOnce => true,
            Opening::AfterAccept => near.is_connected && !near.is_over,
            Opening::FarEndFirst => self.held_syn.is_some(),
            Opening::WithData => false,
        }
    }

    fn take_events(&mut self, now: Nanoseconds, side: Direction) {
        while let Some(event) = self.legs[side.index()].connection.poll_event() {
            let leg = &mut self.legs[side.index()];
            match event {
                Event::Connected => {
                    leg.is_connected = true;
                    if let Some(syn) = self.held_syn.take_if(|_| side != self.request) {
                        self.legs[self.request.index()].connection.handle_segment(now, &syn);
                    }
                }
                Event::Readable | Event::Writable => {}
                Event::PeerFinished => leg.peer_finished = true,
                Event::Closed => leg.is_over = true,
                Event::Reset | Event::TimedOut => {
                    leg.is_over = true;
                    if !self.is_idle() {
                        self.propagate_abort(now, side.opposite());
                    }
                    self.idle_until = NEVER;
                }
            }
        }
    }

    fn propagate_abort(&mut self, now: Nanoseconds, side: Direction) {
        let leg = &mut self.legs[side.index()];
        if leg.is_over {
            return;
        }
        match self.manners.aborts {
            AbortPropagation::AtOnce => {
                leg.abort(now);
                self.pipes.iter_mut().for_each(Pipe::clear);
            }
            AbortPropagation::After(delay) => leg.abort_at = now.saturating_add(delay),
            AbortPropagation::Never => {}
        }
    }

    fn far_leg(&self) -> &Leg {
        &self.legs[self.request.opposite().index()]
    }

    fn near_leg(&self) -> &Leg {
        &self.legs[self.request.index()]
    }

    fn open_far_leg(&mut self, now: Nanoseconds) {
        if self.far_leg_opened_ns.is_none() {
            self.far_leg_opened_ns = Some(now);
            self.asks_for_leg = self.manners.keeps_server_ns.is_some();
            if !self.asks_for_leg {
                self.connect_far_leg(now);
            }
        }
    }

    fn connect_far_leg(&mut self, now: Nanoseconds) {
        self.legs[self.request.opposite().index()].connection.connect(now);
    }

    /// Takes what arrived into the pipe, and decides about what a store hands on.
    fn fill(&mut self, now: Nanoseconds, direction: Direction, catalogue: &mut Option<Catalogue>) {
        loop {
            let outstanding_bytes = self.legs[direction.opposite().index()].outstanding_bytes();
            let leg = &mut self.legs[direction.index()];
            let pipe = &mut self.pipes[direction.index()];
            pipe.take(now, &mut leg.connection, outstanding_bytes, catalogue.as_ref());
            let ended = leg.connection.readable() == 0 && (leg.peer_finished || leg.is_over);
            pipe.release_incomplete(now, ended, catalogue.as_ref());
            let mut decided = 0;
            while let Some(released) = self.pipes[direction.index()].next_released() {
                self.decide(direction, released, catalogue);
                decided += 1;
            }
            if decided == 0 {
                return;
            }
        }
    }

    fn decide(&mut self, direction: Direction, released: Released, catalogue: &mut Option<Catalogue>) {
        if let (Some(object), Some(catalogue)) = (released.completed, catalogue.as_mut()) {
            if direction == self.request {
                let answer = catalogue.answer(object.content).filter(|_| self.unanswered == 0);
                if let Some(answer) = answer {
                    self.cache_hits += 1;
                    self.pipes[direction.opposite().index()].add_object(&answer);
                    return;
                }
                self.unanswered += 1;
            } else {
                self.unanswered = self.unanswered.saturating_sub(1);
                catalogue.keep(object);
            }
        }
        self.pipes[direction.index()].add(released.run);
    }

    /// Gives what may leave to the other leg, and the end of the stream after it.
    fn drain(&mut self, now: Nanoseconds, direction: Direction, gate: Option<&mut Gate>) {
        let has_something = !self.pipes[direction.index()].is_empty();
        if direction == self.request && has_something && self.manners.opening == Opening::WithData {
            self.open_far_leg(now);
        }
        if self.asks_for_leg {
            return; // what comes in its place takes the bytes
        }
        let pipe = &mut self.pipes[direction.index()];
        let to = &mut self.legs[direction.opposite().index()].connection;
        pipe.give(now, to, gate);
        let is_drained = pipe.is_empty();
        let from = &self.legs[direction.index()];
        let never_opened = self.far_leg_opened_ns.is_none() && direction != self.request;
        let source_ended = from.peer_finished && from.connection.readable() == 0;
        let other_ended = never_opened && self.legs[self.request.index()].peer_finished;
        if is_drained && (source_ended || other_ended) {
            if direction == self.request && self.keeps_far_leg(now) {
                self.legs[self.request.index()].connection.close(now);
            } else {
                self.legs[direction.opposite().index()].connection.close(now);
            }
        }
    }

    /// The next segment that leaves at `now`, and the direction in which it goes.
    pub fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Segment)> {
        [Direction::Down, Direction::Up].into_iter().find_map(|side| {
            let segment = self.legs[side.index()].connection.poll_transmit(now)?;
            Some((side.opposite(), segment))
        })
    }

    /// Bytes held in `direction`.
    pub fn held_bytes(&self, direction: Direction) -> u64 {
        self.pipes[direction.index()].held_bytes()
    }

    /// The leg towards the server ([`Direction::Down`]) or towards the mobile ([`Direction::Up`]).
    pub fn leg(&self, side: Direction) -> &Connection {
        &self.legs[side.index()].connection
    }

    pub fn result(&self) -> RelayResult {
        let by_direction = |count: fn(&Pipe) -> u64| [count(&self.pipes[0]), count(&self.pipes[1])];
        RelayResult {
            flow: self.near_leg().connection.flow(),
            far_leg_opened_ns: self.far_leg_opened_ns,
            taken_bytes: by_direction(Pipe::taken_bytes),
            given_bytes: by_direction(Pipe::given_bytes),
            most_held_bytes: by_direction(Pipe::most_held_bytes),
            cache_hits: self.cache_hits,
            server_leg: *self.leg(Direction::Down).statistics(),
            mobile_leg: *self.leg(Direction::Up).statistics(),
        }
    }
}

//! One flow through a proxy: two connections, and what happens between them.

use pepscope_path::{Direction, Nanoseconds, NEVER};

use super::gate::Gate;
use super::pipe::Pipe;
use super::store::{Catalogue, Released};
use crate::connection::Connection;
use crate::segment::Segment;
use crate::state::Event;
use crate::statistics::Statistics;

/// When the proxy opens the connection that the client did not ask it for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Opening {
    /// Together with its own answer to the client's SYN.
    #[default]
    AtOnce,
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

#[derive(Debug)]
struct Leg {
    connection: Connection,
    is_connected: bool,
    peer_finished: bool,
    /// Closed, reset, given up or aborted.
    is_over: bool,
    abort_at: Nanoseconds,
}

impl Leg {
    fn new(connection: Connection) -> Self {
        Self { connection, is_connected: false, peer_finished: false, is_over: false, abort_at: NEVER }
    }

    fn abort(&mut self, now: Nanoseconds) {
        self.connection.abort(now);
        self.is_over = true;
        self.abort_at = NEVER;
    }
}

/// How a relay behaves, the same for all flows of a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    pub opening: Opening,
    pub aborts: AbortPropagation,
}

/// A flow at the proxy. Legs and pipes are indexed by the direction of what they receive: what travels down arrives at
/// the leg towards the server, goes through the pipe of that direction and leaves by the leg towards the mobile.
#[derive(Debug)]
pub(crate) struct Relay {
    legs: [Leg; 2],
    pipes: [Pipe; 2],
    manners: Manners,
    /// The direction in which the client's SYN came.
    request: Direction,
    /// The client's SYN while the far end is asked first.
    held_syn: Option<Segment>,
    far_leg_opened_ns: Option<Nanoseconds>,
    /// Requests passed on whose answers have not come.
    unanswered: u32,
    cache_hits: u32,
}

impl Relay {
    /// A relay for the flow that a client opens with a SYN in direction `request`.
    pub fn new(manners: Manners, request: Direction, near: Connection, far: Connection, pipes: [Pipe; 2]) -> Self {
        let (near, far) = (Leg::new(near), Leg::new(far));
        let legs = if request == Direction::Down { [near, far] } else { [far, near] };
        Self { legs, pipes, manners, request, held_syn: None, far_leg_opened_ns: None, unanswered: 0, cache_hits: 0 }
    }

    /// Takes a segment that travels in `direction`.
    pub fn handle_segment(&mut self, now: Nanoseconds, direction: Direction, segment: &Segment) {
        let waits = self.manners.opening == Opening::FarEndFirst && !self.far_leg().is_connected;
        if direction == self.request && waits && !self.far_leg().is_over {
            self.held_syn = Some(*segment);
            self.open_far_leg(now);
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
    }

    /// Moves everything on that can move.
    pub fn advance(&mut self, now: Nanoseconds, catalogue: &mut Option<Catalogue>, mut gate: Option<&mut Gate>) {
        for side in [Direction::Down, Direction::Up] {
            self.take_events(now, side);
        }
        if self.manners.opening == Opening::AtOnce {
            self.open_far_leg(now);
        }
        for direction in [self.request, self.request.opposite()] {
            self.fill(now, direction, catalogue);
            let gate = gate.as_deref_mut().filter(|_| direction == Direction::Down);
            self.drain(now, direction, gate);
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
                    self.propagate_abort(now, side.opposite());
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

    fn open_far_leg(&mut self, now: Nanoseconds) {
        if self.far_leg_opened_ns.is_none() {
            self.far_leg_opened_ns = Some(now);
            self.legs[self.request.opposite().index()].connection.connect(now);
        }
    }

    /// Takes what arrived into the pipe, and decides about what a store hands on.
    fn fill(&mut self, now: Nanoseconds, direction: Direction, catalogue: &mut Option<Catalogue>) {
        loop {
            let to = &self.legs[direction.opposite().index()].connection;
            let outstanding_bytes = to.queued_bytes() + to.unacknowledged_bytes();
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
        let pipe = &mut self.pipes[direction.index()];
        let to = &mut self.legs[direction.opposite().index()].connection;
        pipe.give(now, to, gate);
        let is_drained = pipe.is_empty();
        let from = &self.legs[direction.index()];
        let never_opened = self.far_leg_opened_ns.is_none() && direction != self.request;
        let source_ended = from.peer_finished && from.connection.readable() == 0;
        let other_ended = never_opened && self.legs[self.request.index()].peer_finished;
        if is_drained && (source_ended || other_ended) {
            self.legs[direction.opposite().index()].connection.close(now);
        }
    }

    /// The next segment that leaves at `now`, and the direction in which it goes.
    pub fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Segment)> {
        [Direction::Down, Direction::Up].into_iter().find_map(|side| {
            let segment = self.legs[side.index()].connection.poll_transmit(now)?;
            Some((side.opposite(), segment))
        })
    }

    /// When [`Relay::handle_timeout`] or [`Relay::advance`] has something to do.
    pub fn poll_timeout(&self, catalogue: Option<&Catalogue>, gate: Option<&Gate>) -> Nanoseconds {
        let legs = self.legs.iter().map(|leg| leg.connection.poll_timeout().min(leg.abort_at));
        let pipes = self.pipes.iter().map(|pipe| pipe.deadline(catalogue));
        let mobile_leg = &self.legs[Direction::Up.index()];
        let has_more = !self.pipes[Direction::Down.index()].is_empty() || mobile_leg.connection.wants_repeat();
        let is_waiting = has_more && !mobile_leg.is_over;
        let gate = gate.filter(|_| is_waiting).map_or(NEVER, Gate::next_release);
        legs.chain(pipes).fold(gate, Nanoseconds::min)
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
            flow: self.legs[0].connection.flow(),
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

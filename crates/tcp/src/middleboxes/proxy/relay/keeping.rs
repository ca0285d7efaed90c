//! A relay whose connection with the server outlives its client, and one that takes it over.

use pepscope_path::{Nanoseconds, NEVER};

use super::{Leg, Relay};

impl Relay {
    /// Whether the far leg is kept, or stays so, when the client has sent all it had: each request that was passed on
    /// has its whole answer, and nothing is under way.
    pub(super) fn keeps_far_leg(&mut self, now: Nanoseconds) -> bool {
        let Some(idle_ns) = self.manners.keeps_server_ns else { return false };
        let (asked, answered) = (&self.pipes[self.request.index()], &self.pipes[self.request.opposite().index()]);
        let is_answered = match (asked.whole_passed(), answered.whole_taken()) {
            (Some(requests), Some(answers)) => requests > 0 && requests == answers,
            _ => false,
        };
        let far = self.far_leg();
        let is_unused = far.connection.is_drained() && far.connection.readable() == 0 && answered.is_empty();
        let is_open = far.is_connected && !far.peer_finished && !far.is_over;
        if self.is_expired || !is_answered || !is_unused || !is_open {
            self.idle_until = NEVER;
        } else if !self.is_idle() {
            self.idle_until = now.saturating_add(idle_ns);
        }
        self.is_idle()
    }

    /// Whether the connection with the server waits for another client.
    pub fn is_idle(&self) -> bool {
        self.idle_until != NEVER
    }

    /// Whether a connection with the server is wanted that the relay does not have yet; asked once.
    pub fn takes_leg_request(&mut self) -> bool {
        core::mem::take(&mut self.asks_for_leg)
    }

    /// Gives the idle connection with the server away.
    pub fn release_far_leg(&mut self, substitute: Leg) -> Leg {
        self.idle_until = NEVER;
        core::mem::replace(&mut self.legs[self.request.opposite().index()], substitute)
    }

    /// Takes the connection that another relay has left.
    pub fn adopt_far_leg(&mut self, now: Nanoseconds, leg: Leg) {
        self.legs[self.request.opposite().index()] = leg;
        if let Some(syn) = self.held_syn.take() {
            self.legs[self.request.index()].connection.handle_segment(now, &syn);
        }
    }

    /// Opens a connection of its own with the server.
    pub fn open_own_leg(&mut self, now: Nanoseconds) {
        self.connect_far_leg(now);
    }
}

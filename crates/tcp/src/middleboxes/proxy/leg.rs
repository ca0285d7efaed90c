//! One of the two connections of a relay.

use pepscope_path::{Nanoseconds, NEVER};

use crate::connection::Connection;
use crate::state::State;

#[derive(Debug)]
pub(super) struct Leg {
    pub connection: Connection,
    pub is_connected: bool,
    pub peer_finished: bool,
    /// Closed, reset, given up or aborted.
    pub is_over: bool,
    pub abort_at: Nanoseconds,
}

impl Leg {
    pub fn new(connection: Connection) -> Self {
        Self { connection, is_connected: false, peer_finished: false, is_over: false, abort_at: NEVER }
    }

    pub fn abort(&mut self, now: Nanoseconds) {
        self.connection.abort(now);
        self.is_over = true;
        self.abort_at = NEVER;
    }

    /// Whether the program is done with it: both ends have finished, or it never began.
    pub fn is_finished(&self) -> bool {
        let state = self.connection.state();
        self.is_over || matches!(state, State::TimeWait | State::LastAck | State::Closing | State::Closed)
    }

    /// Whether its end has not been asked for.
    pub fn may_be_closed(&self) -> bool {
        matches!(self.connection.state(), State::Established | State::CloseWait)
    }

    /// What the program wrote and the peer has not acknowledged.
    pub fn outstanding_bytes(&self) -> u64 {
        self.connection.queued_bytes() + self.connection.unacknowledged_bytes()
    }
}

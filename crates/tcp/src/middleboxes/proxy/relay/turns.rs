//! When the program of a proxy acts on a relay, on a machine that takes time.

use pepscope_path::{Direction, Nanoseconds, NEVER};

use super::super::gate::Gate;
use super::super::store::Catalogue;
use super::{Opening, Relay};

impl Relay {
    /// Whether the program acts now: that long after something happened. `time` draws it; its argument says whether the
    /// client's connection is new.
    pub fn wakes(
        &mut self,
        now: Nanoseconds,
        catalogue: Option<&Catalogue>,
        gate: Option<&Gate>,
        time: impl FnOnce(bool) -> Nanoseconds,
    ) -> bool {
        if self.wake_ns == NEVER {
            if self.has_news(now, catalogue, gate) {
                self.wake_ns = now.saturating_add(time(!self.near_leg().is_connected));
            }
            return false;
        }
        if now < self.wake_ns {
            return false;
        }
        self.wake_ns = NEVER;
        true
    }

    fn has_news(&self, now: Nanoseconds, catalogue: Option<&Catalogue>, gate: Option<&Gate>) -> bool {
        let opens_by_itself = self.manners.opening != Opening::WithData && self.far_leg_opened_ns.is_none();
        self.is_served
            && (opens_by_itself && self.opens_now()
                || self.is_expired && self.far_leg().may_be_closed()
                || self.legs.iter().any(|leg| leg.connection.has_events())
                || self.has_another_turn()
                || self.program_deadline(catalogue, gate) <= now)
    }

    /// Whether the program reads by pieces, and there is one more that it may read.
    pub fn has_piece_to_read(&self) -> bool {
        self.pipes[0].reads_by_pieces() && self.has_another_turn()
    }

    fn has_another_turn(&self) -> bool {
        [Direction::Down, Direction::Up].into_iter().any(|direction| {
            let outstanding_bytes = self.legs[direction.opposite().index()].outstanding_bytes();
            self.legs[direction.index()].connection.readable() > 0
                && self.pipes[direction.index()].may_take(outstanding_bytes)
        })
    }

    /// When the program has something to do although nothing happens on a leg.
    fn program_deadline(&self, catalogue: Option<&Catalogue>, gate: Option<&Gate>) -> Nanoseconds {
        let pipes = self.pipes.iter().map(|pipe| pipe.deadline(catalogue));
        let mobile_leg = &self.legs[Direction::Up.index()];
        let has_more = !self.pipes[Direction::Down.index()].is_empty() || mobile_leg.connection.wants_repeat();
        let is_waiting = has_more && !mobile_leg.is_over;
        let gate = gate.filter(|_| is_waiting).map_or(NEVER, Gate::next_release);
        pipes.fold(gate, Nanoseconds::min)
    }

    /// When [`Relay::handle_timeout`] or [`Relay::advance`] has something to do.
    pub fn poll_timeout(&self, catalogue: Option<&Catalogue>, gate: Option<&Gate>) -> Nanoseconds {
        let program = match self.wake_ns {
            NEVER if self.is_served => self.program_deadline(catalogue, gate),
            wake_ns => wake_ns,
        };
        let legs = self.legs.iter().map(|leg| leg.connection.poll_timeout().min(leg.abort_at));
        legs.fold(program.min(self.idle_until), Nanoseconds::min)
    }

    /// Whether the client's connection has ended, and with it what the program does for it.
    pub fn is_done(&self) -> bool {
        self.near_leg().is_finished() && (self.is_idle() || self.far_leg().is_finished())
    }
}

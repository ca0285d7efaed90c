//! The fast path of an application: what it does for nearly every segment, without a step of its script.

use pepscope_path::Nanoseconds;

use super::{Application, Doing, Socket, Stage, ENDLESS_BYTES};
use crate::applications::script::Instruction;
use crate::packets::run::Run;

impl Application {
    /// Whether the script goes on only when the peer has finished.
    pub(crate) fn awaits_end(&self) -> bool {
        match self.stage {
            Stage::Idle | Stage::Over => false,
            Stage::Closed => true,
            Stage::Running => {
                matches!(self.program.instructions.get(self.position), None | Some(Instruction::ReceiveAll))
            }
        }
    }

    /// Whether the script would read `readable` bytes and then wait: for more of the same answer, for the peer's end, or for
    /// some time.
    #[inline(always)]
    pub(crate) fn waits_after(&self, readable: u64) -> bool {
        self.only_reads || self.waits_in_script(readable)
    }

    fn waits_in_script(&self, readable: u64) -> bool {
        match (self.stage, self.doing) {
            (Stage::Running, Doing::Receiving { .. }) if self.counts.read_bytes + readable < self.awaited_bytes => true,
            (Stage::Running, Doing::Receiving { .. }) => {
                matches!(self.instruction_after_this(), Some(Instruction::Think(_) | Instruction::Wait(_)))
            }
            _ => self.awaits_end(),
        }
    }

    fn instruction_after_this(&self) -> Option<&Instruction> {
        let next = self.position + 1;
        match self.program.instructions.get(next) {
            Some(Instruction::Loop { first, counter, times }) => {
                let is_last_round = times.is_some_and(|times| self.counters[*counter].saturating_add(1) >= times);
                self.program.instructions.get(if is_last_round { next + 1 } else { *first })
            }
            other => other,
        }
    }

    /// Continues to write where the send buffer has room again, if [`Application::advance`] would do nothing else. Returns
    /// whether it did.
    #[inline(always)]
    pub(crate) fn continue_writing(&mut self, now: Nanoseconds, socket: &mut impl Socket) -> bool {
        let (Stage::Running, Doing::Sending { offset, until_ns }) = (self.stage, self.doing) else { return false };
        let Some(Instruction::SendFor { content, .. }) = self.program.instructions.get(self.position) else {
            return false;
        };
        if now >= until_ns || now >= self.abort_ns || !self.reads_freely || socket.readable() > 0 {
            return false;
        }
        self.waits_for_room = false;
        let taken = self.write(*content, offset, ENDLESS_BYTES, socket);
        self.doing = Doing::Sending { offset: offset + taken, until_ns };
        true
    }

    /// Whether [`Application::advance`] would read what has arrived and do nothing else.
    #[inline]
    pub(crate) fn only_reads(&self) -> bool {
        self.only_reads
    }

    /// Whether [`Application::advance`] would do nothing where nothing can be read and nothing happened to the connection.
    #[inline]
    pub(crate) fn has_nothing_to_do(&self, now: Nanoseconds) -> bool {
        if self.only_reads {
            return true;
        }
        match (self.stage, self.doing, self.program.instructions.get(self.position)) {
            (Stage::Running, Doing::Sending { until_ns, .. }, Some(Instruction::SendFor { .. })) => {
                self.waits_for_room && self.reads_freely && now < until_ns.min(self.abort_ns)
            }
            _ => false,
        }
    }

    /// Counts a run as read, which [`Application::advance`] would otherwise read.
    #[inline]
    pub(crate) fn take_run(&mut self, now: Nanoseconds, run: Run) {
        self.note_read(now, run);
    }
}

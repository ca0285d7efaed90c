//! Runs a script over a connection.

use pepscope_path::{Nanoseconds, Random, NEVER, SECOND};

use crate::applications::script::{Instruction, Pause, Program, Reading, Script, ScriptError};
use crate::packets::content_digest::ContentDigest;
use crate::packets::run::Run;
use crate::packets::segment::ContentId;

/// More than any send buffer takes at once.
const ENDLESS_BYTES: u64 = 1 << 40;

/// What an application may do with a connection.
pub(crate) trait Socket {
    /// Gives `bytes` bytes of `content` from `content_offset` on; how many the send buffer took.
    fn write(&mut self, content: ContentId, content_offset: u64, bytes: u64) -> u64;
    /// Bytes that can be read.
    fn readable(&self) -> u64;
    /// Reads at most `limit` bytes, all of one content.
    fn read(&mut self, limit: u64) -> Option<Run>;
    fn close(&mut self, now: Nanoseconds);
    fn abort(&mut self, now: Nanoseconds);
}

/// What the step under way is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// The step has not begun.
    Nothing,
    Waiting {
        until_ns: Nanoseconds,
    },
    Sending {
        offset: u64,
        until_ns: Nanoseconds,
    },
    Receiving {
        since_ns: Nanoseconds,
    },
}

/// How far the script has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The connection is not established.
    Idle,
    Running,
    /// The script asked for the close; reading goes on.
    Closed,
    /// The script or the network ended the connection.
    Over,
}

/// A script or a protocol under way.
#[derive(Debug)]
pub(crate) struct Application {
    program: Program,
    counters: Vec<u32>,
    position: usize,
    doing: Doing,
    stage: Stage,
    reading: Reading,
    reads_freely: bool,
    /// More data is read, and changes nothing else.
    only_reads: bool,
    pauses: Vec<Pause>,
    next_pause: usize,
    abort_after_ns: Nanoseconds,
    abort_ns: Nanoseconds,
    random: Random,
    conversation: Option<Box<Conversation>>,
    established_ns: Nanoseconds,
    peer_finished: bool,
    /// The send buffer was full; the application writes again when it has room.
    waits_for_room: bool,
    awaited_bytes: u64,
    next_read_ns: Nanoseconds,
    /// Bytes times a second that pacing has not turned into time yet.
    pace_remainder: u64,
    read_wake_ns: Nanoseconds,
    written: ContentDigest,
    read: ContentDigest,
    counts: ApplicationCounts,
}

impl Application {
    /// # Errors
    /// A [`ScriptError`] if the script cannot be run.
    pub(crate) fn new(script: &Script, random: Random) -> Result<Self, ScriptError> {
        let program = Program::compile(script)?;
        Ok(Self {
            counters: vec![0; program.counters],
            program,
            position: 0,
            doing: Doing::Nothing,
            stage: Stage::Idle,
            reading: script.reading,
            reads_freely: script.reading == Reading::AtOnce && script.pauses.is_empty(),
            only_reads: false,
            pauses: script.pauses.clone(),
            next_pause: 0,
            abort_after_ns: script.abort_after_ns,
            abort_ns: NEVER,
            random,
            conversation: None,
            established_ns: 0,
            peer_finished: false,
            waits_for_room: false,
            awaited_bytes: 0,
            next_read_ns: 0,
            pace_remainder: 0,
            read_wake_ns: NEVER,
            written: ContentDigest::default(),
            read: ContentDigest::default(),
            counts: ApplicationCounts::default(),
        })
    }

    /// The connection is established: the script begins.
    pub(crate) fn establish(&mut self, now: Nanoseconds) {
        if self.stage == Stage::Idle {
            self.stage = Stage::Running;
            self.established_ns = now;
            self.abort_ns = now.saturating_add(self.abort_after_ns);
        }
    }

    /// The send buffer has room again.
    #[inline]
    pub(crate) fn note_room(&mut self) {
        self.waits_for_room = false;
    }

    /// The peer sends no more than what is readable now.
    pub(crate) fn finish_peer(&mut self) {
        self.peer_finished = true;
        self.only_reads = false;
    }

    /// Both ends finished: what has arrived is still read, and there is nothing left to abort.
    pub(crate) fn conclude(&mut self) {
        self.abort_ns = NEVER;
    }

    /// The connection is gone.
    pub(crate) fn stop(&mut self) {
        self.stage = Stage::Over;
        self.only_reads = false;
        self.read_wake_ns = NEVER;
    }

    pub(crate) fn counts(&self) -> ApplicationCounts {
        ApplicationCounts { written_digest: self.written.value(), read_digest: self.read.value(), ..self.counts }
    }

    #[inline]
    pub(crate) fn has_aborted(&self) -> bool {
        self.counts.aborted
    }

    pub(crate) fn read_bytes(&self) -> u64 {
        self.counts.read_bytes
    }

    /// When [`Application::advance`] has something to do even if nothing arrives.
    #[inline(always)]
    pub(crate) fn deadline(&self) -> Nanoseconds {
        let step_ns = match (self.stage, self.doing) {
            (Stage::Running, Doing::Waiting { until_ns } | Doing::Sending { until_ns, .. }) => until_ns,
            _ => NEVER,
        };
        let abort_ns = if matches!(self.stage, Stage::Running | Stage::Closed) { self.abort_ns } else { NEVER };
        step_ns.min(abort_ns).min(self.read_wake_ns)
    }

    /// Reads what may be read and goes through the script as far as it can.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanoseconds, socket: &mut impl Socket) {
        if matches!(self.stage, Stage::Idle | Stage::Over) {
            return;
        }
        if now >= self.abort_ns {
            self.abort(now, socket);
            return;
        }
        self.take(now, socket);
        while self.stage == Stage::Running {
            match self.program.instructions.get(self.position).copied() {
                Some(instruction) => {
                    if !self.follow(now, instruction, socket) {
                        break;
                    }
                }
                // Nothing is left to do: the connection ends when the peer ends it.
                None if self.is_at_end(socket) => self.close(now, socket),
                None => break,
            }
        }
        self.only_reads = self.reads_freely && !self.peer_finished && self.abort_ns == NEVER && self.awaits_end();
    }

    fn take(&mut self, now: Nanoseconds, socket: &mut impl Socket) {
        self.read_wake_ns = NEVER;
        while socket.readable() > 0 {
            let allowed_ns = self.reading_allowed_at(now);
            if allowed_ns > now {
                self.read_wake_ns = allowed_ns;
                return;
            }
            let limit = match self.reading {
                Reading::AtOnce => u64::MAX,
                Reading::Paced { chunk_bytes, .. } => chunk_bytes,
            };
            let Some(run) = socket.read(limit) else { return };
            self.note_read(now, run);
            if let Some(conversation) = &mut self.conversation {
                conversation.note_read(now, run);
            }
            if let Reading::Paced { rate_bytes_s, .. } = self.reading {
                let owed = u128::from(run.bytes) * u128::from(SECOND) + u128::from(self.pace_remainder);
                self.pace_remainder = (owed % u128::from(rate_bytes_s)) as u64;
                self.next_read_ns = now.saturating_add((owed / u128::from(rate_bytes_s)) as Nanoseconds);
            }
        }
    }

    #[inline(always)]
    fn note_read(&mut self, now: Nanoseconds, run: Run) {
        self.read.push(run);
        self.counts.read_bytes += run.bytes;
        self.counts.first_read_ns.get_or_insert(now);
        self.counts.last_read_ns = Some(now);
    }

    fn reading_allowed_at(&mut self, now: Nanoseconds) -> Nanoseconds {
        while let Some(pause) = self.pauses.get(self.next_pause) {
            let start_ns = self.established_ns.saturating_add(pause.start_ns);
            let end_ns = start_ns.saturating_add(pause.duration_ns);
            if now < start_ns {
                break;
            }
            if now < end_ns {
                return end_ns;
            }
            self.next_pause += 1;
        }
        self.next_read_ns
    }

    /// Whether `instruction` is done and the next one may begin.
    fn follow(&mut self, now: Nanoseconds, instruction: Instruction, socket: &mut impl Socket) -> bool {
        let done = match instruction {
            Instruction::Wait(duration_ns) => self.wait(now, |_| duration_ns),
            Instruction::Think(mean_s) => {
                let least_ns = Nanoseconds::from(mean_s > 0.0);
                self.wait(now, |random| ((random.exponential(mean_s) * SECOND as f64) as Nanoseconds).max(least_ns))
            }
            Instruction::Send { content, bytes } => self.send(content, bytes, socket),
            Instruction::SendFor { content, duration_ns } => self.send_for(now, content, duration_ns, socket),
            Instruction::Receive(bytes) => self.receive(now, bytes, socket),
            Instruction::ReceiveAll => self.is_at_end(socket),
            Instruction::Close => {
                self.close(now, socket);
                false
            }
            Instruction::Abort => {
                self.abort(now, socket);
                false
            }
            Instruction::Converse => {
                self.converse(now, socket);
                return false;
            }
            Instruction::Loop { first, counter, times } => {
                self.go_round(first, counter, times);
                return true;
            }
        };
        if done {
            self.position += 1;
            self.doing = Doing::Nothing;
        }
        done
    }

    fn wait(&mut self, now: Nanoseconds, duration_ns: impl FnOnce(&mut Random) -> Nanoseconds) -> bool {
        let until_ns = match self.doing {
            Doing::Waiting { until_ns } => until_ns,
            _ => now.saturating_add(duration_ns(&mut self.random)),
        };
        self.doing = Doing::Waiting { until_ns };
        now >= until_ns
    }

    fn send(&mut self, content: ContentId, bytes: u64, socket: &mut impl Socket) -> bool {
        let offset = match self.doing {
            Doing::Sending { offset, .. } => offset,
            _ => 0,
        };
        let offset = offset + self.write(content, offset, bytes - offset, socket);
        self.doing = Doing::Sending { offset, until_ns: NEVER };
        offset >= bytes
    }

    fn send_for(
        &mut self,
        now: Nanoseconds,
        content: ContentId,
        duration_ns: Nanoseconds,
        socket: &mut impl Socket,
    ) -> bool {
        let (offset, until_ns) = match self.doing {
            Doing::Sending { offset, until_ns } => (offset, until_ns),
            _ => (0, now.saturating_add(duration_ns)),
        };
        if now >= until_ns {
            return true;
        }
        let offset = offset + self.write(content, offset, ENDLESS_BYTES, socket);
        self.doing = Doing::Sending { offset, until_ns };
        false
    }

    #[inline(always)]
    fn write(&mut self, content: ContentId, content_offset: u64, bytes: u64, socket: &mut impl Socket) -> u64 {
        if bytes == 0 || self.waits_for_room {
            return 0;
        }
        let taken = socket.write(content, content_offset, bytes);
        self.waits_for_room = taken < bytes;
        self.written.push(Run { content, content_offset, bytes: taken });
        self.counts.written_bytes += taken;
        taken
    }

    fn receive(&mut self, now: Nanoseconds, bytes: u64, socket: &mut impl Socket) -> bool {
        let since_ns = match self.doing {
            Doing::Receiving { since_ns } => since_ns,
            _ => {
                self.awaited_bytes += bytes;
                now
            }
        };
        self.doing = Doing::Receiving { since_ns };
        if self.counts.read_bytes >= self.awaited_bytes {
            let waited_ns = now.saturating_sub(since_ns);
            self.counts.answers += 1;
            self.counts.answer_time_ns += waited_ns;
            self.counts.longest_answer_ns = self.counts.longest_answer_ns.max(waited_ns);
            return true;
        }
        if self.is_at_end(socket) {
            self.close(now, socket);
        }
        false
    }

    fn go_round(&mut self, first: usize, counter: usize, times: Option<u32>) {
        self.doing = Doing::Nothing;
        self.counters[counter] = self.counters[counter].saturating_add(1);
        if times.is_some_and(|times| self.counters[counter] >= times) {
            self.counters[counter] = 0;
            self.position += 1;
        } else {
            self.position = first;
        }
    }

    fn is_at_end(&self, socket: &impl Socket) -> bool {
        self.peer_finished && socket.readable() == 0
    }

    fn close(&mut self, now: Nanoseconds, socket: &mut impl Socket) {
        socket.close(now);
        self.stage = Stage::Closed;
        self.counts.ended_ns = Some(now);
    }

    fn abort(&mut self, now: Nanoseconds, socket: &mut impl Socket) {
        socket.abort(now);
        self.counts.ended_ns.get_or_insert(now);
        self.counts.aborted = true;
        self.stop();
    }
}

mod counts;
mod fast_path;
mod protocol;
#[cfg(test)]
mod tests;

pub use counts::ApplicationCounts;
pub(crate) use protocol::Conversation;
pub use protocol::{Action, Protocol};

//! One end of a connection and the application that uses it.

use pepscope_path::{Nanoseconds, NEVER};

use super::identifications::Identifications;
use super::processing::News;
use crate::applications::application::{Application, ApplicationCounts, Socket};
use crate::applications::script::Script;
use crate::connection::Connection;
use crate::packets::run::Run;
use crate::packets::segment::{ContentId, Segment};
use crate::settings::Settings;
use crate::state::{Event, State};
use crate::statistics::Statistics;

/// Which end opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Connects at the flow's start.
    Client,
    /// Waits for the peer.
    Server,
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSettings {
    /// The number of the flow, the same at both ends and below [`FLOW_LIMIT`].
    pub flow: u32,
    /// The mobile at its radio end.
    pub user: u16,
    pub role: Role,
    /// When a client connects.
    pub start_ns: Nanoseconds,
    pub connection: Settings,
    pub script: Script,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It has not begun, or it goes on.
    #[default]
    Open,
    /// Both ends finished.
    Closed,
    /// The application here reset it.
    Aborted,
    /// The peer reset it.
    Reset,
    /// The peer did not answer.
    TimedOut,
}

/// What became of one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowResult {
    pub flow: u32,
    pub user: u16,
    pub role: Role,
    pub outcome: Outcome,
    pub start_ns: Nanoseconds,
    pub connected_ns: Option<Nanoseconds>,
    /// The peer's FIN arrived after all its data.
    pub peer_finished_ns: Option<Nanoseconds>,
    /// Both ends had finished, or the connection was reset or given up.
    pub ended_ns: Option<Nanoseconds>,
    pub application: ApplicationCounts,
    pub statistics: Statistics,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) connection: Connection,
    pub(super) application: Application,
    pub(super) result: FlowResult,
    /// When to connect; [`NEVER`] once that is done.
    pub(super) connect_ns: Nanoseconds,
    /// When the application acts, on a machine that takes time; [`NEVER`] where nothing has happened.
    pub(super) wake_ns: Nanoseconds,
    /// It is in the queue of those that may have something to send.
    pub(super) is_ready: bool,
    /// It is opened once another flow's protocol wakes it, or the peer opens it, and does not count as open before.
    pub(super) is_dormant: bool,
    /// The fast path has answered it, and the table of timeouts does not know.
    pub(super) is_fast: bool,
    /// The place of the flow that starts when this one has ended, and how long after.
    pub(super) successor: Option<(usize, Nanoseconds)>,
}

impl Flow {
    /// Whether the application acts now, on a machine that takes time: that long after something has happened. `time` draws
    /// it by what that was.
    #[inline(always)]
    pub(super) fn wakes(&mut self, now: Nanoseconds, time: impl FnOnce(News) -> Nanoseconds) -> bool {
        let acts = self.wake_ns <= now;
        if acts {
            self.wake_ns = NEVER;
        } else {
            self.note_news(now, time);
        }
        acts
    }

    /// Has the application act later if something has happened, unless it will already.
    #[inline(always)]
    pub(super) fn note_news(&mut self, now: Nanoseconds, time: impl FnOnce(News) -> Nanoseconds) {
        if self.wake_ns == NEVER && (self.connection.has_events() || self.application.deadline() <= now) {
            self.wake_ns = now.saturating_add(time(self.news()));
        }
    }

    #[inline(always)]
    fn news(&self) -> News {
        match self.result.connected_ns {
            None => News::Connection(self.result.role),
            Some(_) if self.connection.state() == State::CloseWait => {
                News::End { only_reads: self.application.awaits_end() }
            }
            Some(_) if self.application.waits_after(self.connection.readable()) => News::ToRead,
            Some(_) => News::ToActOn,
        }
    }

    /// Whether the application acts now, and only reads what has arrived.
    #[inline(always)]
    pub(super) fn is_only_to_read(&self, now: Nanoseconds) -> bool {
        self.wake_ns <= now && self.application.only_reads() && self.connection.has_only_data_events()
    }

    /// The application does so.
    #[inline(always)]
    pub(super) fn read(&mut self, now: Nanoseconds) {
        self.wake_ns = NEVER;
        self.take_events(now);
        while self.connection.readable() > 0 {
            let Some(run) = self.connection.read(u64::MAX) else { break };
            self.application.take_run(now, run);
        }
    }

    /// The next segment that leaves at `now`.
    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Nanoseconds, identifications: &mut Identifications) -> Option<Segment> {
        let segment = self.connection.poll_transmit(now)?;
        Some(identifications.assign(self.connection.settings().stack, segment))
    }

    #[inline]
    pub(super) fn take_events(&mut self, now: Nanoseconds) {
        match self.connection.take_only_data_events() {
            Some(true) => self.application.note_room(),
            Some(false) => {}
            None => self.take_any_events(now),
        }
    }

    fn take_any_events(&mut self, now: Nanoseconds) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Connected => {
                    self.result.connected_ns.get_or_insert(now);
                    self.application.establish(now);
                }
                Event::Readable => {}
                Event::Writable => self.application.note_room(),
                Event::PeerFinished => {
                    self.result.peer_finished_ns.get_or_insert(now);
                    self.application.finish_peer();
                }
                Event::Closed => self.conclude(now),
                Event::Reset => self.end(now, Outcome::Reset),
                Event::TimedOut => self.end(now, Outcome::TimedOut),
            }
        }
        // TIME-WAIT serves the peer alone: for the application the connection is over.
        if self.connection.state() == State::TimeWait {
            self.conclude(now);
        }
    }

    fn conclude(&mut self, now: Nanoseconds) {
        self.note_end(now, Outcome::Closed);
        self.application.conclude();
    }

    pub(super) fn end(&mut self, now: Nanoseconds, outcome: Outcome) {
        self.note_end(now, outcome);
        self.application.stop();
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.result.outcome == Outcome::Open
    }

    fn note_end(&mut self, now: Nanoseconds, outcome: Outcome) {
        if self.is_open() {
            self.result.outcome = outcome;
            self.result.ended_ns = Some(now);
        }
    }

    #[inline]
    pub(super) fn next_time(&self) -> Nanoseconds {
        self.connection.poll_timeout().min(self.application_time()).min(self.connect_ns)
    }

    /// [`Flow::next_time`] after [`Connection::transmit_as_kernel`].
    #[inline(always)]
    pub(super) fn established_time(&self) -> Nanoseconds {
        self.connection.predicted_timeout().min(self.application_time()).min(self.connect_ns)
    }

    #[inline(always)]
    fn application_time(&self) -> Nanoseconds {
        if self.wake_ns == NEVER {
            self.application.deadline()
        } else {
            self.wake_ns
        }
    }
}

impl Socket for Connection {
    #[inline(always)]
    fn write(&mut self, content: ContentId, content_offset: u64, bytes: u64) -> u64 {
        Connection::write(self, content, content_offset, bytes)
    }

    #[inline]
    fn readable(&self) -> u64 {
        Connection::readable(self)
    }

    #[inline]
    fn read(&mut self, limit: u64) -> Option<Run> {
        Connection::read(self, limit)
    }

    #[inline]
    fn close(&mut self, now: Nanoseconds) {
        Connection::close(self, now);
    }

    #[inline]
    fn abort(&mut self, now: Nanoseconds) {
        Connection::abort(self, now);
    }
}

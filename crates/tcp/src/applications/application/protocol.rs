//! Applications that decide while a simulation runs what they do next.
//!
//! A [`crate::Script`] says beforehand what happens. A [`Protocol`] gets what happened (connected, a message was
//! read, its timer is due) and is asked what to do (write these bytes, close). It does no I/O and never asks for the
//! time, so that protocols nest: TLS around HTTP is one protocol that holds another.

use core::fmt;

use pepscope_path::Nanoseconds;

use super::{Application, Doing, Socket};
use crate::applications::streams::{Message, Streams, Write};
use crate::packets::run::Run;
use crate::packets::segment::ContentId;

/// What a protocol asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Write(Write),
    /// Has another flow of the same host act: one that shares what it knows with this one. A flow that waits to be
    /// opened connects.
    Wake {
        flow: u32,
    },
    /// Finish sending; what was written is still delivered. The protocol is not asked again.
    Close,
    /// Reset the connection.
    Abort,
}

/// One end of an application.
///
/// After any `handle_` method at a time, [`Protocol::poll_action`] is called with that time until it gives nothing or the
/// send buffer is full, and then [`Protocol::poll_timeout`]. Time never goes back.
pub trait Protocol: fmt::Debug {
    /// The connection is established; of datagrams: the client may begin.
    fn handle_connected(&mut self, now: Nanoseconds);

    /// What a message of the peer says was read whole.
    fn handle_message(&mut self, now: Nanoseconds, message: Message);

    /// The peer sends no more.
    fn handle_peer_finished(&mut self, now: Nanoseconds);

    /// The time of [`Protocol::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Nanoseconds);

    /// When to be woken; [`pepscope_path::NEVER`] for never.
    fn poll_timeout(&self) -> Nanoseconds;

    /// What is to be done now.
    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action>;
}

impl Protocol for Box<dyn Protocol> {
    fn handle_connected(&mut self, now: Nanoseconds) {
        self.as_mut().handle_connected(now);
    }

    fn handle_message(&mut self, now: Nanoseconds, message: Message) {
        self.as_mut().handle_message(now, message);
    }

    fn handle_peer_finished(&mut self, now: Nanoseconds) {
        self.as_mut().handle_peer_finished(now);
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.as_mut().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.as_ref().poll_timeout()
    }

    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action> {
        self.as_mut().poll_action(now)
    }
}

/// A protocol on a connection.
#[derive(Debug)]
pub(crate) struct Conversation {
    protocol: Box<dyn Protocol>,
    streams: Streams,
    content: ContentId,
    is_connected: bool,
    knows_end: bool,
    /// Written by the protocol and not taken by the send buffer.
    pending: Run,
    told: Vec<Message>,
    to_wake: Vec<u32>,
}

impl Conversation {
    pub(crate) fn new(protocol: Box<dyn Protocol>, streams: Streams, content: ContentId) -> Self {
        let pending = Run { content, content_offset: 0, bytes: 0 };
        let (told, to_wake) = Default::default();
        Self { protocol, streams, content, is_connected: false, knows_end: false, pending, told, to_wake }
    }

    /// The application has read `run`.
    pub(super) fn note_read(&mut self, now: Nanoseconds, run: Run) {
        if Streams::has(run.content) {
            self.streams.read_up_to(now, run.content, run.content_offset + run.bytes, &mut self.told);
        }
    }

    fn tell(&mut self, now: Nanoseconds, is_at_end: bool) {
        if !core::mem::replace(&mut self.is_connected, true) {
            self.protocol.handle_connected(now);
        }
        for message in self.told.drain(..) {
            self.protocol.handle_message(now, message);
        }
        if is_at_end && !core::mem::replace(&mut self.knows_end, true) {
            self.protocol.handle_peer_finished(now);
        }
        if self.protocol.poll_timeout() <= now {
            self.protocol.handle_timeout(now);
        }
    }
}

impl Application {
    /// Has `conversation` say what happens, in place of the steps of a script.
    pub(crate) fn converse_by(&mut self, conversation: Conversation) {
        self.program = crate::applications::script::Program::conversation();
        self.reads_freely = false;
        self.conversation = Some(Box::new(conversation));
    }

    /// The flows that the protocol wants woken.
    pub(crate) fn take_flows_to_wake(&mut self) -> Vec<u32> {
        self.conversation.as_mut().map_or_else(Vec::new, |conversation| core::mem::take(&mut conversation.to_wake))
    }

    /// Has the protocol act at `now`, once it is connected.
    pub(crate) fn wake(&mut self, now: Nanoseconds) {
        if let (Some(_), Doing::Waiting { until_ns }) = (&self.conversation, &mut self.doing) {
            *until_ns = now.min(*until_ns);
        }
    }

    /// Tells the protocol what happened and does what it asks for.
    pub(super) fn converse(&mut self, now: Nanoseconds, socket: &mut impl Socket) {
        let Some(mut conversation) = self.conversation.take() else { return };
        conversation.tell(now, self.is_at_end(socket));
        let mut end = None;
        while end.is_none() {
            let pending = conversation.pending;
            let taken = self.write(pending.content, pending.content_offset, pending.bytes, socket);
            conversation.pending.content_offset += taken;
            conversation.pending.bytes -= taken;
            if conversation.pending.bytes > 0 {
                break;
            }
            match conversation.protocol.poll_action(now) {
                Some(Action::Write(write)) => {
                    let (start, bytes) = conversation.streams.append(now, conversation.content, write);
                    conversation.pending = Run { content: conversation.content, content_offset: start, bytes };
                }
                Some(Action::Wake { flow }) => conversation.to_wake.push(flow),
                Some(other) => end = Some(other),
                None => break,
            }
        }
        // A full send buffer has the application woken when there is room.
        let is_full = conversation.pending.bytes > 0;
        let until_ns = if is_full { pepscope_path::NEVER } else { conversation.protocol.poll_timeout() };
        self.doing = Doing::Waiting { until_ns };
        self.conversation = Some(conversation);
        match end {
            Some(Action::Abort) => self.abort(now, socket),
            Some(_) => self.close(now, socket),
            None => {}
        }
    }
}

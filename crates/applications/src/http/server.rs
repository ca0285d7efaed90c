//! The server's end of one connection: it answers what it is asked, after a time.

use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, Random, SECOND};
use pepscope_tcp::{Action, Message, Piece, Protocol, Write};

use super::{frames, heads, HttpVersion};
use crate::agenda::Agenda;

/// Numbers of messages of HTTP/2 that are neither requests nor answers.
pub(super) const PREFACE: u64 = 1 << 62;
pub(super) const SETTINGS: u64 = (1 << 62) + 1;

/// How long a server takes from a request to the first byte of its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerTimes {
    pub least_ns: Nanoseconds,
    /// Mean of an exponential time on top.
    pub mean_above_s: f64,
}

#[derive(Debug)]
pub struct HttpServer {
    version: HttpVersion,
    times: ServerTimes,
    random: Random,
    agenda: Agenda,
    answered: u64,
    /// Answers of HTTP/1.1 leave in the order of the requests.
    last_answer_ns: Nanoseconds,
    /// Answers of HTTP/2 that are being sent or made: when they are ready, the bytes left, and what their end says.
    streams: VecDeque<(Nanoseconds, u64, Message)>,
    is_over: bool,
}

impl HttpServer {
    #[must_use]
    pub fn new(version: HttpVersion, times: ServerTimes, random: Random) -> Self {
        let (agenda, streams) = Default::default();
        Self { version, times, random, agenda, answered: 0, last_answer_ns: 0, streams, is_over: false }
    }

    fn time_ns(&mut self) -> Nanoseconds {
        let above_s = self.times.mean_above_s;
        let above_ns = if above_s > 0.0 { self.random.exponential(above_s) * SECOND as f64 } else { 0.0 };
        self.times.least_ns.saturating_add(above_ns as Nanoseconds)
    }

    /// The next frame of the stream whose turn it is.
    fn next_frame(&mut self, now: Nanoseconds) -> Option<Write> {
        let place = self.streams.iter().position(|(ready_ns, ..)| *ready_ns <= now)?;
        let (ready_ns, left, message) = self.streams.remove(place)?;
        if ready_ns > 0 {
            // The head goes first; from now on the stream takes turns.
            self.streams.push_back((0, left, message));
            let first = self.answered == 0;
            self.answered += 1;
            let head_bytes = if first { frames::FIRST_RESPONSE_HEAD_BYTES } else { frames::RESPONSE_HEAD_BYTES };
            let pieces = vec![Piece::Filler(frames::HEADER_BYTES + head_bytes)];
            return Some(Write { pieces, message: None });
        }
        let part = left.min(frames::DATA_BYTES);
        let pieces = vec![Piece::Filler(frames::HEADER_BYTES + part)];
        if part == left {
            return Some(Write::new(pieces, message));
        }
        self.streams.push_back((0, left - part, message));
        Some(Write { pieces, message: None })
    }
}

impl Protocol for HttpServer {
    fn handle_connected(&mut self, _now: Nanoseconds) {}

    fn handle_message(&mut self, now: Nanoseconds, message: Message) {
        if message.number == PREFACE {
            let name = "HTTP/2 settings".to_owned();
            let settings = Message { name, number: SETTINGS, answer_bytes: 0 };
            self.agenda.write(now, Write::new(vec![Piece::Filler(frames::SERVER_PREFACE_BYTES)], settings));
            let pieces = vec![Piece::Filler(frames::SETTINGS_ACKNOWLEDGEMENT_BYTES)];
            self.agenda.write(now, Write { pieces, message: None });
            return;
        }
        let ready_ns = now.saturating_add(self.time_ns()).max(1);
        let path = message.name.strip_prefix("GET ").unwrap_or(&message.name);
        let answer = Message { name: format!("200 {path}"), number: message.number, answer_bytes: 0 };
        match self.version {
            HttpVersion::Http11 => {
                self.last_answer_ns = self.last_answer_ns.max(ready_ns);
                let head = Piece::Literal(heads::response(message.answer_bytes));
                let pieces = vec![head, Piece::Filler(message.answer_bytes)];
                self.agenda.write(self.last_answer_ns, Write::new(pieces, answer));
            }
            HttpVersion::Http2 => self.streams.push_back((ready_ns, message.answer_bytes, answer)),
        }
    }

    fn handle_peer_finished(&mut self, now: Nanoseconds) {
        self.is_over = true;
        self.streams.clear();
        self.agenda = Agenda::default();
        self.agenda.add(now, Action::Close);
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_timeout(&self) -> Nanoseconds {
        let streams = self.streams.iter().map(|(ready_ns, ..)| *ready_ns);
        streams.fold(self.agenda.next_time(), Nanoseconds::min)
    }

    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action> {
        self.agenda.pop(now).or_else(|| self.next_frame(now).map(Action::Write))
    }
}

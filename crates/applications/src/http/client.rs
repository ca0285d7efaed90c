//! The client's end of one connection.

use pepscope_path::Nanoseconds;
use pepscope_tcp::{Action, Message, Piece, Protocol, Write};

use super::server::{PREFACE, SETTINGS};
use super::{frames, heads, HttpVersion, Request, Requester};
use crate::agenda::Agenda;

/// SETTINGS_MAX_CONCURRENT_STREAMS that servers commonly have (RFC 9113, section 6.5.2, recommends no less).
const MOST_STREAMS: usize = 100;

#[derive(Debug)]
pub struct HttpClient<R> {
    version: HttpVersion,
    requester: R,
    agenda: Agenda,
    is_connected: bool,
    is_over: bool,
    /// Requests whose answers have not come.
    outstanding: usize,
    asked: u64,
}

impl<R: Requester> HttpClient<R> {
    pub fn new(version: HttpVersion, requester: R) -> Self {
        let agenda = Agenda::default();
        Self { version, requester, agenda, is_connected: false, is_over: false, outstanding: 0, asked: 0 }
    }

    fn may_ask(&self) -> bool {
        match self.version {
            HttpVersion::Http11 => self.outstanding == 0,
            HttpVersion::Http2 => self.outstanding < MOST_STREAMS,
        }
    }

    fn ask(&mut self, request: &Request) -> Write {
        self.outstanding += 1;
        self.asked += 1;
        let piece = match self.version {
            HttpVersion::Http11 => Piece::Literal(heads::request(request)),
            HttpVersion::Http2 => {
                let share = if self.asked == 1 { 1.0 } else { frames::REPEATED_REQUEST_SHARE };
                Piece::Filler(frames::HEADER_BYTES + (request.request_bytes as f64 * share) as u64)
            }
        };
        let name = format!("GET {}", request.path);
        Write::new(vec![piece], Message { name, number: request.number, answer_bytes: request.answer_bytes })
    }
}

impl<R: Requester> Protocol for HttpClient<R> {
    fn handle_connected(&mut self, now: Nanoseconds) {
        self.is_connected = true;
        if self.version == HttpVersion::Http2 {
            let message = Message { name: "HTTP/2 preface".to_owned(), number: PREFACE, answer_bytes: 0 };
            self.agenda.write(now, Write::new(vec![Piece::Filler(frames::CLIENT_PREFACE_BYTES)], message));
        }
        self.requester.handle_connected(now);
    }

    fn handle_message(&mut self, now: Nanoseconds, message: Message) {
        if message.number == SETTINGS {
            let pieces = vec![Piece::Filler(frames::SETTINGS_ACKNOWLEDGEMENT_BYTES)];
            self.agenda.write(now, Write { pieces, message: None });
        } else {
            self.outstanding = self.outstanding.saturating_sub(1);
            self.requester.handle_answer(now, message.number);
        }
    }

    fn handle_peer_finished(&mut self, now: Nanoseconds) {
        self.is_over = true;
        self.requester.handle_end(now);
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        if self.requester.poll_timeout() <= now {
            self.requester.handle_timeout(now);
        }
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.agenda.next_time().min(self.requester.poll_timeout())
    }

    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action> {
        if let Some(flow) = self.requester.poll_wake() {
            return Some(Action::Wake { flow });
        }
        if let Some(action) = self.agenda.pop(now) {
            return Some(action);
        }
        if self.is_over {
            return Some(Action::Close);
        }
        if !self.is_connected {
            return None;
        }
        if self.may_ask() {
            if let Some(request) = self.requester.poll_request(now) {
                return Some(Action::Write(self.ask(&request)));
            }
        }
        if self.outstanding == 0 && self.requester.is_over() {
            self.is_over = true;
            if self.version == HttpVersion::Http2 {
                let pieces = vec![Piece::Filler(frames::GOAWAY_BYTES)];
                return Some(Action::Write(Write { pieces, message: None }));
            }
            return Some(Action::Close);
        }
        None
    }
}

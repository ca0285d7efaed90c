//! QUIC version 1 (RFC 9000) between a client that asks and a server that answers: the handshake, 1-RTT packets, their
//! acknowledgements and recovery, the spin bit.
//!
//! Initial packets are whole and can be decrypted by anybody, as real ones can; what else is encrypted is filler of the
//! right length behind a header. Packets stand for themselves: one chunk of a stream each. No Retry, no 0-RTT, no
//! migration, no flow control, acknowledgements in packets of their own.

mod handshake;
mod initial;
mod recovery;

use pepscope_path::{Nanoseconds, Random, NEVER, SECOND};
use pepscope_tcp::{Action, Message, Piece, Protocol, Role, Write};

use crate::agenda::Agenda;
use crate::http::ServerTimes;
use crate::tls::{client_hello, TlsSettings};
use recovery::{Chunk, Received, Sender, ACKNOWLEDGEMENT_DELAY_NS};

/// Datagrams with Initial packets are at least so long (RFC 9000, section 14.1).
const INITIAL_DATAGRAM_BYTES: usize = 1200;
/// A server sends at most three times what it got before it knows that the client is there (RFC 9000, section 8.1).
pub const MOST_FLIGHT_DATAGRAMS: usize = 3;
/// A short header without and with a connection ID of eight bytes, with a number of two bytes, and the tag.
const SHORT_HEADER_BYTES: u64 = 1 + 2 + 16;
const ACKNOWLEDGEMENT_BYTES: u64 = 8;
const CLOSE_BYTES: u64 = 4;
/// HANDSHAKE_DONE and a NEW_TOKEN of 56 bytes (RFC 9000, sections 19.20 and 19.7).
const HANDSHAKE_DONE_BYTES: u64 = 1 + 2 + 56;

/// What a datagram is for, in the upper bits of its message's number.
mod kind {
    pub const CLIENT_INITIAL: u64 = 1;
    pub const SERVER_FLIGHT: u64 = 2;
    pub const CLIENT_FINISHED: u64 = 3;
    pub const DATA: u64 = 4;
    pub const ACKNOWLEDGEMENT: u64 = 5;
    pub const CLOSE: u64 = 6;
}
const KIND_SHIFT: u32 = 61;
const SPIN_SHIFT: u32 = 60;
const PACKET_SHIFT: u32 = 32;
const PACKET_MASK: u64 = (1 << 28) - 1;
const EXCHANGE_SHIFT: u32 = 20;
const INDEX_MASK: u64 = (1 << EXCHANGE_SHIFT) - 1;

/// Of both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct QuicSettings {
    pub tls: TlsSettings,
    /// The connection ID that the client makes up, and the server's own.
    pub original_id: [u8; 8],
    pub server_id: [u8; 8],
    pub exchanges: u16,
    pub request_bytes: u64,
    pub answer_bytes: u64,
    /// Mean of the exponential time from an answer to the next request.
    pub think_time_mean_s: f64,
    pub times: ServerTimes,
    /// Most payload of a UDP datagram.
    pub datagram_bytes: u64,
    pub has_spin_bit: bool,
}

/// One end.
#[derive(Debug)]
pub struct Quic {
    settings: QuicSettings,
    role: Role,
    random: Random,
    agenda: Agenda,
    /// The client's hello, which it repeats until the server's flight is there; which datagrams of that came.
    hello: Vec<u8>,
    hello_due_ns: Nanoseconds,
    hello_ns: Nanoseconds,
    hellos: u32,
    flight: [bool; MOST_FLIGHT_DATAGRAMS],
    is_established: bool,
    sender: Sender,
    next_number: u32,
    received: Received,
    unacknowledged: u32,
    acknowledgement_due_ns: Nanoseconds,
    /// Chunks of the exchange under way that have come.
    arrived: Vec<bool>,
    exchange: u16,
    /// When what waits may leave, if it may not yet.
    release_ns: Nanoseconds,
    may_send: bool,
    spin: bool,
}

impl Quic {
    #[must_use]
    pub fn new(settings: QuicSettings, role: Role, random: Random) -> Self {
        Self {
            sender: Sender::new(settings.datagram_bytes),
            settings,
            role,
            random,
            agenda: Agenda::default(),
            hello: Vec::new(),
            hello_due_ns: NEVER,
            hello_ns: 0,
            hellos: 0,
            flight: [false; MOST_FLIGHT_DATAGRAMS],
            is_established: false,
            next_number: 0,
            received: Received::default(),
            unacknowledged: 0,
            acknowledgement_due_ns: NEVER,
            arrived: Vec::new(),
            exchange: 0,
            release_ns: NEVER,
            may_send: false,
            spin: false,
        }
    }

    /// The longest chain of certificates that fits into the server's first datagrams.
    #[must_use]
    pub fn most_certificate_bytes() -> u64 {
        // 700 bytes are more than all else in them takes: headers, ServerHello, CertificateVerify, Finished.
        (MOST_FLIGHT_DATAGRAMS * INITIAL_DATAGRAM_BYTES) as u64 - 700
    }

    fn say(&mut self, now: Nanoseconds, pieces: Vec<Piece>, name: String, number: u64, answer_bytes: u64) {
        self.agenda.write(now, Write::new(pieces, Message { name, number, answer_bytes }));
    }

    fn begin_exchange(&mut self, at: Nanoseconds) {
        self.arrived.clear();
        let (bytes, answer_bytes) = (self.settings.request_bytes, self.settings.answer_bytes);
        self.sender.push(Chunk { exchange: self.exchange, index: 0, count: 1, bytes, answer_bytes });
        self.hold_until(at);
    }

    fn hold_until(&mut self, at: Nanoseconds) {
        self.may_send = false;
        self.release_ns = at;
    }

    fn release(&mut self, now: Nanoseconds) {
        if now >= self.release_ns {
            self.release_ns = NEVER;
            self.may_send = true;
        }
    }

    fn answer(&mut self, now: Nanoseconds, exchange: u16, answer_bytes: u64) {
        let room = self.settings.datagram_bytes - SHORT_HEADER_BYTES;
        let count = answer_bytes.div_ceil(room).clamp(1, INDEX_MASK) as u32;
        for index in 0..count {
            let bytes = answer_bytes.saturating_sub(u64::from(index) * room).min(room);
            self.sender.push(Chunk { exchange, index, count, bytes, answer_bytes: 0 });
        }
        let above_s = self.settings.times.mean_above_s;
        let above_ns = if above_s > 0.0 { self.random.exponential(above_s) * SECOND as f64 } else { 0.0 };
        self.hold_until(now.saturating_add(self.settings.times.least_ns).saturating_add(above_ns as Nanoseconds));
    }

    fn data(&mut self, chunk: Chunk, number: u32) -> Write {
        let is_request = self.role == Role::Client;
        let name = match (is_request, chunk.index + 1 == chunk.count) {
            (true, _) => format!("QUIC request {}", chunk.exchange),
            (false, true) => format!("QUIC answer {}", chunk.exchange),
            (false, false) => format!("QUIC answer {}, part {}", chunk.exchange, chunk.index),
        };
        let pieces = self.short_packet(chunk.bytes);
        let place = u64::from(chunk.exchange) << EXCHANGE_SHIFT | u64::from(chunk.index);
        let about = self.spin_bit() | (u64::from(number) & PACKET_MASK) << PACKET_SHIFT | place;
        let answer_bytes = if is_request { chunk.answer_bytes } else { chunk.count.into() };
        Write::new(pieces, Message { name, number: kind::DATA << KIND_SHIFT | about, answer_bytes })
    }

    fn spin_bit(&self) -> u64 {
        u64::from(self.spin) << SPIN_SHIFT
    }

    fn take_data(&mut self, now: Nanoseconds, message: &Message) {
        if !self.is_established {
            return; // keys are not there yet
        }
        let packet = (message.number >> PACKET_SHIFT & PACKET_MASK) as u32;
        if self.received.largest.is_none_or(|largest| packet > largest) {
            // The client inverts what it sees, the server repeats it (RFC 9000, section 17.4).
            let seen = message.number >> SPIN_SHIFT & 1 == 1;
            self.spin = if self.role == Role::Client { !seen } else { seen };
        }
        let (is_new, is_next) = self.received.take(packet);
        self.unacknowledged += 1;
        let at_once = self.unacknowledged >= 2 || !is_next;
        let due_ns = if at_once { now } else { now.saturating_add(ACKNOWLEDGEMENT_DELAY_NS) };
        self.acknowledgement_due_ns = self.acknowledgement_due_ns.min(due_ns);
        let exchange = (message.number >> EXCHANGE_SHIFT & ((1 << (PACKET_SHIFT - EXCHANGE_SHIFT)) - 1)) as u16;
        let is_due = if self.role == Role::Client { exchange == self.exchange } else { exchange >= self.exchange };
        if !is_new || !is_due {
            return;
        }
        if self.role == Role::Server {
            self.exchange = exchange + 1;
            self.answer(now, exchange, message.answer_bytes);
            return;
        }
        let index = (message.number & INDEX_MASK) as usize;
        self.arrived.resize(message.answer_bytes as usize, false);
        if let Some(place) = self.arrived.get_mut(index) {
            *place = true;
        }
        if self.arrived.iter().all(|came| *came) {
            self.exchange += 1;
            if self.exchange < self.settings.exchanges {
                let think_s = self.random.exponential(self.settings.think_time_mean_s);
                self.begin_exchange(now.saturating_add((think_s * SECOND as f64) as Nanoseconds));
            } else {
                let pieces = self.short_packet(CLOSE_BYTES);
                self.say(now, pieces, "QUIC close".to_owned(), kind::CLOSE << KIND_SHIFT, 0);
                self.agenda.add(now, Action::Close);
            }
        }
    }

    fn acknowledgement(&mut self) -> Option<Action> {
        self.acknowledgement_due_ns = NEVER;
        self.unacknowledged = 0;
        let largest = self.received.largest?;
        let pieces = self.short_packet(ACKNOWLEDGEMENT_BYTES);
        let number = kind::ACKNOWLEDGEMENT << KIND_SHIFT | u64::from(largest);
        let message = Message { name: "QUIC ACK".to_owned(), number, answer_bytes: self.received.earlier };
        Some(Action::Write(Write::new(pieces, message)))
    }
}

impl Protocol for Quic {
    fn handle_connected(&mut self, now: Nanoseconds) {
        self.hello = client_hello(&self.settings.tls, &mut self.random, true);
        self.hello_ns = now;
        self.say_hello(now);
    }

    fn handle_message(&mut self, now: Nanoseconds, message: Message) {
        match (self.role, message.number >> KIND_SHIFT) {
            (Role::Server, kind::CLIENT_INITIAL) if !self.is_established => self.send_flight(now),
            (Role::Client, kind::SERVER_FLIGHT) => self.take_flight(now, message.number),
            (Role::Server, kind::CLIENT_FINISHED) => {
                self.is_established = true;
                let pieces = self.short_packet(HANDSHAKE_DONE_BYTES);
                self.agenda.write(now, Write { pieces, message: None });
            }
            (_, kind::DATA) => self.take_data(now, &message),
            (_, kind::ACKNOWLEDGEMENT) => {
                self.sender.acknowledge(now, message.number as u32, message.answer_bytes);
            }
            (Role::Server, kind::CLOSE) => self.agenda.add(now, Action::Close),
            _ => {}
        }
    }

    fn handle_peer_finished(&mut self, _now: Nanoseconds) {}

    fn handle_timeout(&mut self, now: Nanoseconds) {
        if now >= self.hello_due_ns {
            self.say_hello(now);
        }
        self.release(now);
        if self.sender.poll_timeout() <= now {
            if self.role == Role::Client && !self.sender.was_heard() {
                self.say_finished(now);
            }
            self.sender.handle_timeout(now);
        }
    }

    fn poll_timeout(&self) -> Nanoseconds {
        let own = [self.hello_due_ns, self.release_ns, self.acknowledgement_due_ns, self.sender.poll_timeout()];
        own.into_iter().fold(self.agenda.next_time(), Nanoseconds::min)
    }

    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action> {
        if let Some(action) = self.agenda.pop(now) {
            return Some(action);
        }
        self.release(now);
        if now >= self.acknowledgement_due_ns {
            return self.acknowledgement();
        }
        if !self.is_established || !self.may_send {
            return None;
        }
        let number = self.next_number;
        let chunk = self.sender.send(now, number)?;
        self.next_number += 1;
        Some(Action::Write(self.data(chunk, number)))
    }
}

#[cfg(test)]
mod tests;

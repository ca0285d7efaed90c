//! The handshake (RFC 9001, section 4): Initial and Handshake packets of both ends.

use pepscope_path::{Nanoseconds, NEVER};
use pepscope_tcp::{Piece, Role};

use super::initial::{acknowledgement_frame, crypto_frame, integer_16, Initial, VERSION};
use super::{kind, Quic, QuicSettings, INITIAL_DATAGRAM_BYTES, KIND_SHIFT, MOST_FLIGHT_DATAGRAMS, SHORT_HEADER_BYTES};
use crate::tls::{certificate_message_bytes, encrypted_extensions_bytes, server_hello};

/// CertificateVerify and Finished.
const FLIGHT_EXTRA_BYTES: u64 = 264 + 36;
/// A long header with one connection ID of eight bytes, its length and number, and the tag.
const HANDSHAKE_PACKET_ADDED_BYTES: u64 = 1 + 4 + 1 + 1 + 8 + 2 + 2 + 16;
/// An ACK frame, and a CRYPTO frame with a Finished.
const CLIENT_HANDSHAKE_BYTES: u64 = 5 + 3 + 36;

impl Quic {
    /// The server's handshake messages behind the ServerHello.
    fn flight_bytes(settings: &QuicSettings) -> u64 {
        let certificate_bytes = certificate_message_bytes(settings.tls.certificate_chain_bytes);
        encrypted_extensions_bytes(&settings.tls) + certificate_bytes + FLIGHT_EXTRA_BYTES
    }

    pub(super) fn say_hello(&mut self, now: Nanoseconds) {
        let packet = Initial {
            original: &self.settings.original_id,
            from_client: true,
            destination: &self.settings.original_id,
            source: &[],
            number: self.hellos,
            frames: crypto_frame(&self.hello),
        };
        let pieces = vec![Piece::Literal(packet.sealed(INITIAL_DATAGRAM_BYTES))];
        self.say(now, pieces, "QUIC ClientHello".to_owned(), kind::CLIENT_INITIAL << KIND_SHIFT, 0);
        self.hello_due_ns = now.saturating_add(self.sender.probe_timeout_ns() << self.hellos.min(16));
        self.hellos += 1;
    }

    /// The head of a long-header packet with filler: type Handshake (RFC 9000, section 17.2.4).
    fn handshake_packet(&mut self, body_bytes: u64) -> Vec<Piece> {
        let to_server = self.role == Role::Client;
        let mut header = vec![0xe0 | (self.random.bits() & 0x0f) as u8];
        header.extend(VERSION);
        let (destination, source): (&[u8], &[u8]) =
            if to_server { (&self.settings.server_id, &[]) } else { (&[], &self.settings.server_id) };
        for identifier in [destination, source] {
            header.push(identifier.len() as u8);
            header.extend(identifier);
        }
        let rest = body_bytes + 2 + 16;
        header.extend(integer_16(rest as u16));
        vec![Piece::Literal(header), Piece::Filler(rest)]
    }

    /// A 1-RTT packet (RFC 9000, section 17.3.1).
    pub(super) fn short_packet(&mut self, body_bytes: u64) -> Vec<Piece> {
        let spin = u8::from(self.spin && self.settings.has_spin_bit) << 5;
        let mut header = vec![0x40 | spin | (self.random.bits() & 0x1f) as u8];
        if self.role == Role::Client {
            header.extend(self.settings.server_id);
        }
        vec![Piece::Literal(header), Piece::Filler(body_bytes + SHORT_HEADER_BYTES - 1)]
    }

    pub(super) fn send_flight(&mut self, now: Nanoseconds) {
        let hello = server_hello(&self.settings.tls, &mut self.random, true);
        let packet = Initial {
            original: &self.settings.original_id,
            from_client: false,
            destination: &[],
            source: &self.settings.server_id,
            number: 0,
            frames: [acknowledgement_frame(0), crypto_frame(&hello)].concat(),
        };
        let initial = packet.sealed(0);
        let at = now.saturating_add(self.settings.tls.server_hello_time_ns);
        let mut left = Self::flight_bytes(&self.settings);
        for part in 0..MOST_FLIGHT_DATAGRAMS {
            let mut pieces = if part == 0 { vec![Piece::Literal(initial.clone())] } else { Vec::new() };
            let taken: u64 = pieces.iter().map(Piece::bytes).sum();
            let room = INITIAL_DATAGRAM_BYTES as u64 - taken - HANDSHAKE_PACKET_ADDED_BYTES - 5;
            // Datagrams with an Initial packet are filled up by padding behind the last handshake bytes.
            let body = if part == 0 { room } else { left.min(room) };
            left = left.saturating_sub(body);
            if body > 0 {
                pieces.extend(self.handshake_packet(body + 5));
            }
            let is_last = left == 0;
            let number = kind::SERVER_FLIGHT << KIND_SHIFT | u64::from(is_last) << 8 | part as u64;
            self.say(at, pieces, format!("QUIC server flight {}", part + 1), number, 0);
            if is_last {
                break;
            }
        }
    }

    pub(super) fn take_flight(&mut self, now: Nanoseconds, number: u64) {
        if self.is_established {
            return;
        }
        let part = (number & 0xff) as usize;
        self.flight[part.min(MOST_FLIGHT_DATAGRAMS - 1)] = true;
        if number >> 8 & 1 == 1 {
            self.flight[part..].fill(true);
        }
        if self.flight.iter().all(|came| *came) {
            self.sender.measure(now - self.hello_ns);
            self.is_established = true;
            self.hello_due_ns = NEVER;
            let at = now.saturating_add(self.settings.tls.client_finished_time_ns);
            self.say_finished(at);
            self.begin_exchange(at);
        }
    }

    pub(super) fn say_finished(&mut self, at: Nanoseconds) {
        let rest = HANDSHAKE_PACKET_ADDED_BYTES + CLIENT_HANDSHAKE_BYTES;
        let packet = Initial {
            original: &self.settings.original_id,
            from_client: true,
            destination: &self.settings.server_id,
            source: &[],
            number: self.hellos,
            frames: acknowledgement_frame(0),
        };
        let initial = packet.sealed(INITIAL_DATAGRAM_BYTES - rest as usize);
        let pieces = [vec![Piece::Literal(initial)], self.handshake_packet(CLIENT_HANDSHAKE_BYTES)].concat();
        self.say(at, pieces, "QUIC client Finished".to_owned(), kind::CLIENT_FINISHED << KIND_SHIFT, 0);
    }
}

//! TLS 1.2 and 1.3 around another protocol: handshake, tickets, records, alert at the end.
//!
//! Messages in clear are whole and valid; what would be encrypted is filler of the right length behind a record's header.
//! No HelloRetryRequest, no early data, no client certificates.

mod bytes;
mod certificate;
mod hello;
mod records;

use pepscope_path::{Nanoseconds, Random, NEVER};
use pepscope_tcp::{Action, Message, Piece, Protocol, Role, Write};

use crate::agenda::Agenda;
pub(crate) use certificate::certificate_message_bytes;
use certificate::{certificate_message, SIGNATURE_BYTES};
pub(crate) use hello::{client_hello, encrypted_extensions_bytes, random_bytes, server_hello};
use records::{application_data, change_cipher_spec, content, plain, plain_handshake, protected};

/// Numbers of messages that belong to TLS itself.
const OWN: u64 = 1 << 63;
const CLIENT_HELLO: u64 = OWN;
const SERVER_FLIGHT: u64 = OWN + 1;
const CLIENT_FINISHED: u64 = OWN + 2;
const SERVER_FINISHED: u64 = OWN + 3;
const CLOSE_NOTIFY: u64 = OWN + 4;

/// Finished with SHA-256: 32 bytes in TLS 1.3 (RFC 8446, section 4.4.4), 12 in TLS 1.2 (RFC 5246, section 7.4.9).
const FINISHED_1_3_BYTES: u64 = 4 + 32;
const FINISHED_1_2_BYTES: u64 = 4 + 12;
const CERTIFICATE_VERIFY_BYTES: u64 = 4 + 2 + 2 + SIGNATURE_BYTES as u64;
/// NewSessionTicket of TLS 1.3: lifetime, age, nonce of 8 bytes, ticket, no extensions (RFC 8446, section 4.6.1).
const TICKET_MESSAGE_BYTES: u64 = 4 + 4 + 4 + 1 + 8 + 2 + hello::TICKET_BYTES as u64 + 2;
/// OpenSSL's and BoringSSL's servers send two.
const TICKETS: usize = 2;
/// Level and description (RFC 8446, section 6).
const ALERT_BYTES: u64 = 2;
/// The records of a first ClientHello have the version of TLS 1.0 (RFC 8446, section 5.1).
const FIRST_VERSION: [u8; 2] = [3, 1];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

/// What is negotiated to be spoken inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerProtocol {
    Http11,
    Http2,
    Http3,
}

impl InnerProtocol {
    fn offered(self) -> &'static [&'static str] {
        match self {
            Self::Http11 => &["http/1.1"],
            Self::Http2 => &["h2", "http/1.1"],
            Self::Http3 => &["h3"],
        }
    }

    fn chosen(self) -> &'static [&'static str] {
        &self.offered()[..1]
    }
}

/// Of one connection, the same at both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsSettings {
    pub version: TlsVersion,
    /// The client has a ticket: no certificate is sent.
    pub is_resumed: bool,
    pub server_name: String,
    pub protocol: InnerProtocol,
    /// The least length of the ClientHello message, reached by padding.
    pub client_hello_bytes: usize,
    /// Of the server's certificates together.
    pub certificate_chain_bytes: u64,
    /// Most plaintext of an application-data record.
    pub record_bytes: u64,
    /// From the ClientHello to the server's flight: signing takes time.
    pub server_hello_time_ns: Nanoseconds,
    /// From the server's flight to the client's: verifying takes time.
    pub client_finished_time_ns: Nanoseconds,
    pub session_id: [u8; 32],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Handshake,
    Established,
    Closed,
}

/// One end.
#[derive(Debug)]
pub struct Tls<P> {
    settings: TlsSettings,
    role: Role,
    random: Random,
    inner: P,
    stage: Stage,
    agenda: Agenda,
    /// The peer finished before the handshake did.
    peer_finished: bool,
}

impl<P: Protocol> Tls<P> {
    #[must_use]
    pub fn new(settings: TlsSettings, role: Role, random: Random, inner: P) -> Self {
        Self { settings, role, random, inner, stage: Stage::Handshake, agenda: Agenda::default(), peer_finished: false }
    }

    fn say(&mut self, at: Nanoseconds, pieces: Vec<Piece>, name: &str, number: u64) {
        let message = Message { name: name.to_owned(), number, answer_bytes: 0 };
        self.agenda.write(at, Write::new(pieces, message));
    }

    fn is_1_3(&self) -> bool {
        self.settings.version == TlsVersion::Tls13
    }

    fn protected_handshake(&self, bytes: u64) -> [Piece; 2] {
        protected(self.settings.version, content::HANDSHAKE, bytes)
    }

    fn finished(&self) -> Vec<Piece> {
        let bytes = if self.is_1_3() { FINISHED_1_3_BYTES } else { FINISHED_1_2_BYTES };
        [vec![change_cipher_spec()], self.protected_handshake(bytes).to_vec()].concat()
    }

    /// From the ServerHello to what the client has to answer.
    fn server_flight(&mut self) -> Vec<Piece> {
        let mut pieces = vec![plain_handshake(&server_hello(&self.settings, &mut self.random, false))];
        let chain_bytes = self.settings.certificate_chain_bytes;
        match (self.settings.version, self.settings.is_resumed) {
            (TlsVersion::Tls13, is_resumed) => {
                pieces.push(change_cipher_spec());
                pieces.extend(self.protected_handshake(encrypted_extensions_bytes(&self.settings)));
                if !is_resumed {
                    pieces.extend(self.protected_handshake(certificate_message_bytes(chain_bytes)));
                    pieces.extend(self.protected_handshake(CERTIFICATE_VERIFY_BYTES));
                }
                pieces.extend(self.protected_handshake(FINISHED_1_3_BYTES));
            }
            (TlsVersion::Tls12, true) => pieces.extend(self.finished()),
            (TlsVersion::Tls12, false) => {
                let name = self.settings.server_name.clone();
                pieces.push(plain_handshake(&certificate_message(&name, chain_bytes, &mut self.random)));
                pieces.push(plain_handshake(&self.server_key_exchange()));
                pieces.push(plain_handshake(&bytes::handshake(14, &[]))); // ServerHelloDone
            }
        }
        pieces
    }

    /// An X25519 key signed with RSA-PSS (RFC 8422, section 5.4).
    fn server_key_exchange(&mut self) -> Vec<u8> {
        let mut key = vec![3, 0, 0x1d, 32];
        key.extend(random_bytes(&mut self.random, 32));
        key.extend([8, 4]);
        key.extend(bytes::with_length_16(&random_bytes(&mut self.random, SIGNATURE_BYTES)));
        bytes::handshake(12, &key)
    }

    fn client_second_flight(&mut self) -> Vec<Piece> {
        if self.is_1_3() || self.settings.is_resumed {
            return self.finished();
        }
        let key = [&[32][..], &random_bytes(&mut self.random, 32)].concat();
        [vec![plain_handshake(&bytes::handshake(16, &key))], self.finished()].concat()
    }

    /// The server has heard the client's Finished.
    fn complete(&mut self, now: Nanoseconds) {
        if self.is_1_3() {
            for _ in 0..TICKETS {
                let pieces = self.protected_handshake(TICKET_MESSAGE_BYTES).to_vec();
                self.agenda.write(now, Write { pieces, message: None });
            }
        } else if !self.settings.is_resumed {
            // In clear, before the cipher changes (RFC 5077, section 3.3).
            let ticket =
                [&[0, 0, 0x1c, 0x20][..], &bytes::with_length_16(&random_bytes(&mut self.random, hello::TICKET_BYTES))]
                    .concat();
            let pieces = [vec![plain_handshake(&bytes::handshake(4, &ticket))], self.finished()].concat();
            self.say(now, pieces, "server Finished", SERVER_FINISHED);
        }
        self.establish(now);
    }

    fn establish(&mut self, now: Nanoseconds) {
        self.stage = Stage::Established;
        self.inner.handle_connected(now);
        if self.peer_finished {
            self.inner.handle_peer_finished(now);
        }
    }

    fn handle_own(&mut self, now: Nanoseconds, number: u64) {
        match (self.role, number) {
            (Role::Server, CLIENT_HELLO) => {
                let pieces = self.server_flight();
                self.say(now + self.settings.server_hello_time_ns, pieces, "ServerHello", SERVER_FLIGHT);
            }
            (Role::Client, SERVER_FLIGHT) => {
                let pieces = self.client_second_flight();
                let at = now + self.settings.client_finished_time_ns;
                self.say(at, pieces, "client Finished", CLIENT_FINISHED);
            }
            (Role::Server, CLIENT_FINISHED) => self.complete(now),
            (Role::Client, SERVER_FINISHED) => self.establish(now),
            _ => {}
        }
    }

    fn wrap(&self, write: Write) -> Write {
        let pieces = application_data(self.settings.version, write.bytes(), self.settings.record_bytes);
        Write { pieces, message: write.message }
    }

    fn close(&mut self) -> Action {
        self.stage = Stage::Closed;
        self.agenda = Agenda::default();
        self.agenda.add(0, Action::Close);
        let pieces = protected(self.settings.version, content::ALERT, ALERT_BYTES).to_vec();
        let message = Message { name: "close_notify".to_owned(), number: CLOSE_NOTIFY, answer_bytes: 0 };
        Action::Write(Write::new(pieces, message))
    }
}

impl<P: Protocol> Protocol for Tls<P> {
    fn handle_connected(&mut self, now: Nanoseconds) {
        if self.role == Role::Client {
            let hello = client_hello(&self.settings, &mut self.random, false);
            self.say(now, vec![plain(content::HANDSHAKE, FIRST_VERSION, &hello)], "ClientHello", CLIENT_HELLO);
        }
    }

    fn handle_message(&mut self, now: Nanoseconds, message: Message) {
        if message.number & OWN != 0 {
            self.handle_own(now, message.number);
        } else {
            self.inner.handle_message(now, message);
        }
    }

    fn handle_peer_finished(&mut self, now: Nanoseconds) {
        self.peer_finished = true;
        match self.stage {
            Stage::Handshake => self.agenda.add(now, Action::Close),
            Stage::Established => self.inner.handle_peer_finished(now),
            Stage::Closed => {}
        }
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        if self.stage == Stage::Established && self.inner.poll_timeout() <= now {
            self.inner.handle_timeout(now);
        }
    }

    fn poll_timeout(&self) -> Nanoseconds {
        let inner_ns = if self.stage == Stage::Established { self.inner.poll_timeout() } else { NEVER };
        self.agenda.next_time().min(inner_ns)
    }

    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action> {
        if let Some(action) = self.agenda.pop(now) {
            // A client speaks at once behind its Finished where the server has no more to say in the handshake.
            let is_finished = matches!(&action, Action::Write(Write { message: Some(message), .. })
                if message.number == CLIENT_FINISHED);
            if is_finished && (self.is_1_3() || self.settings.is_resumed) {
                self.establish(now);
            }
            return Some(action);
        }
        if self.stage != Stage::Established {
            return None;
        }
        match self.inner.poll_action(now)? {
            Action::Write(write) => Some(Action::Write(self.wrap(write))),
            Action::Close => Some(self.close()),
            other => Some(other),
        }
    }
}

#[cfg(test)]
mod tests;

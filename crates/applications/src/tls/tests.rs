//! Handshakes between the two ends, without a network: what is written arrives at once.

use pepscope_path::{Nanoseconds, Random, NEVER};
use pepscope_tcp::{Action, Message, Piece, Protocol, Role, Write};

use super::{InnerProtocol, Tls, TlsSettings, TlsVersion};

/// Says one thing once it is connected, and closes when it has heard one.
#[derive(Debug, Default)]
struct Talker {
    says: Option<Write>,
    heard: Vec<u64>,
    closes: bool,
}

impl Protocol for Talker {
    fn handle_connected(&mut self, _now: Nanoseconds) {
        self.says = Some(Write::new(vec![Piece::Filler(20_000)], Message { number: 7, ..Message::default() }));
    }

    fn handle_message(&mut self, _now: Nanoseconds, message: Message) {
        self.heard.push(message.number);
        self.closes = true;
    }

    fn handle_peer_finished(&mut self, _now: Nanoseconds) {
        self.closes = true;
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_timeout(&self) -> Nanoseconds {
        NEVER
    }

    fn poll_action(&mut self, _now: Nanoseconds) -> Option<Action> {
        self.says.take().map(Action::Write).or_else(|| std::mem::take(&mut self.closes).then_some(Action::Close))
    }
}

fn settings(version: TlsVersion, is_resumed: bool) -> TlsSettings {
    TlsSettings {
        version,
        is_resumed,
        server_name: "server-0.example".to_owned(),
        protocol: InnerProtocol::Http11,
        client_hello_bytes: 512,
        certificate_chain_bytes: 3000,
        record_bytes: 16_384,
        server_hello_time_ns: 0,
        client_finished_time_ns: 0,
        session_id: [9; 32],
    }
}

/// The writes of both ends in their order, as who wrote, content types of its records, and what it says.
fn transcript(version: TlsVersion, is_resumed: bool) -> Vec<(char, Vec<u8>, u64)> {
    let end = |role, name| Tls::new(settings(version, is_resumed), role, Random::new(1, name), Talker::default());
    let mut ends = [end(Role::Client, "client"), end(Role::Server, "server")];
    ends[0].handle_connected(0);
    ends[1].handle_connected(0);
    let mut written = Vec::new();
    let mut is_closed = [false; 2];
    let mut idle = 0;
    for turn in (0..2).cycle() {
        let mut said = Vec::new();
        while let Some(action) = (!is_closed[turn]).then(|| ends[turn].poll_action(0)).flatten() {
            match action {
                Action::Write(write) => said.push(write),
                _ => is_closed[turn] = true,
            }
        }
        idle = if said.is_empty() { idle + 1 } else { 0 };
        if idle > 2 {
            break;
        }
        for write in said {
            let headers = write.pieces.iter().filter_map(|piece| match piece {
                Piece::Literal(bytes) => Some(bytes[0]),
                Piece::Filler(_) => None,
            });
            let number = write.message.as_ref().map_or(0, |message| message.number & 0xff);
            written.push((if turn == 0 { 'C' } else { 'S' }, headers.collect(), number));
            if let Some(message) = write.message {
                ends[1 - turn].handle_message(0, message);
            }
        }
    }
    assert_eq!([&ends[0].inner.heard, &ends[1].inner.heard], [&[7], &[7]]);
    assert_eq!(is_closed, [true, true]);
    written
}

#[test]
fn a_full_handshake_of_tls_1_3_takes_one_round_trip() {
    let wanted = vec![
        ('C', vec![22], 0),
        ('S', vec![22, 20, 23, 23, 23, 23], 1),
        ('C', vec![20, 23], 2),
        ('C', vec![23, 23], 7),
        ('S', vec![23], 0),
        ('S', vec![23], 0),
        ('S', vec![23, 23], 7),
        ('S', vec![23], 4),
        ('C', vec![23], 4),
    ];
    assert_eq!(transcript(TlsVersion::Tls13, false), wanted);
}

#[test]
fn a_resumed_handshake_has_no_certificate() {
    let written = transcript(TlsVersion::Tls13, true);
    assert_eq!(written[1], ('S', vec![22, 20, 23, 23], 1));
    let written = transcript(TlsVersion::Tls12, true);
    assert_eq!(written[1], ('S', vec![22, 20, 22], 1));
    assert_eq!(written[2], ('C', vec![20, 22], 2));
    assert_eq!(written[3], ('C', vec![23, 23], 7));
}

#[test]
fn a_full_handshake_of_tls_1_2_takes_two_round_trips() {
    let wanted = vec![
        ('C', vec![22], 0),
        ('S', vec![22, 22, 22, 22], 1),
        ('C', vec![22, 20, 22], 2),
        ('S', vec![22, 20, 22], 3),
        ('S', vec![23, 23], 7),
        ('C', vec![23, 23], 7),
        ('C', vec![21], 4),
        ('S', vec![21], 4),
    ];
    assert_eq!(transcript(TlsVersion::Tls12, false), wanted);
}

#[test]
fn a_hello_is_padded_to_the_length_that_is_asked_for() {
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        for bytes in [512, 700, 1700] {
            let settings = TlsSettings { client_hello_bytes: bytes, ..settings(version, false) };
            assert_eq!(super::client_hello(&settings, &mut Random::new(1, "hello"), false).len(), bytes);
        }
    }
}

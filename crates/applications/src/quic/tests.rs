//! Both ends on a path with a delay that loses some datagrams.

use std::collections::BTreeMap;

use pepscope_path::{Nanoseconds, Random, MILLISECOND, NEVER, SECOND};
use pepscope_tcp::{Action, Message, Piece, Protocol, Role};
use proptest::prelude::*;

use super::{Quic, QuicSettings};
use crate::http::ServerTimes;
use crate::tls::{InnerProtocol, TlsSettings, TlsVersion};

fn settings(answer_bytes: u64) -> QuicSettings {
    QuicSettings {
        tls: TlsSettings {
            version: TlsVersion::Tls13,
            is_resumed: false,
            server_name: "server-0.example".to_owned(),
            protocol: InnerProtocol::Http3,
            client_hello_bytes: 0,
            certificate_chain_bytes: 2800,
            record_bytes: 16_384,
            server_hello_time_ns: MILLISECOND,
            client_finished_time_ns: 0,
            session_id: [0; 32],
        },
        original_id: [1, 2, 3, 4, 5, 6, 7, 8],
        server_id: [9; 8],
        exchanges: 3,
        request_bytes: 300,
        answer_bytes,
        think_time_mean_s: 0.5,
        times: ServerTimes { least_ns: 5 * MILLISECOND, mean_above_s: 0.0 },
        datagram_bytes: 1250,
        has_spin_bit: true,
    }
}

/// Every datagram that was sent: when, by whom, its length and its name. Both ends have closed.
fn exchange(answer_bytes: u64, delay_ns: Nanoseconds, loss: f64) -> Vec<(Nanoseconds, Role, u64, String)> {
    let end = |role, name| Quic::new(settings(answer_bytes), role, Random::new(1, name));
    let mut ends = [end(Role::Client, "client"), end(Role::Server, "server")];
    let mut random = Random::new(5, "loss");
    let mut under_way: BTreeMap<(Nanoseconds, usize), (usize, Message)> = BTreeMap::new();
    let (mut sent, mut closed, mut now) = (Vec::new(), [false; 2], 0);
    ends[0].handle_connected(0);
    loop {
        for (side, end) in ends.iter_mut().enumerate() {
            while let Some(action) = (!closed[side]).then(|| end.poll_action(now)).flatten() {
                let Action::Write(write) = action else {
                    closed[side] = true;
                    break;
                };
                let (bytes, name) = (write.bytes(), write.message.as_ref().map_or("", |message| &message.name));
                sent.push((now, if side == 0 { Role::Client } else { Role::Server }, bytes, name.to_owned()));
                assert!(write.pieces.iter().any(|piece| matches!(piece, Piece::Literal(_))));
                if let Some(message) = write.message.filter(|_| !random.chance(loss)) {
                    under_way.insert((now + delay_ns, sent.len()), (1 - side, message));
                }
            }
        }
        let waits = |side: usize| if closed[side] { NEVER } else { ends[side].poll_timeout() };
        let arrives = under_way.first_key_value().map_or(NEVER, |((at, _), _)| *at);
        let next = waits(0).min(waits(1)).min(arrives);
        if closed[0] && (closed[1] || next == NEVER || next > now + 100 * SECOND) {
            return sent;
        }
        assert!(next < 10_000 * SECOND, "it stands still at {now}");
        assert!(next >= now);
        now = next;
        while let Some(arrival) = under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let (side, message) = arrival.remove();
            if !closed[side] {
                ends[side].handle_message(now, message);
            }
        }
        for (side, end) in ends.iter_mut().enumerate() {
            if !closed[side] && end.poll_timeout() <= now {
                end.handle_timeout(now);
            }
        }
    }
}

#[test]
fn a_handshake_and_a_short_answer_take_two_round_trips() {
    let sent = exchange(500, 20 * MILLISECOND, 0.0);
    let at = |wanted: &str| sent.iter().find(|(.., name)| name == wanted).map(|(at, ..)| at / MILLISECOND);
    assert_eq!(at("QUIC ClientHello"), Some(0));
    assert_eq!(at("QUIC server flight 1"), Some(21));
    assert_eq!(at("QUIC request 0"), Some(41));
    assert_eq!(at("QUIC answer 0"), Some(66));
    assert_eq!(sent[0].2, 1200);
    let up = sent.iter().filter(|(_, role, ..)| *role == Role::Client).map(|(.., bytes, _)| bytes).sum::<u64>();
    let flight = sent.iter().filter(|(.., name)| name.starts_with("QUIC server flight"));
    assert!(flight.map(|(.., bytes, _)| bytes).sum::<u64>() <= 3600 && up > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_exchange_ends_however_many_datagrams_are_lost(
        answer_bytes in 1u64..200_000, delay_ms in 1u64..200, loss in prop_oneof![Just(0.0), Just(0.02), Just(0.2)],
    ) {
        let sent = exchange(answer_bytes, delay_ms * MILLISECOND, loss);
        for number in 0..3 {
            let wanted = format!("QUIC answer {number}");
            prop_assert!(sent.iter().any(|(.., name)| *name == wanted));
        }
        prop_assert!(sent.iter().all(|(.., bytes, _)| *bytes <= 1250));
    }
}

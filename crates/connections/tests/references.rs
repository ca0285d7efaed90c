//! Round trips besides TCP: which answers belong to which requests.
#![allow(clippy::unwrap_used)]

use pepscope_connections::{Reference, ReferenceKind, References};
use pepscope_wire::{Datagram, Echo};
use proptest::prelude::*;

const CLIENT: u8 = 1;
const SERVER: u8 = 2;
const SECOND_NS: i64 = 1_000_000_000;

fn echo(source: u8, destination: u8, time_ns: i64, is_reply: bool, identifier: u16, sequence: u16) -> Echo {
    Echo {
        frame_index: 0,
        time_ns,
        ip_version: 4,
        source: [source; 16],
        destination: [destination; 16],
        is_reply,
        identifier,
        sequence,
        data_bytes: 56,
    }
}

/// From the client's port 40,000 to a port of the server's, or back.
fn datagram(is_request: bool, port: u16, time_ns: i64, payload: &[u8]) -> Datagram<'_> {
    let ends = [([CLIENT; 16], 40_000), ([SERVER; 16], port)];
    let [(source, source_port), (destination, destination_port)] = if is_request { ends } else { [ends[1], ends[0]] };
    Datagram {
        frame_index: 0,
        time_ns,
        ip_version: 4,
        source,
        destination,
        source_port,
        destination_port,
        payload_length: payload.len() as u32,
        payload,
    }
}

/// Kind, host, time asked, round trip and repetition of what these datagrams give.
fn found(datagrams: &[(bool, i64, Vec<u8>)], port: u16) -> Vec<(ReferenceKind, u8, i64, i64, i64)> {
    let mut references = References::default();
    for (is_request, time_ns, payload) in datagrams {
        references.push(&datagram(*is_request, port, *time_ns, payload));
    }
    let row = |row: &Reference| (row.kind, row.host[0], row.asked_ns, row.round_trip_ns, row.repeated_ns);
    references.finish().iter().map(row).collect()
}

fn echoes(messages: &[Echo]) -> Vec<Reference> {
    let mut references = References::default();
    messages.iter().for_each(|message| references.push_echo(message));
    references.finish()
}

#[test]
fn a_reply_answers_the_request_of_its_number_only() {
    let rows = echoes(&[
        echo(CLIENT, SERVER, 0, false, 7, 1),
        echo(CLIENT, SERVER, 100, false, 7, 2),
        echo(CLIENT, SERVER, 150, false, 8, 1),
        echo(SERVER, CLIENT, 170, true, 7, 2),
        echo(SERVER, CLIENT, 180, true, 7, 1),
        echo(SERVER, CLIENT, 190, true, 7, 1),
        echo(SERVER, CLIENT, 200, true, 9, 1),
    ]);
    let row = |row: &Reference| (row.asked_ns, row.round_trip_ns, row.repeated_ns, row.is_first, row.host_port);
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), [(0, 180, 0, false, 0), (100, 70, 0, true, 0)]);
    assert!(rows.iter().all(|row| row.host == [SERVER; 16] && row.asker == [CLIENT; 16] && row.request_bytes == 56));
}

#[test]
fn hosts_that_ping_each_other_under_one_number_are_told_apart() {
    let rows = echoes(&[
        echo(CLIENT, SERVER, 0, false, 7, 1),
        echo(SERVER, CLIENT, 10, false, 7, 1),
        echo(CLIENT, SERVER, 30, true, 7, 1),
        echo(SERVER, CLIENT, 60, true, 7, 1),
    ]);
    assert_eq!(rows.iter().map(|row| (row.host[0], row.round_trip_ns)).collect::<Vec<_>>(), [(2, 60), (1, 20)]);
}

#[test]
fn a_repeated_request_leaves_the_round_trip_open_and_an_old_one_is_forgotten() {
    let query = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let answer = vec![0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
    let asked_at = |times: &[i64]| {
        let mut datagrams: Vec<_> = times.iter().map(|&time_ns| (true, time_ns, query.clone())).collect();
        datagrams.push((false, times.last().unwrap() + 30, answer.clone()));
        found(&datagrams, 53)
    };
    assert_eq!(asked_at(&[5]), [(ReferenceKind::Dns, SERVER, 5, 30, 0)]);
    assert_eq!(asked_at(&[5, 25]), [(ReferenceKind::Dns, SERVER, 5, 50, 20)]);
    assert_eq!(asked_at(&[5, 100 * SECOND_NS]), [(ReferenceKind::Dns, SERVER, 100 * SECOND_NS, 30, 0)]);
    let too_late = [(true, 0, query.clone()), (false, 61 * SECOND_NS, answer.clone())];
    assert_eq!(found(&too_late, 53), []);
    let other = [(true, 0, query), (false, 10, [&[0xab, 0xce], &answer[2..]].concat())];
    assert_eq!(found(&other, 53), []);
}

#[test]
fn an_answer_that_repeats_the_datagram_is_an_echo_and_another_a_turn() {
    let datagrams = |answer: &[u8]| [(true, 0, b"datagram 1".to_vec()), (false, 40, answer.to_vec())];
    assert_eq!(found(&datagrams(b"datagram 1"), 9000), [(ReferenceKind::UdpEcho, SERVER, 0, 40, 0)]);
    assert_eq!(found(&datagrams(b"datagram 2"), 9000), [(ReferenceKind::UdpTurn, SERVER, 0, 40, 0)]);
    let short = [(true, 0, b"x".to_vec()), (false, 40, b"x".to_vec()), (false, 50, b"x".to_vec())];
    assert_eq!(found(&short, 9000), [(ReferenceKind::UdpTurn, SERVER, 0, 40, 0)]);
    assert_eq!(found(&short, 7), [(ReferenceKind::UdpEcho, SERVER, 0, 40, 0)]);
}

#[test]
fn only_the_side_that_began_asks_by_turns() {
    let stream: Vec<_> = (0..6).map(|number| (number % 2 == 0, i64::from(number), vec![number])).collect();
    let rows = found(&stream, 9000);
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.0 == ReferenceKind::UdpTurn && row.1 == SERVER));
}

const CLIENT_ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const FIRST_ID: [u8; 8] = [9; 8];
const SERVER_ID: [u8; 5] = [11, 12, 13, 14, 15];

/// A datagram that begins with a QUIC long header.
fn long_header(first_byte: u8, version: u32, destination: &[u8], source: &[u8], bytes: usize) -> Vec<u8> {
    let mut out = vec![first_byte];
    out.extend(version.to_be_bytes());
    out.push(destination.len() as u8);
    out.extend(destination);
    out.push(source.len() as u8);
    out.extend(source);
    out.resize(bytes, 0);
    out
}

#[test]
fn a_quic_handshake_gives_the_round_trip_of_either_side() {
    for (version, initial) in [(1, 0xc0), (0xff00_001d, 0xc3), (0x6b33_43cf, 0xd1)] {
        let handshake = [
            (true, 0, long_header(initial, version, &FIRST_ID, &CLIENT_ID, 1200)),
            (true, 3, long_header(initial, version, &FIRST_ID, &CLIENT_ID, 1200)),
            (false, 40, long_header(initial, version, &CLIENT_ID, &SERVER_ID, 1200)),
            (false, 41, long_header(0xe0, version, &CLIENT_ID, &SERVER_ID, 1200)),
            (true, 42, long_header(initial, version, &FIRST_ID, &CLIENT_ID, 1200)),
            (true, 60, long_header(0xe0, version, &SERVER_ID, &CLIENT_ID, 1200)),
            (false, 90, vec![0x40; 50]),
            (true, 95, [&[0x40][..], &SERVER_ID, &[0; 30]].concat()),
        ];
        let expected = [(ReferenceKind::QuicInitial, SERVER, 0, 40, 3), (ReferenceKind::QuicReturn, CLIENT, 40, 20, 1)];
        assert_eq!(found(&handshake, 443), expected);
    }
}

#[test]
fn a_short_header_may_be_the_first_to_use_the_servers_connection_id() {
    let handshake = [
        (true, 0, long_header(0xc0, 1, &FIRST_ID, &[], 1200)),
        (false, 40, long_header(0xc0, 1, &[], &SERVER_ID, 1200)),
        (true, 50, [&[0x40][..], &[9; 30]].concat()),
        (true, 60, [&[0x40][..], &SERVER_ID, &[0; 30]].concat()),
    ];
    let expected = [(ReferenceKind::QuicInitial, SERVER, 0, 40, 0), (ReferenceKind::QuicReturn, CLIENT, 40, 20, 0)];
    assert_eq!(found(&handshake, 443), expected);
}

#[test]
fn version_negotiation_is_an_answer_and_tells_no_connection_id() {
    let handshake = [
        (true, 0, long_header(0xc0, 1, &FIRST_ID, &CLIENT_ID, 1200)),
        (false, 40, long_header(0xc0, 0, &CLIENT_ID, &FIRST_ID, 40)),
        (true, 60, long_header(0xc0, 0xff00_001d, &FIRST_ID, &CLIENT_ID, 1200)),
    ];
    assert_eq!(found(&handshake, 443), [(ReferenceKind::QuicInitial, SERVER, 0, 40, 0)]);
}

#[test]
fn a_server_that_uses_another_connection_id_answers_somebody_else() {
    let handshake = [
        (true, 0, long_header(0xc0, 1, &FIRST_ID, &CLIENT_ID, 1200)),
        (false, 40, long_header(0xc0, 1, &[7; 8], &SERVER_ID, 1200)),
    ];
    assert_eq!(found(&handshake, 443), []);
}

#[test]
fn an_attack_does_not_take_all_memory() {
    let mut references = References::default();
    for number in 0..200_000_u32 {
        let mut flood = datagram(true, 9000, i64::from(number), b"flood");
        flood.source[..4].copy_from_slice(&number.to_be_bytes());
        references.push(&flood);
    }
    assert_eq!(references.left_out(), 200_000 - (1 << 15));
    references.push(&datagram(true, 9000, 120 * SECOND_NS, b"flood"));
    let mut later = datagram(true, 9001, 300 * SECOND_NS, b"question");
    for _ in 0..1 << 15 {
        references.push(&later);
        later.source_port = later.source_port.wrapping_add(1);
    }
    assert!(references.left_out() < 200_000, "silent flows give way");
}

proptest! {
    /// Whatever comes, a round trip is of a request and an answer that came, in that order.
    #[test]
    fn every_reference_spans_two_datagrams_in_opposite_directions(
        datagrams in proptest::collection::vec(
            (any::<bool>(), 0_i64..100, proptest::collection::vec(any::<u8>(), 1..60), 0_usize..5),
            0..60,
        )
    ) {
        let mut references = References::default();
        let mut sent = Vec::new();
        for (is_request, time_ns, payload, port) in &datagrams {
            let port = [53, 123, 443, 7, 3478][*port];
            let padded = [&payload[..], &vec![0; if payload[0] & 0x80 != 0 { 1200 } else { 48 }]].concat();
            references.push(&datagram(*is_request, port, *time_ns, &padded));
            sent.push((*is_request, *time_ns));
        }
        for row in references.finish() {
            let is_request = row.asker == [CLIENT; 16];
            prop_assert!(sent.contains(&(is_request, row.asked_ns)));
            prop_assert!(sent.contains(&(!is_request, row.asked_ns + row.round_trip_ns)));
            prop_assert!((0..=row.round_trip_ns).contains(&row.repeated_ns));
        }
    }
}

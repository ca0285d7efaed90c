//! Which packets make a connection, and who is the client.

use crate::transcript::*;
use pepscope_connections::{address_text, push_end_point, Close};
use pepscope_wire::segment::{Segment, Tunnel, TunnelKind};

fn client_port(segments: &[Segment<'_>]) -> (u16, bool) {
    let connections = analyse(segments);
    let summary = connections.summary(0);
    summary.map_or((0, false), |summary| (summary.client_port, summary.side_guessed))
}

#[test]
fn who_sends_the_syn_is_the_client() {
    let connections = analyse(&NUMBERS.handshake());
    assert_eq!(connections.len(), 1);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.client_port, summary.server_port, summary.side_guessed), (CLIENT_PORT, SERVER_PORT, false));
    assert_eq!(address_text(summary.client_address, summary.ip_version), "10.0.0.1");
    let mut ends = String::new();
    push_end_point(&mut ends, summary.client_address, summary.ip_version, 5);
    push_end_point(&mut ends, std::net::Ipv6Addr::LOCALHOST.octets(), 6, 80);
    assert_eq!(ends, "10.0.0.1:5[::1]:80");
    assert_eq!((summary.up.packets, summary.down.packets), (2, 1));
    assert_eq!((summary.up.ttl, summary.down.ttl), (64, 57));
    assert_eq!(summary.up.syn_options, b"\x02\x04\x05\xb4\x03\x03\x07");
    assert_eq!((summary.up.maximum_segment_size, summary.up.window_scale), (Some(1460), Some(7)));
    assert_eq!(summary.up.initial_sequence_number, Some(NUMBERS.client));
    assert_eq!((summary.handshake_syn_ack_ns, summary.handshake_ack_ns), (Some(20_000_000), Some(1_000_000)));
}

#[test]
fn an_acknowledgement_before_the_syn_ack_leaves_its_time_unknown() {
    let [syn, syn_ack, ack]: [Segment<'_>; 3] = NUMBERS.handshake().try_into().unwrap();
    let request = Segment { time_ns: ack.time_ns + 300_000_000, ..up(0, ACK, 1, 1, 10) };
    // Two receive queues stamped both at one time, in the other order.
    let connections = analyse(&[syn, Segment { time_ns: syn_ack.time_ns, ..ack }, syn_ack, request]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.handshake_syn_ack_ns, summary.handshake_ack_ns), (Some(20_000_000), None));
}

#[test]
fn an_acknowledgement_of_data_does_not_time_the_handshake() {
    let [syn, syn_ack, ack]: [Segment<'_>; 3] = NUMBERS.handshake().try_into().unwrap();
    let greeting = Segment { time_ns: ack.time_ns + 200_000_000, ..down(0, ACK, 1, 1, 10) };
    let later = Segment { time_ns: ack.time_ns + 300_000_000, ..up(0, ACK, 1, 11, 0) };
    let lost = analyse(&[syn, syn_ack, greeting, later]);
    let Some(summary) = lost.summary(0) else { unreachable!() };
    assert_eq!((summary.handshake_syn_ack_ns, summary.handshake_ack_ns), (Some(20_000_000), None));
}

#[test]
fn a_syn_ack_alone_identifies_the_server() {
    assert_eq!(client_port(&NUMBERS.handshake()[1..]), (CLIENT_PORT, false));
}

#[test]
fn a_syn_ack_holds_both_initial_sequence_numbers() {
    let connections = analyse(&NUMBERS.handshake()[1..]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    let numbers = (summary.up.initial_sequence_number, summary.down.initial_sequence_number);
    assert_eq!(numbers, (Some(NUMBERS.client), Some(NUMBERS.server)));
    assert_eq!((summary.up.syn_count, summary.down.syn_count), (0, 1));
    let connections = analyse(&[down(0, ACK, 5, 5, 100), up(1, ACK, 5, 105, 0)]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.initial_sequence_number, summary.down.initial_sequence_number), (None, None));
}

#[test]
fn without_handshake_the_well_known_port_is_the_server() {
    assert_eq!(client_port(&[down(0, ACK, 5, 5, 100), up(1, ACK, 5, 105, 0)]), (CLIENT_PORT, true));
    let between = |first: u16, second: u16| {
        client_port(&[Segment { source_port: first, destination_port: second, ..up(0, ACK, 0, 0, 10) }])
    };
    assert_eq!(between(8080, 50000), (50000, true));
    assert_eq!(between(50000, 8080), (50000, true));
    assert_eq!(between(6000, 8080), (8080, true));
    assert_eq!(between(7000, 7000), (7000, true));
}

#[test]
fn simultaneous_open_is_one_connection() {
    let both = [up(0, SYN, -1, 0, 0), down(1, SYN, -1, 0, 0), up(40, SYN_ACK, -1, 0, 0), down(41, SYN_ACK, -1, 0, 0)];
    assert_eq!(analyse(&both).len(), 1);
    assert_eq!(client_port(&both), (CLIENT_PORT, false));
}

#[test]
fn a_retransmitted_syn_is_no_new_connection() {
    let mut segments = vec![up(-3_000_000, SYN, -1, 0, 0), up(-1_000_000, SYN, -1, 0, 0)];
    segments.extend(NUMBERS.handshake());
    let connections = analyse(&segments);
    assert_eq!(connections.len(), 1);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.syn_count, summary.up.retransmitted_packets), (3, 2));
    assert_eq!(summary.handshake_syn_ack_ns, None, "no telling which SYN was answered");
}

#[test]
fn a_handshake_that_was_captured_twice_is_timed() {
    for ip_id in [0, 7] {
        let mut segments = Vec::new();
        for (segment, later_us) in NUMBERS.handshake().into_iter().flat_map(|segment| [(segment, 0), (segment, 16)]) {
            segments.push(Segment { ip_id, time_ns: segment.time_ns + later_us * 1000, ..segment });
        }
        let connections = analyse(&segments);
        let Some(summary) = connections.summary(0) else { unreachable!() };
        assert_eq!((summary.up.syn_count, summary.up.retransmitted_packets), (1, 0));
        assert_eq!((summary.handshake_syn_ack_ns, summary.handshake_ack_ns), (Some(20_000_000), Some(1_000_000)));
    }
}

#[test]
fn times_as_far_apart_as_64_bits_allow_are_read() {
    let [syn, syn_ack, ack]: [Segment<'_>; 3] = NUMBERS.handshake().try_into().unwrap();
    let request = up(0, ACK, 0, 0, 10);
    let segments = [
        Segment { time_ns: i64::MIN + 1, ..syn },
        Segment { time_ns: i64::MAX - 9, ..syn_ack },
        Segment { time_ns: i64::MAX - 2, ..ack },
        Segment { time_ns: i64::MAX - 1, ip_id: 0, ..request },
        Segment { time_ns: i64::MAX, ip_id: 0, ..request },
    ];
    let connections = analyse(&segments);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.handshake_syn_ack_ns, summary.handshake_ack_ns), (Some(i64::MAX), Some(7)));
    assert_eq!(summary.up.duplicate_packets, 1);
}

#[test]
fn timestamps_identify_the_answered_syn() {
    let segments = [
        timestamps(up(0, SYN, -1, 0, 0), 100, 0),
        timestamps(up(1_000_000, SYN, -1, 0, 0), 1100, 0),
        timestamps(down(1_010_000, SYN_ACK, -1, 0, 0), 7, 100),
    ];
    let connections = analyse(&segments);
    assert_eq!(connections.summary(0).and_then(|summary| summary.handshake_syn_ack_ns), Some(1_010_000_000));
}

#[test]
fn used_ports_make_a_new_connection_each_time() {
    let other = Numbers { client: 77_000_000, server: 5 };
    for ending in [FIN, RST, ACK] {
        let mut segments = NUMBERS.handshake();
        segments.push(up(30_000, ACK, 0, 0, 100));
        segments.push(up(40_000, ending, 100, 0, 0));
        segments.push(down(41_000, ending, 0, 101, 0));
        segments.extend(other.handshake());
        segments.push(other.up(60_000, ACK, 0, 0, 50));
        let connections = analyse(&segments);
        assert_eq!(connections.len(), 2);
        let packets: Vec<u64> = connections.summaries().map(|summary| summary.packets).collect();
        assert_eq!(packets, [6, 4]);
        let bytes: Vec<u64> = connections.summaries().map(|summary| summary.up.stream_bytes).collect();
        assert_eq!(bytes, [100, 50]);
        assert_eq!(columns(&connections).starts, [0, 6, 10]);
    }
}

#[test]
fn a_server_that_reopens_from_its_side_is_a_new_connection() {
    let mut segments = NUMBERS.handshake();
    segments.push(up(40_000, RST, 0, 0, 0));
    segments.push(down(90_000, SYN, 500, 0, 0));
    let connections = analyse(&segments);
    assert_eq!(connections.len(), 2);
    assert_eq!(connections.summary(1).map(|summary| summary.client_port), Some(SERVER_PORT));
}

#[test]
fn a_new_syn_ack_without_its_syn_is_a_new_connection() {
    let other = Numbers { client: 77_000_000, server: 5 };
    let mut segments = NUMBERS.handshake();
    segments.push(down(30_000, ACK, 0, 0, 100));
    segments.extend_from_slice(&other.handshake()[1..]);
    let connections = analyse(&segments);
    assert_eq!(connections.len(), 2);
    assert_eq!(
        connections.summary(1).map(|summary| (summary.client_port, summary.side_guessed)),
        Some((CLIENT_PORT, false))
    );
}

#[test]
fn a_syn_that_came_late_belongs_to_its_connection() {
    let mut segments = NUMBERS.handshake();
    segments.swap(0, 1);
    segments.push(up(30_000, ACK, 0, 0, 100));
    let connections = analyse(&segments);
    assert_eq!(connections.len(), 1);
    assert_eq!(client_port(&segments), (CLIENT_PORT, false));
    assert_eq!(columns(&connections).sequence_offset, [-1, -1, 0, 0]);

    let late = [up(0, ACK, 0, 0, 100), up(1, SYN, -1, 0, 0), up(2, ACK, 100, 0, 100)];
    let connections = analyse(&late);
    assert_eq!(connections.len(), 1);
    assert_eq!(columns(&connections).sequence_offset, [0, -1, 100]);
}

#[test]
fn both_tunnels_of_a_connection_meet() {
    let tunnel = |identifier| Tunnel { kind: TunnelKind::GtpU, identifier };
    let segments: Vec<_> = NUMBERS
        .handshake()
        .into_iter()
        .map(|segment| Segment { tunnel: tunnel(if segment.source_port == CLIENT_PORT { 11 } else { 22 }), ..segment })
        .collect();
    let connections = analyse(&segments);
    assert_eq!(connections.len(), 1);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.tunnel, summary.tunnel_up, summary.tunnel_down), (TunnelKind::GtpU, 11, 22));
}

#[test]
fn how_it_closed() {
    let ends = |ending: &[Segment<'static>]| after_handshake(ending).0.summary(0).map(|summary| summary.close);
    assert_eq!(ends(&[]), Some(Close::Open));
    assert_eq!(ends(&[up(30_000, FIN, 0, 0, 0)]), Some(Close::Open), "half closed");
    assert_eq!(ends(&[up(30_000, FIN, 0, 0, 0), down(31_000, FIN, 0, 1, 0)]), Some(Close::Fin));
    assert_eq!(ends(&[up(30_000, FIN, 0, 0, 0), up(31_000, RST, 1, 0, 0)]), Some(Close::Reset));
    let both = [up(30_000, FIN, 0, 0, 0), down(31_000, FIN, 0, 1, 0), up(32_000, RST, 1, 0, 0)];
    assert_eq!(ends(&both), Some(Close::Fin), "a reset after both FINs changes nothing");
    let Some(summary) = analyse(&both).summary(0).map(|summary| (summary.up.fin_time_ns, summary.up.reset_time_ns))
    else {
        unreachable!()
    };
    assert_eq!(summary, (Some(30_000_000), Some(32_000_000)));
}

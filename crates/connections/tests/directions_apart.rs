//! Files that hold one direction of a connection behind the other.

use crate::transcript::*;
use pepscope_wire::segment::Segment;

/// A server that sends 60 segments and ends; every packet is acknowledged 10 ms later.
fn download() -> Vec<Segment<'static>> {
    let mut segments = NUMBERS.handshake();
    for number in 0..60_i64 {
        let (at_us, offset) = (30_000 + 20_000 * number, 1000 * number);
        segments.push(down(at_us, ACK, offset, 0, 1000));
        segments.push(up(at_us + 10_000, ACK, 0, offset + 1000, 0));
    }
    segments.push(down(1_300_000, FIN, 60_000, 0, 0));
    segments.push(up(1_310_000, FIN, 0, 60_001, 0));
    segments
}

fn apart(mut segments: Vec<Segment<'static>>, first_port: u16) -> Vec<Segment<'static>> {
    segments.sort_by_key(|segment| segment.source_port != first_port);
    segments
}

#[test]
fn either_direction_first_is_one_connection_with_the_same_windows() {
    let in_order = analyse(&download());
    for first_port in [CLIENT_PORT, SERVER_PORT] {
        let segments = apart(download(), first_port);
        let connections = analyse(&segments);
        assert_eq!(connections.len(), 1);
        let (Some(whole), Some(summary)) = (in_order.summary(0), connections.summary(0)) else { unreachable!() };
        assert_eq!((summary.client_port, summary.side_guessed, summary.close), (CLIENT_PORT, false, whole.close));
        assert_eq!((summary.up.packets, summary.down.stream_bytes), (63, 60_000));
        for (one, other) in [(&summary.up, &whole.up), (&summary.down, &whole.down)] {
            let windows = |flow: &pepscope_connections::FlowSummary| (flow.window_min_bytes, flow.window_max_bytes);
            assert_eq!((windows(one), one.window_shift), (windows(other), other.window_shift));
            assert_eq!(windows(one), (64_000, 64_000));
        }
        let (window_bytes, flags) = (columns(&connections).window_bytes, columns(&connections).flags);
        for (window, flag) in window_bytes.into_iter().zip(flags) {
            assert_eq!(window, if flag & SYN == 0 { 64_000 } else { 500 }, "of no SYN");
        }
    }
}

#[test]
fn without_its_syn_ack_a_syn_of_before_the_first_packet_is_the_connections() {
    let mut segments = apart(download(), SERVER_PORT);
    segments.remove(0);
    assert_eq!(analyse(&segments).len(), 1);
}

#[test]
fn a_later_syn_of_another_number_is_a_new_connection() {
    let other = Numbers { client: 77_000_000, server: 5 };
    let mut segments = apart(download(), SERVER_PORT);
    segments.retain(|segment| segment.source_port == SERVER_PORT);
    let later = other.handshake().into_iter();
    segments.extend(later.map(|segment| Segment { time_ns: segment.time_ns + 5_000_000_000, ..segment }));
    assert_eq!(analyse(&segments).len(), 2);
}

//! Retransmissions, reordering, duplicates and gaps, as one capture sees them.

use crate::transcript::*;
use pepscope_connections::mark;
use pepscope_wire::segment::Segment;

#[test]
fn bytes_seen_before_are_a_retransmission() {
    let (connections, marks) = after_handshake(&[
        up(30_000, ACK, 0, 0, 100),
        up(31_000, ACK, 100, 0, 100),
        up(300_000, ACK, 0, 0, 100),
        down(320_000, ACK, 0, 200, 0),
    ]);
    assert_eq!(marks, [0, 0, mark::RETRANSMISSION, 0]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    let up = summary.up;
    assert_eq!(
        (up.retransmitted_packets, up.retransmitted_bytes, up.payload_bytes, up.stream_bytes),
        (1, 100, 300, 200)
    );
    assert_eq!((up.missed_bytes, up.round_trip_time_samples), (0, 0), "Karn: one of the two was sent twice");
}

#[test]
fn the_very_same_packet_is_a_duplicate() {
    let data = Segment { ip_id: 7, ..up(30_000, ACK, 0, 0, 100) };
    let copy = Segment { time_ns: data.time_ns + 10_000, ..data };
    let again = Segment { ip_id: 8, time_ns: data.time_ns + 50_000_000, ..data };
    let late = Segment { time_ns: again.time_ns + 300_000_000, ..again };
    let (connections, marks) = after_handshake(&[data, copy, again, late]);
    assert_eq!(marks, [0, mark::DUPLICATE, mark::RETRANSMISSION, mark::RETRANSMISSION]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.duplicate_packets, summary.up.retransmitted_packets), (1, 2));
}

#[test]
fn without_ip_identification_only_what_comes_too_soon_is_a_duplicate() {
    // The path's round trip is 21 ms.
    let data = up(30_000, ACK, 0, 0, 100);
    let after = |microseconds: i64| Segment { time_ns: data.time_ns + microseconds * 1000, ..data };
    let others = [up(30_001, ACK, 100, 0, 100), up(30_002, ACK, 200, 0, 100)];
    let (connections, marks) = after_handshake(&[data, others[0], after(3), others[1], after(40_000), after(40_100)]);
    assert_eq!(marks, [0, 0, mark::DUPLICATE, 0, mark::RETRANSMISSION, mark::DUPLICATE]);
    assert_eq!(connections.summary(0).map(|summary| summary.up.retransmitted_packets), Some(1));
    // Fewer than half of a round trip of 21 ms, but more than any mirror port takes.
    assert_eq!(after_handshake(&[data, after(1_100)]).1, [0, mark::RETRANSMISSION]);
    // Without a handshake only what follows at once.
    for (microseconds, expected) in [(40, mark::DUPLICATE), (80, mark::RETRANSMISSION)] {
        assert_eq!(columns(&analyse(&[data, after(microseconds)])).marks, [0, expected]);
    }
    // A new TSval makes another packet of it.
    let again = timestamps(after(3), 8, 1);
    let (_, marks) = after_handshake(&[timestamps(data, 7, 1), again]);
    assert_eq!(marks[1] & !mark::HAS_TIMESTAMPS, mark::RETRANSMISSION);
}

#[test]
fn a_short_round_trip_leaves_less_time_for_duplicates() {
    let syn_ack = Segment { time_ns: 60_000, ..down(0, SYN_ACK, -1, 0, 0) };
    let opening = [up(0, SYN, -1, 0, 0), syn_ack, up(70, ACK, 0, 0, 0)];
    for (microseconds, expected) in [(30, mark::DUPLICATE), (75, mark::RETRANSMISSION)] {
        let data = up(100, ACK, 0, 0, 100);
        let again = Segment { time_ns: data.time_ns + microseconds * 1000, ..data };
        let found = analyse(&[&opening[..], &[data, again]].concat());
        assert_eq!(columns(&found).marks[4], expected, "a round trip of 70 us, {microseconds} us");
    }
}

#[test]
fn copies_of_syn_and_fin_are_duplicates_and_equal_acknowledgements_are_not() {
    let copied = |segment: Segment<'static>| [segment, Segment { time_ns: segment.time_ns + 2_000, ..segment }];
    let packets: Vec<_> = NUMBERS.handshake().into_iter().flat_map(copied).collect();
    let connections = analyse(&packets);
    let marks = columns(&connections).marks;
    assert_eq!((marks[1], marks[3], marks[5] & mark::DUPLICATE), (mark::DUPLICATE, mark::DUPLICATE, 0));
    let (connections, marks) = after_handshake(&copied(up(30_000, FIN, 0, 0, 0)));
    assert_eq!(marks, [0, mark::DUPLICATE]);
    assert_eq!(connections.summary(0).map(|summary| summary.up.retransmitted_packets), Some(0));
}

#[test]
fn a_duplicate_does_not_spoil_the_sample() {
    let data = Segment { ip_id: 7, ..up(30_000, ACK, 0, 0, 100) };
    let (connections, _) = after_handshake(&[data, data, down(50_000, ACK, 0, 100, 0)]);
    assert_eq!(connections.summary(0).and_then(|summary| summary.up.round_trip_time_min_ns), Some(20_000_000));
}

#[test]
fn without_timestamps_the_delay_distinguishes_reordering_from_loss() {
    // The server is 20 ms away, the client 1 ms.
    for (late_us, expected) in [(31_000, mark::REORDERED), (70_000, mark::RETRANSMISSION)] {
        let (_, marks) = after_handshake(&[
            down(30_000, ACK, 0, 0, 100),
            down(30_100, ACK, 200, 0, 100),
            down(late_us, ACK, 100, 0, 100),
        ]);
        assert_eq!(marks, [0, mark::GAP_BEFORE, expected]);
    }
    let (connections, marks) =
        after_handshake(&[up(30_000, ACK, 100, 0, 100), up(30_500, ACK, 0, 0, 100), up(32_000, ACK, 200, 0, 0)]);
    assert_eq!(marks, [mark::GAP_BEFORE, mark::REORDERED, 0]);
    assert_eq!(connections.summary(0).map(|summary| summary.up.reordered_packets), Some(1));
}

#[test]
fn timestamps_distinguish_reordering_from_loss_at_any_delay() {
    for (late_us, tsval, expected) in [
        (90_000, 50, mark::REORDERED),
        (30_200, 61, mark::RETRANSMISSION),
        (30_200, 60, mark::REORDERED),
        (90_000, 60, mark::RETRANSMISSION),
    ] {
        let (_, marks) = after_handshake(&[
            timestamps(down(30_000, ACK, 0, 0, 100), 50, 1),
            timestamps(down(30_100, ACK, 200, 0, 100), 60, 1),
            timestamps(down(late_us, ACK, 100, 0, 100), tsval, 1),
        ]);
        assert_eq!(marks[2] & !mark::HAS_TIMESTAMPS, expected);
    }
}

#[test]
fn a_retransmission_may_carry_new_bytes_too() {
    let (connections, marks) =
        after_handshake(&[up(30_000, ACK, 0, 0, 100), up(300_000, ACK, 50, 0, 100), up(301_000, ACK, 150, 0, 10)]);
    assert_eq!(marks, [0, mark::RETRANSMISSION, 0]);
    assert_eq!(
        connections.summary(0).map(|summary| (summary.up.stream_bytes, summary.up.missed_bytes)),
        Some((160, 0))
    );
}

#[test]
fn what_was_acknowledged_but_never_captured_is_missed() {
    let (connections, marks) = after_handshake(&[
        up(30_000, ACK, 0, 0, 100),
        up(31_000, ACK, 300, 0, 100),
        up(32_000, ACK, 1000, 0, 100),
        down(50_000, ACK, 0, 500, 0),
        down(51_000, ACK, 0, 1100, 0),
        down(52_000, ACK, 0, 1250, 0),
    ]);
    assert_eq!(marks[1] & mark::GAP_BEFORE, mark::GAP_BEFORE);
    assert_eq!(connections.summary(0).map(|summary| summary.up.missed_bytes), Some(200 + 600 + 150));
}

#[test]
fn unacknowledged_bytes_do_not_count_as_missed() {
    let (connections, _) =
        after_handshake(&[up(30_000, ACK, 0, 0, 100), up(31_000, ACK, 300, 0, 100), down(50_000, ACK, 0, 150, 0)]);
    assert_eq!(connections.summary(0).map(|summary| summary.up.missed_bytes), Some(50));
}

#[test]
fn a_fin_is_no_missed_byte() {
    for fin_captured in [true, false] {
        let mut segments = vec![up(30_000, ACK, 0, 0, 100)];
        if fin_captured {
            segments.push(up(31_000, FIN, 100, 0, 0));
        }
        segments.push(down(50_000, ACK, 0, 101, 0));
        let (connections, _) = after_handshake(&segments);
        assert_eq!(
            connections.summary(0).map(|summary| (summary.up.missed_bytes, summary.up.stream_bytes)),
            Some((0, 100))
        );
    }
    let (connections, marks) = after_handshake(&[
        up(30_000, ACK, 0, 0, 100),
        up(31_000, FIN, 250, 0, 0),
        up(400_000, FIN, 250, 0, 0),
        down(450_000, ACK, 0, 251, 0),
    ]);
    assert_eq!(marks[1..3], [mark::GAP_BEFORE, mark::RETRANSMISSION]);
    assert_eq!(connections.summary(0).map(|summary| summary.up.missed_bytes), Some(150));
}

#[test]
fn a_capture_that_began_late_does_not_miss_what_came_before() {
    let connections = analyse(&[
        down(0, ACK, 0, 5000, 0),
        up(10, ACK, 7000, 0, 100),
        down(20, ACK, 0, 7100, 0),
        up(30, ACK, 7100, 0, 100),
    ]);
    assert_eq!(columns(&connections).sequence_offset, [0, 2000, 0, 2100]);
    assert_eq!(connections.summary(0).map(|summary| summary.up.missed_bytes), Some(2000), "acknowledged since");
}

#[test]
fn many_holes_are_all_counted() {
    let mut segments = Vec::new();
    for number in 0..2000_i64 {
        segments.push(up(30_000 + number * 100, ACK, number * 200, 0, 100));
        segments.push(down(30_050 + number * 100, ACK, 0, number * 200 + 100, 0));
    }
    let (connections, _) = after_handshake(&segments);
    assert_eq!(connections.summary(0).map(|summary| summary.up.missed_bytes), Some(1999 * 100));
}

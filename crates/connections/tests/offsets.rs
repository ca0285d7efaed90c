//! 64-bit stream offsets: across wraps, through garbage, and where the beginning is missing.

use crate::transcript::*;
use pepscope_connections::{mark, NO_ACKNOWLEDGEMENT};
use pepscope_wire::segment::Segment;

#[test]
fn offsets_go_on_across_many_wraps() {
    let numbers = Numbers { client: u32::MAX - 5, server: u32::MAX };
    let mut segments = numbers.handshake();
    const STEP: i64 = 3_000_000;
    for number in 0..4000 {
        let data = Segment { payload_length: STEP as u32, ..numbers.up(30_000 + number, ACK, number * STEP, 0, 60) };
        segments.push(data);
        segments.push(numbers.down(30_000 + number, ACK, 0, (number + 1) * STEP, 0));
    }
    let connections = analyse(&segments);
    let columns = columns(&connections);
    assert_eq!(columns.sequence_offset[..4], [-1, -1, 0, 0]);
    assert_eq!(columns.acknowledgement_offset[..4], [NO_ACKNOWLEDGEMENT, 0, 0, 0]);
    assert_eq!(columns.sequence_offset.iter().max(), Some(&(3999 * STEP)));
    assert_eq!(columns.acknowledgement_offset.last(), Some(&(4000 * STEP)));
    let summary = connections.summary(0).map(|summary| (summary.up.stream_bytes, summary.up.missed_bytes));
    assert_eq!(summary, Some((4000 * STEP as u64, 0)));
}

#[test]
fn garbage_numbers_do_not_move_the_stream() {
    let numbers = Numbers { client: 3_000_000_000, server: 1 };
    let mut segments = numbers.handshake();
    segments.push(numbers.up(30_000, ACK, 0, 0, 100));
    segments.push(Segment { sequence: 0, ..numbers.up(31_000, RST, 0, 0, 0) });
    segments.push(Segment { sequence: 17, acknowledgement: 99_000_000, ..numbers.up(31_000, ACK, 0, 0, 0) });
    segments.push(Segment { acknowledgement: 700_000_000, ..numbers.down(31_500, ACK, 0, 0, 0) });
    segments.push(numbers.up(32_000, ACK, 100, 0, 100));
    segments.push(numbers.down(33_000, ACK, 0, 200, 0));
    let connections = analyse(&segments);
    assert_eq!(columns(&connections).sequence_offset[7..], [100, 0]);
    assert_eq!(columns(&connections).acknowledgement_offset[7..], [0, 200]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.stream_bytes, summary.up.missed_bytes, summary.up.retransmitted_packets), (200, 0, 0));
    assert_eq!((summary.down.missed_bytes, summary.up.round_trip_time_samples), (0, 1));
}

#[test]
fn a_long_hole_in_the_capture_is_accepted_at_the_second_packet() {
    const FAR: i64 = 900_000_000;
    let (connections, marks) = after_handshake(&[
        up(30_000, ACK, 0, 0, 100),
        up(31_000, ACK, FAR, 0, 100),
        up(32_000, ACK, FAR + 100, 0, 100),
        down(33_000, ACK, 0, FAR + 200, 0),
    ]);
    assert_eq!(columns(&connections).sequence_offset[3..6], [0, FAR, FAR + 100]);
    assert_eq!(marks[2], 0);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.stream_bytes, summary.up.missed_bytes), (FAR as u64 + 200, FAR as u64 - 100));
}

#[test]
fn a_late_packet_of_the_previous_connection_disturbs_nothing() {
    let next = Numbers { client: 1_000_000, server: 9 };
    let mut segments = NUMBERS.handshake();
    segments.push(up(30_000, ACK, 0, 0, 100));
    segments.push(up(31_000, RST, 100, 0, 0));
    segments.extend(next.handshake());
    segments.push(up(40_000, ACK, 0, 0, 100));
    segments.push(next.up(50_000, ACK, 0, 0, 30));
    segments.push(next.down(60_000, ACK, 0, 30, 0));
    let connections = analyse(&segments);
    let Some(summary) = connections.summary(1) else { unreachable!() };
    assert_eq!((summary.up.stream_bytes, summary.up.missed_bytes), (30, 0));
    assert_eq!((summary.up.retransmitted_packets, summary.up.round_trip_time_samples), (0, 1));
}

#[test]
fn without_syn_the_lowest_of_the_first_numbers_is_the_beginning() {
    let connections = analyse(&[
        down(0, ACK, 500, 300, 100),
        up(1, ACK, 300, 400, 0),
        down(2, ACK, 400, 300, 100),
        up(3, ACK, 300, 600, 10),
    ]);
    assert_eq!(columns(&connections).sequence_offset, [100, 0, 0, 0]);
    assert_eq!(columns(&connections).acknowledgement_offset, [0, 0, 0, 200]);
    assert_eq!(
        connections.summary(0).map(|summary| (summary.down.stream_bytes, summary.down.missed_bytes)),
        Some((200, 0))
    );
}

#[test]
fn data_in_a_syn_begins_the_stream() {
    let mut segments = NUMBERS.handshake();
    segments[0].payload = payload(0, 40);
    segments[0].payload_length = 40;
    segments[1] = down(20_000, SYN | ACK, -1, 40, 0);
    segments[2] = up(21_000, ACK, 40, 0, 0);
    let connections = analyse(&segments);
    assert_eq!(columns(&connections).sequence_offset, [-1, -1, 40]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.stream_bytes, summary.up.missed_bytes), (40, 0));
    assert_eq!(columns(&connections).marks[2] & mark::GAP_BEFORE, 0);
}

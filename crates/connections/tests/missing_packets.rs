//! Kinds of packets that a capture lacks.

use crate::transcript::*;
use pepscope_connections::{mark, MissingPackets, NotCaptured};
use pepscope_wire::segment::{flag, Segment};

/// A request, an answer of so many segments that every second one is acknowledged, and the end.
fn download(segments: i64) -> Vec<Segment<'static>> {
    let mut all = NUMBERS.handshake();
    all.push(up(30_000, ACK | flag::PSH, 0, 0, 300));
    for number in 0..segments {
        let time = 50_000 + 1_000 * number;
        let push = if number % 4 == 3 { flag::PSH } else { 0 };
        all.push(down(time, ACK | push, 1000 * number, 300, 1000));
        if number % 2 == 1 {
            all.push(up(time + 500, ACK, 300, 1000 * (number + 1), 0));
        }
    }
    all.push(down(90_000_000, FIN, 1000 * segments, 300, 0));
    all.push(up(90_001_000, FIN, 300, 1000 * segments + 1, 0));
    all
}

fn kept(segments: &[Segment<'static>], keep: impl Fn(&Segment<'static>) -> bool) -> (MissingPackets, MissingPackets) {
    let chosen: Vec<_> = segments.iter().filter(|segment| keep(segment)).copied().collect();
    let connections = analyse(&chosen);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    (summary.up.missing_packets, summary.down.missing_packets)
}

fn is_up(segment: &Segment<'_>) -> bool {
    segment.source_port == CLIENT_PORT
}

#[test]
fn packets_removed_by_a_filter_are_counted() {
    use MissingPackets::{All, Data, None, PureAcknowledgements};
    let all = download(200);
    assert_eq!(kept(&all, |_| true), (None, None));
    assert_eq!(kept(&all, |segment| !is_up(segment)), (All, None));
    assert_eq!(kept(&all, is_up), (None, All));
    assert_eq!(kept(&all, |segment| segment.flags & flag::PSH != 0), (PureAcknowledgements, None));
    assert_eq!(kept(&all, |segment| segment.payload_length > 200), (PureAcknowledgements, None));
    assert_eq!(kept(&all, |segment| segment.payload_length == 0), (None, Data));
}

#[test]
fn a_short_or_one_sided_conversation_lacks_nothing_provably() {
    use MissingPackets::None;
    let lone: Vec<_> = (0..5).map(|number| up(number * 1_000_000, SYN, -1, 0, 0)).collect();
    assert_eq!(kept(&lone, |_| true), (None, None));
    let all = download(8);
    assert_eq!(kept(&all, |segment| segment.payload_length > 0), (None, None), "an initial window may come at once");
    // Questions and answers may acknowledge one another for ever.
    let mut dialogue = Vec::new();
    for turn in 0..100 {
        dialogue.push(up(turn * 2_000, ACK, 100 * turn, 4000 * turn, 100));
        for part in 0..4 {
            dialogue.push(down(turn * 2_000 + 100 + part, ACK, 4000 * turn + 1000 * part, 100 * (turn + 1), 1000));
        }
    }
    assert_eq!(kept(&dialogue, |_| true), (None, None));
}

#[test]
fn what_was_not_captured_is_counted_by_connection_and_packet() {
    let all = download(200);
    let one_way: Vec<_> = all.iter().filter(|segment| !is_up(segment)).copied().collect();
    let cut = Segment { header_truncated: true, options_truncated: true, ..one_way[5] };
    let connections = analyse(&[&one_way[..], &[cut]].concat());
    let found = connections.not_captured();
    assert_eq!((found.packets_with_truncated_options, found.one_way), (1, 1));
    assert_eq!((found.without_acknowledgements, found.without_data), (0, 0));
    assert_eq!(analyse(&all).not_captured(), NotCaptured::default());
    let marks = columns(&connections).marks;
    assert_eq!(marks.iter().filter(|mark| **mark & mark::OPTIONS_TRUNCATED != 0).count(), 1);
}

#[test]
fn a_dead_receiver_is_not_taken_for_a_filter() {
    let mut sent: Vec<_> = (0..10).map(|number| up(1_000 * number, ACK, 1000 * number, 0, 1000)).collect();
    sent.extend((1..12).map(|again| up(1_000_000 * again, ACK, 0, 0, 1000)));
    assert_eq!(kept(&sent, |_| true), (MissingPackets::None, MissingPackets::None));
}

//! Payload samples: which regions are kept, and under which offsets.

use crate::transcript::*;
use pepscope_connections::{Analysis, ChoosePieces, Offered, Payload, Settings, PIECE_BYTES};
use pepscope_wire::segment::Segment;

const BLOCK: i64 = 1 << 16;

#[test]
fn kept_blocks_get_sparser_and_do_not_depend_on_segmentation() {
    let kept =
        |step: i64| {
            let mut segments = NUMBERS.handshake();
            segments.extend((0..80 * BLOCK / step).map(|number| Segment {
                payload_length: step as u32,
                ..up(30_000 + number, ACK, number * step, 0, 300)
            }));
            let connections = analyse(&segments);
            let Some(pieces) = connections.payload() else { unreachable!() };
            let mut blocks: Vec<i64> = Vec::new();
            for (offset, bytes) in pieces.of(0, 0) {
                assert_eq!(bytes, payload(offset, PIECE_BYTES as u32));
                blocks.push(offset / BLOCK);
            }
            blocks.dedup();
            assert_eq!(pieces.of(0, 1).count(), 0);
            blocks
        };
    let expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64];
    assert_eq!(kept(1024), expected);
    assert_eq!(kept(1448)[..20], expected[..20]);
}

#[test]
fn only_first_copies_are_kept() {
    let (connections, _) = after_handshake(&[
        up(30_000, ACK, 0, 0, 100),
        up(90_000, ACK, 0, 0, 100),
        up(91_000, ACK, 50, 0, 100),
        down(92_000, ACK, 0, 150, 20),
    ]);
    let Some(pieces) = connections.payload() else { unreachable!() };
    assert_eq!(pieces.of(0, 0).map(|(offset, _)| offset).collect::<Vec<_>>(), [0, 50]);
    assert_eq!(pieces.of(0, 1).collect::<Vec<_>>(), [(0, payload(0, 20))]);
    assert_eq!(pieces.of(1, 0).count(), 0);
}

#[test]
fn offsets_follow_a_beginning_that_is_found_late() {
    let segments = [up(0, ACK, 5000, 0, 100), up(1, ACK, 4000, 0, 100), down(2, ACK, 0, 5100, 9)];
    let connections = analyse(&segments);
    let Some(pieces) = connections.payload() else { unreachable!() };
    assert_eq!(pieces.of(0, 0).collect::<Vec<_>>(), [(1000, payload(5000, 100)), (0, payload(4000, 100))]);
}

#[test]
fn the_server_may_speak_first() {
    let segments = [down(0, ACK, 0, 0, 10), up(1, ACK, 0, 10, 20)];
    let connections = analyse(&segments);
    let Some(pieces) = connections.payload() else { unreachable!() };
    assert_eq!(pieces.of(0, 0).map(|(_, bytes)| bytes.len()).collect::<Vec<_>>(), [20]);
    assert_eq!(pieces.of(0, 1).map(|(_, bytes)| bytes.len()).collect::<Vec<_>>(), [10]);
}

#[test]
fn hashes_need_the_first_sixteen_bytes() {
    let snapped = |length: u32, captured: u32| Segment { payload_length: length, ..up(30_000, ACK, 0, 0, captured) };
    let hash = |segment| {
        let connections = analyse(&[segment]);
        columns(&connections).payload_hash[0]
    };
    let whole = hash(snapped(100, 100));
    assert_ne!(whole, 0);
    assert_eq!(hash(snapped(100, 16)), whole);
    assert_eq!(hash(snapped(100, 15)), 0);
    assert_ne!(hash(snapped(15, 15)), 0);
    assert_ne!(hash(snapped(15, 15)), whole);
    assert_eq!(hash(snapped(0, 0)), 0);
}

#[test]
fn nothing_is_kept_unless_asked_for() {
    let mut analysis = Analysis::new(Settings::default());
    analysis.push(&up(0, ACK, 0, 0, 100));
    let connections = analysis.finish();
    assert!(connections.payload().is_none() && connections.columns().is_none());
    assert_eq!(connections.packet_count(), 1);
}

/// Wants what begins a stream, and what does more than to continue it.
struct Beginnings;

impl ChoosePieces for Beginnings {
    fn is_wanted(&mut self, connection: usize, side: usize, offered: &Offered<'_>) -> bool {
        assert_eq!(connection, 0);
        assert_eq!(offered.bytes.map(<[u8]>::len), Some((offered.end - offered.start).min(256) as usize));
        offered.begins || (side == 1 && offered.is_new && offered.acknowledgement == 400)
    }
}

#[test]
fn of_a_sample_only_what_is_chosen_is_kept() {
    let mut segments = NUMBERS.handshake();
    segments.extend([
        up(30_000, ACK, 0, 0, 300),
        up(31_000, ACK, 300, 0, 100),
        up(90_000, ACK, 0, 0, 300), // again, which is not kept although the choice wants it
        down(91_000, ACK, 0, 300, 10),
        down(92_000, ACK, 10, 300, 10),
        down(93_000, ACK, 20, 400, 10),
        down(94_000, ACK, 30, 400, 0),
    ]);
    let mut analysis = Analysis::new(Settings { columns: false, payload: Payload::Chosen(|| Box::new(Beginnings)) });
    segments.iter().for_each(|segment| analysis.push(segment));
    let connections = analysis.finish();
    let Some(pieces) = connections.payload() else { unreachable!() };
    assert_eq!(pieces.of(0, 0).collect::<Vec<_>>(), [(0, payload(0, 256))]);
    assert_eq!(pieces.of(0, 1).collect::<Vec<_>>(), [(0, payload(0, 10)), (20, payload(20, 10))]);
}

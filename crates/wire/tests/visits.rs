//! Segments shown many at a time are those that are given one by one, and as many are counted.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::convert::Infallible;
use std::io::Cursor;
use std::path::PathBuf;

use crate::made::files::{self, Order};
use crate::made::frames::{ethernet, Ip, Tcp};
use pepscope_wire::segment::Segment;
use pepscope_wire::{CaptureReader, PlainSegment, SegmentVisitor};
use proptest::prelude::*;

/// What plain segments and others both say.
macro_rules! told {
    ($segment:ident, $addresses:expr, $timestamps:expr) => {{
        let segment = $segment;
        let places = ($addresses, segment.source_port, segment.destination_port);
        let numbers = (segment.flags, segment.sequence, segment.acknowledgement, segment.window, $timestamps);
        let sum = segment.payload.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(u64::from(*byte)));
        let data = (segment.payload_length, segment.payload.len(), sum);
        format!("{:?}", (segment.frame_index, segment.time_ns, segment.ttl, segment.ip_id, places, numbers, data))
    }};
}

fn told(segment: &Segment<'_>) -> String {
    let addresses = [segment.source, segment.destination].map(u128::from_be_bytes);
    told!(segment, addresses, segment.options.timestamps)
}

fn told_plainly(segment: &PlainSegment<'_>) -> String {
    let whole = |[upper, lower]: [u64; 2]| u128::from(upper) << 64 | u128::from(lower);
    told!(segment, [segment.source, segment.destination].map(whole), segment.timestamps)
}

/// Takes plain segments, or every `refused`th of them as others.
struct Notes {
    refused: usize,
    plain: usize,
    lines: Vec<String>,
}

impl SegmentVisitor for Notes {
    type Stop = Infallible;

    fn visit_plain(&mut self, segment: &PlainSegment<'_>) -> Result<bool, Infallible> {
        self.plain += 1;
        if self.plain % self.refused == 0 {
            return Ok(false);
        }
        self.lines.push(told_plainly(segment));
        Ok(true)
    }

    fn visit(&mut self, segment: &Segment<'_>) -> Result<(), Infallible> {
        self.lines.push(told(segment));
        Ok(())
    }
}

/// Compares the two ways; gives how many segments there were, and how many of them plain ones.
fn compare(open: impl Fn() -> CaptureReader, most: u32, refused: usize) -> (usize, usize) {
    let mut single = open();
    let mut lines = Vec::new();
    while let Some(segment) = single.next_segment().unwrap() {
        lines.push(told(&segment));
    }
    let mut reader = open();
    let mut notes = Notes { refused, plain: 0, lines: Vec::new() };
    while reader.visit_many(most, &mut notes).unwrap() == most {}
    assert_eq!(notes.lines.len(), lines.len());
    for (visited, given) in notes.lines.iter().zip(&lines) {
        assert_eq!(visited, given);
    }
    assert_eq!(reader.tally(), single.tally());
    assert_eq!(reader.visit_many(most, &mut notes).unwrap(), 0, "the end stays the end");
    (lines.len(), notes.plain)
}

#[test]
fn real_captures_are_the_same_both_ways() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let captures = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path());
    let captures: Vec<PathBuf> = captures.filter(|path| path.to_string_lossy().contains(".pcap")).collect();
    assert!(captures.len() > 100);
    let (mut segments, mut plain) = (0, 0);
    for (number, path) in captures.iter().enumerate().step_by(12) {
        let (here, plain_here) =
            compare(|| CaptureReader::open(path).unwrap(), [7, 1000, u32::MAX][number / 12 % 3], 2 + number % 7);
        segments += here;
        plain += plain_here;
    }
    assert!(plain * 10 > segments * 9, "{plain} of {segments} segments are plain");
}

fn packet(tcp: &Tcp, version: u8) -> Vec<u8> {
    let ip = if version == 4 { Ip::example_4() } else { Ip::example_6() };
    ethernet(if version == 4 { 0x0800 } else { 0x86dd }, &ip.packet(6, &tcp.bytes()))
}

prop_compose! {
    /// A frame with TCP of which any byte may be another and the end may be missing, and where in time.
    fn frame()(
        version in prop_oneof![Just(4_u8), Just(6)],
        options in prop_oneof![Just(vec![]), Just(vec![1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4]), Just(vec![2, 4, 5, 180])],
        flags in prop_oneof![3 => Just(0x10_u16), 1 => 0..0x200_u16],
        changed in prop::option::weighted(0.5, (0..80_usize, any::<u8>())),
        kept in prop_oneof![3 => Just(usize::MAX), 1 => 0..100_usize],
        time in (0..3_u32, 0..1_000_000_u32),
    ) -> (u32, u32, Vec<u8>, u32) {
        let mut bytes = packet(&Tcp { flags, options, ..Tcp::example() }, version);
        let wire_bytes = bytes.len() as u32;
        if let Some((at, value)) = changed {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(kept);
        (time.0, time.1, bytes, wire_bytes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_frames_are_the_same_both_ways(
        frames in prop::collection::vec(frame(), 0..40),
        form in 0..3_usize,
        big in any::<bool>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
        most in 1..50_u32,
        refused in 1..4_usize,
    ) {
        let records: Vec<files::Record<'_>> = frames.iter().map(|(s, f, bytes, wire)| (*s, *f, &bytes[..], *wire)).collect();
        let order = if big { Order::Big } else { Order::Little };
        let magic = [files::MICROSECONDS, files::NANOSECONDS, files::MODIFIED][form];
        let mut file = files::pcap(order, magic, 65535, 1, &records);
        if let Some(cut) = cut {
            file.truncate(24 + cut.index(file.len() - 23));
        }
        compare(|| CaptureReader::from_reader(Box::new(Cursor::new(file.clone()))).unwrap(), most, refused);
    }
}

//! What is fuzzed: each parser with the invariants that hold for any input.
//!
//! A target gives a number that stands for the way it behaved; inputs that behave in a new way are mutated further.

use std::collections::hash_map::DefaultHasher;
use std::convert::Infallible;
use std::hash::{Hash, Hasher};
use std::io::Cursor;

use pepscope_wire::bpf::{Instruction, Program};
use pepscope_wire::segment::Segment;
use pepscope_wire::{dissect, tcp, CaptureReader, Decoder, EditableCapture, Frame};
use pepscope_wire::{HeaderKind, PlainSegment, Reject, SegmentVisitor, Tally, KNOWN_LINK_TYPES};

use crate::{references, seeds};

pub struct Target {
    pub name: &'static str,
    pub seeds: fn() -> Vec<Vec<u8>>,
    pub run: fn(&[u8]) -> u64,
}

pub static TARGETS: [Target; 12] = [
    Target { name: "pcap", seeds: seeds::pcap_files, run: capture },
    Target { name: "pcapng", seeds: seeds::pcapng_files, run: capture },
    Target { name: "snoop", seeds: seeds::snoop_files, run: capture },
    Target { name: "compression", seeds: seeds::compressed_files, run: capture },
    Target { name: "link", seeds: seeds::frames, run: link },
    Target { name: "ip", seeds: seeds::packets, run: ip },
    Target { name: "tunnel", seeds: seeds::tunnels, run: ip },
    Target { name: "gtp-u", seeds: gtp_u_seeds, run: gtp_u },
    Target { name: "fragments", seeds: seeds::fragment_sequences, run: fragments },
    Target { name: "tcp-options", seeds: seeds::options, run: tcp_options },
    Target { name: "bpf", seeds: seeds::programs, run: bpf },
    Target { name: "references", seeds: references::seeds, run: |input| kind_of(references::run(input)) },
];

fn kind_of(behaviour: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    behaviour.hash(&mut hasher);
    hasher.finish()
}

/// Order of magnitude, so that every count is not a kind of its own.
fn magnitude(count: u64) -> u32 {
    u64::BITS - count.leading_zeros()
}

fn check_segment(segment: &Segment<'_>) {
    assert!(segment.payload.len() <= segment.payload_length as usize, "more payload captured than on the wire");
    assert!(segment.options_raw.len() <= 40, "more than 40 bytes of options");
    assert!(segment.ip_version == 4 || segment.ip_version == 6, "an unknown IP version");
    assert!(!segment.header_truncated || segment.payload.is_empty(), "payload behind a truncated header");
    assert!(!segment.options_truncated || segment.header_truncated, "truncated options in a whole header");
}

fn check_tally(tally: &Tally, segments: u64) {
    let counts = [
        tally.tcp_segments,
        tally.filtered_out,
        tally.unknown_link_type,
        tally.not_ip,
        tally.not_tcp,
        tally.cut_short,
        tally.malformed,
        tally.too_deep,
        tally.encrypted,
        tally.fragments_held,
    ];
    assert_eq!(counts.iter().sum::<u64>(), tally.frames, "a frame is counted twice or not at all");
    assert_eq!(tally.tcp_segments, segments, "a segment was counted and not delivered");
    assert_eq!(tally.link_types.iter().map(|count| count.frames).sum::<u64>(), tally.frames);
}

/// Takes every plain segment and every other one.
struct Count(u64);

impl SegmentVisitor for Count {
    type Stop = Infallible;

    fn visit_plain(&mut self, _: &PlainSegment<'_>) -> Result<bool, Infallible> {
        self.0 += 1;
        Ok(true)
    }

    fn visit(&mut self, segment: &Segment<'_>) -> Result<(), Infallible> {
        check_segment(segment);
        self.0 += 1;
        Ok(())
    }
}

/// Segments that are shown many at a time are as many as those given one by one.
fn check_visits(input: &[u8], tally: &Tally) {
    let Ok(mut reader) = CaptureReader::from_reader(Box::new(Cursor::new(input.to_vec()))) else { return };
    let mut count = Count(0);
    while matches!(reader.visit_many(100, &mut count), Ok(100)) {}
    assert_eq!(reader.tally(), tally, "what was counted differs");
    assert_eq!(count.0, tally.tcp_segments, "a segment was counted and not shown");
}

/// A capture whose frames are all written again holds as many frames, and damage no longer.
fn check_rewriting(input: &[u8], tally: &Tally) {
    let Ok(capture) = EditableCapture::from_reader(Box::new(Cursor::new(input.to_vec()))) else { return };
    assert_eq!(capture.frames().count() as u64, tally.frames, "frames differ between the two readers");
    let again = capture.with_frames(capture.frames().map(|frame| Some(capture.bytes(frame))));
    let reader = CaptureReader::from_reader(Box::new(Cursor::new(again)));
    assert!(reader.is_ok(), "a rewritten capture cannot be read");
    let Ok(mut reader) = reader else { return };
    while let Ok(Some(_)) = reader.next_segment() {}
    let written = reader.tally();
    assert_eq!((written.frames, written.tcp_segments), (tally.frames, tally.tcp_segments), "rewriting lost frames");
    assert!(written.damage.is_none(), "a rewritten capture is damaged");
}

fn capture(input: &[u8]) -> u64 {
    let mut reader = match CaptureReader::from_reader(Box::new(Cursor::new(input.to_vec()))) {
        Ok(reader) => reader,
        Err(error) => return kind_of(std::mem::discriminant(&error)),
    };
    let mut segments = 0;
    while let Ok(Some(segment)) = reader.next_segment() {
        check_segment(&segment);
        segments += 1;
    }
    let tally = reader.tally();
    check_tally(tally, segments);
    check_visits(input, tally);
    check_rewriting(input, tally);
    let damage = tally.damage.as_ref().map(|damage| {
        assert!(!damage.cause.contains('\n'), "more than one line");
        damage.cause.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>()
    });
    kind_of((
        magnitude(tally.frames),
        magnitude(segments),
        magnitude(tally.not_ip),
        magnitude(tally.cut_short),
        magnitude(tally.malformed),
        tally.link_types.len(),
        damage,
    ))
}

fn frame(link_type: u16, bytes: &[u8], wire_bytes: usize) -> Frame<'_> {
    Frame { index: 0, time_ns: 0, link_type, bytes, wire_bytes: wire_bytes as u32 }
}

fn kind_of_decoded(decoded: &Result<Segment<'_>, Reject>) -> u64 {
    match decoded {
        Ok(segment) => {
            check_segment(segment);
            kind_of((
                segment.ip_version,
                segment.tunnel.kind as u8,
                segment.options_raw.len(),
                segment.options.sack_count,
                magnitude(u64::from(segment.payload_length)),
                segment.payload.len() == segment.payload_length as usize,
                segment.header_truncated,
            ))
        }
        Err(reject) => kind_of(reject),
    }
}

fn link(input: &[u8]) -> u64 {
    let Some((number, bytes)) = input.split_first_chunk::<2>() else { return 0 };
    let number = u16::from_be_bytes(*number);
    let known = KNOWN_LINK_TYPES.contains(&number);
    let mut decoder = Decoder::new();
    let decoded = decoder.decode(frame(number, bytes, bytes.len()));
    assert_eq!(known, !matches!(decoded, Err(Reject::UnknownLinkType)), "the list of link types is wrong");
    let mut headers = Vec::new();
    let dissected = dissect(number, bytes, bytes.len() as u32, &mut headers);
    match &decoded {
        Ok(_) => assert_eq!(dissected, Ok(()), "the dissector refuses a frame that holds a segment"),
        // The dissector does not look whether the fragments of a datagram fit together.
        Err(_) if dissected == Err(Reject::FragmentHeld) => {}
        Err(reject) => assert_eq!(dissected.err().unwrap_or(Reject::NotTcp), *reject, "the two walks differ"),
    }
    for header in headers.iter().filter(|header| header.kind != HeaderKind::Tcp) {
        assert!(header.offset + header.length <= bytes.len(), "a header beyond the frame");
    }
    kind_of((known.then_some(number), kind_of_decoded(&decoded)))
}

/// A packet must read the same behind a VLAN tag, where the fast path does not apply, and cut anywhere.
fn ip(input: &[u8]) -> u64 {
    let mut decoder = Decoder::new();
    let decoded = decoder.decode(frame(101, input, input.len()));
    let mut tagged = vec![0; 12];
    tagged.extend([0x81, 0, 0, 1, 8, 0]);
    tagged.extend(input);
    let mut second = Decoder::new();
    let again = second.decode(frame(1, &tagged, tagged.len()));
    match (&decoded, &again) {
        (Ok(one), Ok(two)) => assert_eq!(format!("{one:?}"), format!("{two:?}"), "fast and slow path differ"),
        (Err(one), Err(two)) => assert_eq!(one, two, "fast and slow path differ"),
        (one, two) => assert_eq!(one.is_ok(), two.is_ok(), "fast and slow path differ"),
    }
    for captured in [input.len() / 2, input.len().saturating_sub(1)] {
        let mut third = Decoder::new();
        let cut = third.decode(frame(101, &input[..captured], input.len()));
        if let (Ok(whole), Ok(cut)) = (&decoded, &cut) {
            assert_eq!(whole.payload_length, cut.payload_length, "the snap length changed the payload length");
            assert_eq!((whole.sequence, whole.source), (cut.sequence, cut.source), "the snap length changed a field");
        }
    }
    kind_of_decoded(&decoded)
}

fn gtp_u_seeds() -> Vec<Vec<u8>> {
    const OUTER_HEADER_BYTES: usize = 28;
    let over_ipv4 = |packet: &Vec<u8>| packet[0] == 0x45 && packet[9] == 17 && packet[20..22] == 2152_u16.to_be_bytes();
    seeds::tunnels()
        .iter()
        .filter(|packet| over_ipv4(packet))
        .map(|packet| packet[OUTER_HEADER_BYTES..].to_vec())
        .collect()
}

fn gtp_u(input: &[u8]) -> u64 {
    let total = (28 + input.len()).min(65_535) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8, 0x68, 8, 0x68, 0, 0, 0, 0]);
    packet.extend(input);
    let mut decoder = Decoder::new();
    let decoded = decoder.decode(frame(101, &packet, packet.len()));
    let extension_flags = input.first().map(|flags| flags & 7);
    kind_of((extension_flags, kind_of_decoded(&decoded)))
}

fn fragments(mut input: &[u8]) -> u64 {
    let mut decoder = Decoder::new();
    let mut time_ns = 0;
    let mut outcomes = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (packet, after) = rest.split_at(length);
        time_ns += 1_000_000_000;
        let decoded = decoder.decode(Frame { time_ns, ..frame(101, packet, packet.len()) });
        outcomes.push(kind_of_decoded(&decoded));
        input = after;
        if outcomes.len() > 64 {
            break;
        }
    }
    kind_of((outcomes, magnitude(decoder.unfinished_datagrams())))
}

fn tcp_options(input: &[u8]) -> u64 {
    let options = tcp::parse_options(input);
    assert!(options.sack_count <= 4, "more SACK blocks than fit");
    let unused = &options.sack_blocks[usize::from(options.sack_count).min(4)..];
    assert!(unused.iter().all(|block| *block == (0, 0)) || options.sack_count > 0, "blocks without a count");
    // No-operations in front change nothing, wherever the fast path applies.
    let behind_no_operation = tcp::parse_options(&[&[1], input].concat());
    assert_eq!(options, behind_no_operation, "fast and slow path differ");
    kind_of((
        options.maximum_segment_size.is_some(),
        options.window_scale.is_some(),
        options.sack_permitted,
        options.sack_count,
        options.timestamps.is_some(),
    ))
}

fn bpf(input: &[u8]) -> u64 {
    let Some((&length, rest)) = input.split_first() else { return 0 };
    let (frame, code) = rest.split_at(usize::from(length).min(rest.len()));
    let instructions: Vec<Instruction> = code
        .chunks_exact(8)
        .map(|bytes| Instruction {
            code: u16::from_be_bytes([bytes[0], bytes[1]]),
            jt: bytes[2],
            jf: bytes[3],
            k: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        })
        .collect();
    match Program::new(&instructions) {
        Ok(program) => {
            let result = program.run(frame, frame.len() as u32);
            assert_eq!(result, program.run(frame, frame.len() as u32), "a program keeps state");
            kind_of((true, result.min(4), instructions.len()))
        }
        Err(error) => kind_of(std::mem::discriminant(&error)),
    }
}

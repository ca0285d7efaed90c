//! Captures of packets made by hand, read by our own reader and checked word by word.
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::io::{self, Cursor, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use pepscope_drive::capture::addresses::AddressBook;
use pepscope_drive::capture::addresses::{TranslatedPorts, Translation};
use pepscope_drive::capture::clock::{ClockSettings, Step};
use pepscope_drive::capture::coalescing::{CoalescingSettings, MOST_BYTES};
use pepscope_drive::capture::content::Contents;
use pepscope_drive::capture::pcapng::LinkType;
use pepscope_drive::capture::tap::{Tap, TapSettings};
use pepscope_path::{Direction, Nanoseconds, QueueReport, NEVER, SECOND};
use pepscope_tcp::{ContentId, Ecn, Flags, Packet, SackBlocks, Segment, Timestamps, VoiceFrame};
use pepscope_wire::CaptureReader;

/// A file in memory that outlives its writer.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn settings() -> TapSettings {
    TapSettings {
        name: "server".into(),
        description: "beside the server".into(),
        link_type: LinkType::Raw,
        snap_bytes: 0,
        payload_bytes: u16::MAX,
        clock: ClockSettings { epoch_ns: 1_000 * SECOND, ..ClockSettings::default() },
        loss_probability: 0.0,
        coalescing: None,
        translation: None,
        from_ns: 0,
        until_ns: NEVER,
    }
}

fn captured(settings: &TapSettings, packets: &[(Nanoseconds, Direction, Packet)]) -> Vec<u8> {
    let file = Shared::default();
    let mut contents = Contents::default();
    contents.register(ContentId(1), b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n");
    let mut tap = Tap::new(
        settings,
        AddressBook::new(vec![80], settings.translation),
        Rc::new(contents),
        7,
        Box::new(file.clone()),
    );
    for (at, direction, packet) in packets {
        tap.record(*at, *direction, packet);
    }
    tap.finish(packets.last().map_or(0, |last| last.0)).unwrap();
    let bytes = file.0.lock().unwrap().clone();
    bytes
}

struct CapturedPacket {
    time_ns: i64,
    source: [u8; 16],
    source_port: u16,
    sequence: u32,
    payload_length: u32,
    payload: Vec<u8>,
    sack_count: u8,
    timestamps: Option<(u32, u32)>,
}

fn read(bytes: Vec<u8>) -> Vec<CapturedPacket> {
    let mut reader = CaptureReader::from_reader(Box::new(Cursor::new(bytes))).unwrap();
    let mut seen = Vec::new();
    while let Some(segment) = reader.next_segment().unwrap() {
        seen.push(CapturedPacket {
            time_ns: segment.time_ns,
            source: segment.source,
            source_port: segment.source_port,
            sequence: segment.sequence,
            payload_length: segment.payload_length,
            payload: segment.payload.to_vec(),
            sack_count: segment.options.sack_count,
            timestamps: segment.options.timestamps,
        });
    }
    assert_eq!(reader.tally().malformed, 0);
    seen
}

/// The captured bytes of each packet block.
fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut frames) = (0, Vec::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length, "both lengths of a block agree");
        if word(at) == 6 {
            frames.push(bytes[at + 28..at + 28 + word(at + 20) as usize].to_vec());
        }
        at += length;
    }
    frames
}

fn internet_sum(bytes: &[u8]) -> u16 {
    let sum: u64 =
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low))).sum();
    let mut folded = sum;
    while folded > 0xffff {
        folded = (folded >> 16) + (folded & 0xffff);
    }
    folded as u16
}

/// Checks lengths and both checksums of a frame without a link header, the slow way.
fn assert_right(frame: &[u8]) {
    let (header, addresses, protocol, length) = match frame[0] >> 4 {
        4 => {
            assert_eq!(internet_sum(&frame[..20]), 0xffff, "IPv4 header checksum");
            (20, &frame[12..20], frame[9], usize::from(u16::from_be_bytes([frame[2], frame[3]])))
        }
        _ => (40, &frame[8..40], frame[6], 40 + usize::from(u16::from_be_bytes([frame[4], frame[5]]))),
    };
    assert_eq!(length, frame.len());
    let mut summed = addresses.to_vec();
    summed.extend([0, protocol]);
    summed.extend(((length - header) as u16).to_be_bytes());
    summed.extend(&frame[header..]);
    assert_eq!(internet_sum(&summed), 0xffff, "transport checksum of {frame:02x?}");
}

fn assorted() -> Vec<(Nanoseconds, Direction, Packet)> {
    let mut sack = SackBlocks::default();
    sack.push(7, 9);
    sack.push(11, 13);
    let plain = Segment { flags: Flags::ACK, time_to_live: 64, window: 1000, ..Segment::default() };
    let data = Segment { content: ContentId(1), payload_bytes: 1448, ip_identification: 65_535, ..plain };
    let segments = [
        Segment {
            flags: Flags::SYN,
            maximum_segment_size: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo_reply: 0 }),
            ..plain
        },
        Segment { flags: Flags::SYN, maximum_segment_size: Some(536), sack_permitted: true, ..plain },
        Segment { timestamps: Some(Timestamps { value: u32::MAX, echo_reply: 5 }), sack, ..plain },
        Segment { sack, acknowledgement: u32::MAX, window: 65_535, ..plain },
        data,
        Segment { content_offset: 1448, sequence: 1448, ..data },
        Segment { content_offset: 3, payload_bytes: 1, ..data },
        Segment { content_offset: 30, payload_bytes: 77, ecn: Ecn::Congestion, ..data },
        Segment { content: ContentId(9), content_offset: 5, payload_bytes: 1001, version_6: true, flow: 1, ..data },
        Segment { flags: Flags::ACK | Flags::FIN, version_6: true, flow: 1, ecn: Ecn::Capable, ..plain },
    ];
    let mut packets: Vec<_> = segments.into_iter().map(Packet::Tcp).collect();
    packets.push(Packet::Voice(VoiceFrame { user: 3, sequence: 9, payload_bytes: 21 }));
    packets
        .push(Packet::Report { user: 0, report: QueueReport { step: 1, queued_frames: 5, ..QueueReport::default() } });
    let directions = [Direction::Down, Direction::Up];
    packets.into_iter().enumerate().map(|(at, packet)| (at as u64, directions[at % 2], packet)).collect()
}

#[test]
fn checksums_and_lengths_are_right_for_every_kind_of_packet() {
    let packets = assorted();
    let frames = frames(&captured(&settings(), &packets));
    assert_eq!(frames.len(), packets.len());
    frames.iter().for_each(|frame| assert_right(frame));
}

#[test]
fn ethernet_frames_are_the_same_behind_their_header() {
    let packets = assorted();
    let raw = frames(&captured(&settings(), &packets));
    let ethernet = TapSettings { link_type: LinkType::Ethernet, ..settings() };
    let framed = frames(&captured(&ethernet, &packets));
    for (raw, framed) in raw.iter().zip(&framed) {
        assert_eq!(&framed[14..], raw);
        assert_eq!(framed[12..14], if raw[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] });
    }
}

#[test]
fn a_snap_length_cuts_frames_and_changes_nothing_before() {
    let packets = assorted();
    let whole = frames(&captured(&settings(), &packets));
    for snap_bytes in [1, 20, 39, 40, 41, 52, 68, 96, 1500] {
        let cut = frames(&captured(&TapSettings { snap_bytes, ..settings() }, &packets));
        for (whole, cut) in whole.iter().zip(&cut) {
            assert_eq!(cut.len(), whole.len().min(snap_bytes as usize));
            assert_eq!(cut[..], whole[..cut.len()]);
        }
    }
}

#[test]
fn a_payload_is_cut_unless_it_begins_with_text() {
    let packets = assorted();
    let whole = frames(&captured(&settings(), &packets));
    let cut = frames(&captured(&TapSettings { snap_bytes: 96, payload_bytes: 16, ..settings() }, &packets));
    let kept = |number: usize| (cut[number].len(), whole[number].len());
    assert_eq!(kept(4), (96, 1488)); // an answer's first line
    assert_eq!(kept(5), (56, 1488));
    assert_eq!(kept(6), (41, 41));
    assert_eq!(kept(7), (96, 117)); // the end of the head, and what follows it
    assert_eq!(kept(8), (76, 1061)); // IPv6
    assert_eq!(kept(10), (61, 61)); // speech
    for (whole, cut) in whole.iter().zip(&cut) {
        assert_eq!(cut[..], whole[..cut.len()]);
    }
}

#[test]
fn what_follows_its_like_is_written_as_if_it_came_alone() {
    let numbered = |packet: &Packet, number: u32| match packet {
        Packet::Tcp(segment) => Packet::Tcp(Segment {
            sequence: segment.sequence.wrapping_sub(number),
            acknowledgement: number * 70_000,
            window: number as u16 * 777,
            ip_identification: segment.ip_identification.wrapping_add(number as u16),
            timestamps: segment.timestamps.map(|_| Timestamps { value: number << 17, echo_reply: !number }),
            content_offset: segment.content_offset + u64::from(number) * 13,
            ..*segment
        }),
        other => *other,
    };
    for link_type in [LinkType::Raw, LinkType::Ethernet] {
        for snap_bytes in [0, 47, 96] {
            let settings = TapSettings { link_type, snap_bytes, ..settings() };
            let mut packets = Vec::new();
            for (at, direction, packet) in assorted() {
                packets.extend((0..4).map(|number| (at, direction, numbered(&packet, number))));
            }
            let together = frames(&captured(&settings, &packets));
            let alone: Vec<_> = packets.iter().flat_map(|packet| frames(&captured(&settings, &[*packet]))).collect();
            assert_eq!(together, alone);
        }
    }
}

#[test]
fn our_reader_reads_the_sent_packets() {
    let seen = read(captured(&settings(), &assorted()));
    assert_eq!(seen.len(), 10);
    assert_eq!(seen[2].sack_count, 2);
    assert_eq!(seen[2].timestamps, Some((u32::MAX, 5)));
    assert!(seen[4].payload.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_eq!(seen[5].sequence, 1448);
    assert_eq!(seen[6].payload[0], b'P');
    assert_eq!(seen[9].payload_length, 0);
    assert_eq!(seen[3].time_ns, 1_000_000_000_003);
}

#[test]
fn clocks_windows_of_time_and_losses_are_as_asked() {
    let packet = Packet::Tcp(Segment { payload_bytes: 100, ..Segment::default() });
    let packets: Vec<_> = (0..10_000u64).map(|number| (number * 1_000_000, Direction::Down, packet)).collect();
    let clock = ClockSettings {
        epoch_ns: 1_000 * SECOND,
        offset_ns: 250,
        steps: vec![Step { at_ns: 5 * SECOND, by_ns: -1_000_000_000 }],
        ..ClockSettings::default()
    };
    let times: Vec<_> =
        read(captured(&TapSettings { clock, from_ns: 1_000_000, until_ns: 9 * SECOND, ..settings() }, &packets))
            .iter()
            .map(|seen| seen.time_ns)
            .collect();
    assert_eq!(times.len(), 8_999);
    assert_eq!(times[0], 1_000_001_000_250);
    assert_eq!(times[4_999], 1_004_000_000_250);
    let lossy = read(captured(&TapSettings { loss_probability: 0.1, ..settings() }, &packets)).len();
    assert!((8_800..9_200).contains(&lossy), "{lossy}"); // 9000 expected, standard deviation 30
}

#[test]
fn translation_changes_the_mobile_only() {
    let address = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
    let translation = Some(Translation { address, ports: TranslatedPorts::CountedFrom(2000) });
    let packets = assorted();
    let plain = captured(&settings(), &packets);
    let translated = captured(&TapSettings { translation, ..settings() }, &packets);
    frames(&translated).iter().for_each(|frame| assert_right(frame));
    let (plain, translated) = (read(plain), read(translated));
    assert_eq!(plain[0].source, translated[0].source); // down: from the server
    assert_eq!(translated[1].source[12..], [198, 51, 100, 1]);
    assert_eq!(translated[1].source_port, 2000);
    assert_ne!(plain[1].source, translated[1].source);
    assert_eq!(plain[1].payload, translated[1].payload);
}

#[test]
fn super_packets_carry_the_bytes_of_their_segments() {
    let packets: Vec<_> = (0..20u32)
        .map(|number| {
            let offset = number * 1448;
            let segment = Segment {
                flags: Flags::ACK,
                sequence: offset,
                payload_bytes: 1448,
                content: ContentId(1),
                content_offset: u64::from(offset),
                ..Segment::default()
            };
            (u64::from(number) * 100, Direction::Down, Packet::Tcp(segment))
        })
        .collect();
    let coalescing = Some(CoalescingSettings { within_ns: 1_000, most_bytes: MOST_BYTES, sending: None });
    let joined = captured(&TapSettings { coalescing, ..settings() }, &packets);
    frames(&joined).iter().for_each(|frame| assert_right(frame));
    let (joined, single) = (read(joined), read(captured(&settings(), &packets)));
    assert_eq!(joined.iter().map(|seen| seen.payload_length).collect::<Vec<_>>(), [11 * 1448, 9 * 1448]);
    let bytes = |seen: &[CapturedPacket]| seen.iter().flat_map(|seen| seen.payload.clone()).collect::<Vec<_>>();
    assert_eq!(bytes(&joined), bytes(&single));
}

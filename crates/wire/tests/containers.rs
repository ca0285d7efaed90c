//! Capture files of every kind give the same frames, times and link types that went into them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::Cursor;

use crate::made::files::{self, Order};
use crate::made::frames::{ethernet, link_frame, Ip, Tcp};
use pepscope_wire::bpf::{Filter, Instruction, Program};
use pepscope_wire::{CaptureReader, Tally};
use proptest::prelude::*;

fn packet(sequence: u32) -> Vec<u8> {
    Ip::example_4().packet(6, &Tcp { sequence, ..Tcp::example() }.bytes())
}

/// Times and sequence numbers of the segments of a capture, and its tally.
fn read(bytes: Vec<u8>) -> (Vec<(i64, u32)>, Tally) {
    let mut reader = CaptureReader::from_reader(Box::new(Cursor::new(bytes))).unwrap();
    let mut found = Vec::new();
    while let Some(segment) = reader.next_segment().unwrap() {
        found.push((segment.time_ns, segment.sequence));
    }
    assert!(reader.next_segment().unwrap().is_none(), "the end stays the end");
    (found, reader.tally().clone())
}

#[test]
fn pcap_in_both_orders_and_units() {
    let (first, second) = (packet(1), packet(2));
    for order in [Order::Big, Order::Little] {
        for (magic, unit_ns) in [(files::MICROSECONDS, 1_000), (files::NANOSECONDS, 1), (files::MODIFIED, 1_000)] {
            for snap_length in [0, 96, 65_535, u32::MAX] {
                let records = [(7, 250, &first[..], 83), (u32::MAX, 999_999, &second[..60], 83)];
                let (found, tally) = read(files::pcap(order, magic, snap_length, 101, &records));
                let expected =
                    [(7_000_000_000 + 250 * unit_ns, 1), (i64::from(u32::MAX) * 1_000_000_000 + 999_999 * unit_ns, 2)];
                assert_eq!(found, expected, "{order:?} {magic:x} {snap_length}");
                assert_eq!((tally.frames, tally.tcp_segments, &tally.damage), (2, 2, &None));
            }
        }
    }
}

#[test]
fn snoop_of_known_media() {
    let (first, second) = (ethernet(0x0800, &packet(1)), ethernet(0x0800, &packet(2)));
    let records = [(7, 250, &first[..], 97), (8, 999_999, &second[..91], 97)];
    for media in [0, 4] {
        let (found, tally) = read(files::snoop(media, &records));
        assert_eq!(found, [(7_000_250_000, 1), (8_999_999_000, 2)]);
        assert_eq!((tally.frames, &tally.damage, tally.link_types[0].link_type), (2, &None, 1));
    }
    let on_fddi = link_frame(10, 0x0800, &packet(3));
    assert_eq!(read(files::snoop(8, &[(1, 2, &on_fddi, 104)])).0, [(1_000_002_000, 3)]);
    // The last frame may lack its padding, and records may have more than they need.
    let whole = files::snoop(4, &records[..1]);
    assert_eq!(read(whole[..whole.len() - (4 - first.len() % 4) % 4].to_vec()).0.len(), 1);
    let mut padded = [files::snoop(4, &records[..1]), vec![0; 8]].concat();
    padded[16 + 8..16 + 12].copy_from_slice(&(24 + 8 + first.len().next_multiple_of(4) as u32).to_be_bytes());
    padded.extend(&files::snoop(4, &records[1..])[16..]);
    assert_eq!(read(padded).0.len(), 2);
}

#[test]
fn frame_check_sequence_bits_are_no_link_type() {
    let frame = packet(1);
    let records = [(0, 0, &frame[..], frame.len() as u32)];
    let (found, _) = read(files::pcap(Order::Little, files::NANOSECONDS, 0, 0x5400_0065, &records));
    assert_eq!(found.len(), 1);
}

#[test]
fn pcapng_with_sections_interfaces_and_every_packet_block() {
    for (order, other) in [(Order::Big, Order::Little), (Order::Little, Order::Big)] {
        let on_ethernet = ethernet(0x0800, &packet(1));
        let cooked = link_frame(276, 0x0800, &packet(2));
        let raw = packet(3);
        let length = on_ethernet.len() as u32;
        let file = [
            files::section(order),
            files::block(order, 0x0bad, b"of unknown kind"),
            files::interface(order, 1, None, None),
            files::interface(order, 276, Some(9), Some(100)),
            files::block(order, 5, &[0; 24]),
            files::enhanced_packet(order, 0, 5_000_001, &on_ethernet, length),
            files::enhanced_packet(order, 1, 7, &cooked, cooked.len() as u32),
            files::simple_packet(order, &on_ethernet, length),
            files::obsolete_packet(order, 0, 6_000_000, &on_ethernet),
            files::section(other),
            files::interface(other, 101, Some(0x80 | 10), None),
            files::enhanced_packet(other, 0, 2_560, &raw, raw.len() as u32),
        ];
        let (found, tally) = read(file.concat());
        let expected =
            [(5_000_001_000, 1), (100_000_000_007, 2), (100_000_000_007, 1), (6_000_000_000, 1), (2_500_000_000, 3)];
        assert_eq!(found, expected, "{order:?}");
        assert_eq!(tally.frames_without_time, 1);
        assert_eq!(tally.time_span_ns, Some((2_500_000_000, 100_000_000_007)));
        let counts: Vec<(u16, u64)> = tally.link_types.iter().map(|count| (count.link_type, count.frames)).collect();
        assert_eq!(counts, [(1, 3), (276, 1), (101, 1)]);
    }
}

#[test]
fn every_compression_and_several_members() {
    let records: Vec<Vec<u8>> = (0..3_000).map(packet).collect();
    let records: Vec<files::Record<'_>> = records.iter().map(|frame| (1, 0, &frame[..], 83)).collect();
    let plain = files::pcap(Order::Little, files::NANOSECONDS, 128, 101, &records);
    let (expected, _) = read(plain.clone());
    assert_eq!(expected.len(), 3_000);
    let (one, two) = plain.split_at(100_001);
    for (name, compress) in [
        ("gzip", files::gzip as fn(&[u8]) -> Vec<u8>),
        ("zstd", files::zstd),
        ("xz", files::xz),
        ("bzip2", files::bzip2),
        ("lz4", files::lz4),
    ] {
        let (found, tally) = read(compress(&plain));
        assert_eq!((&found, &tally.damage), (&expected, &None), "{name}");
        assert_eq!(tally.bytes_read, plain.len() as u64);
        let (found, tally) = read([compress(one), compress(two)].concat());
        assert_eq!((&found, &tally.damage), (&expected, &None), "{name} in two members");
    }
}

/// `ip[8] > 60` behind each link header: the example has a TTL of 57.
fn time_to_live_above(link_header_bytes: u32, least: u32) -> Program {
    let code = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let ttl_at = link_header_bytes + 8;
    let steps = [code(0x30, 0, 0, ttl_at), code(0x25, 0, 1, least), code(6, 0, 0, 1), code(6, 0, 0, 0)];
    Program::new(&steps).unwrap()
}

#[test]
fn filter_runs_the_program_of_each_link_type() {
    let (raw, on_ethernet) = (packet(1), ethernet(0x0800, &packet(2)));
    let order = Order::Little;
    let file = [
        files::section(order),
        files::interface(order, 101, None, None),
        files::interface(order, 1, None, None),
        files::interface(order, 228, None, None),
        files::enhanced_packet(order, 0, 1, &raw, 83),
        files::enhanced_packet(order, 1, 1, &on_ethernet, 97),
        files::enhanced_packet(order, 2, 1, &raw, 83),
    ];
    let file = file.concat();
    for (least, expected) in [(56, vec![1, 2]), (57, vec![])] {
        let mut filter = Filter::new();
        filter.insert(101, time_to_live_above(0, least));
        filter.insert(1, time_to_live_above(14, least));
        let mut reader = CaptureReader::from_reader(Box::new(Cursor::new(file.clone()))).unwrap();
        reader.set_filter(filter);
        let mut found = Vec::new();
        while let Some(segment) = reader.next_segment().unwrap() {
            found.push(segment.sequence);
        }
        assert_eq!(found, expected);
        assert_eq!(reader.tally().filtered_out, 3 - expected.len() as u64);
    }
}

#[test]
fn tally_counts_every_frame_once() {
    let tcp = ethernet(0x0800, &packet(1));
    let arp = ethernet(0x0806, &[0; 46]);
    let udp = ethernet(0x0800, &Ip::example_4().packet(17, &[0; 8]));
    let part = ethernet(0x0800, &Ip::example_4().fragment(6, &[0; 64], 64, true));
    let mut broken = tcp.clone();
    broken[14] = 0x41;
    let records: Vec<files::Record<'_>> = [&tcp, &arp, &udp, &part, &broken]
        .iter()
        .map(|frame| (1, 0, &frame[..], frame.len() as u32))
        .chain([(1, 0, &tcp[..40], tcp.len() as u32)])
        .collect();
    let (_, tally) = read(files::pcap(Order::Little, files::NANOSECONDS, 0, 1, &records));
    assert_eq!(tally.frames, 6);
    let counts = [tally.tcp_segments, tally.not_ip, tally.not_tcp, tally.fragments_held, tally.malformed];
    assert_eq!(counts, [1; 5]);
    assert_eq!((tally.cut_short, tally.unfinished_datagrams), (1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_behind_any_magic_never_panic(
        magic in proptest::sample::select(vec![
            files::MICROSECONDS, files::NANOSECONDS, files::MODIFIED, 0x0a0d_0d0a, 0x1f8b_0800, 0x28b5_2ffd, 0xfd37_7a58,
        ]),
        little in any::<bool>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let magic = if little { magic.to_le_bytes() } else { magic.to_be_bytes() };
        let file = [&magic[..], &bytes].concat();
        if let Ok(mut reader) = CaptureReader::from_reader(Box::new(Cursor::new(file))) {
            while reader.next_segment().unwrap().is_some() {}
            prop_assert!(reader.tally().damage.as_ref().is_none_or(|damage| !damage.cause.contains('\n')));
        }
    }

    #[test]
    fn arbitrary_pcapng_blocks_never_panic(
        big in any::<bool>(),
        blocks in proptest::collection::vec((0_u32..8, proptest::collection::vec(any::<u8>(), 0..80)), 0..12),
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let mut file = [files::section(order), files::interface(order, 101, None, None)].concat();
        for (kind, body) in &blocks {
            file.extend(files::block(order, *kind, body));
        }
        let (_, tally) = read(file);
        prop_assert!(tally.frames as usize <= blocks.len());
    }
}

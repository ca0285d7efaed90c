//! Broken captures: the place and the cause, and everything before the damage.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Cursor, Read};
use std::path::Path;

use crate::made::files::{self, Order};
use crate::made::frames::{Ip, Tcp};
use pepscope_wire::{CaptureReader, Tally};

const FRAME_BYTES: usize = 95;
const RECORD_BYTES: usize = 16 + FRAME_BYTES;

fn frame() -> Vec<u8> {
    let frame = Ip::example_4().packet(6, &Tcp::example().bytes());
    assert_eq!(frame.len(), FRAME_BYTES);
    frame
}

fn pcap_of_three() -> Vec<u8> {
    let frame = frame();
    let record = (1, 0, &frame[..], FRAME_BYTES as u32);
    files::pcap(Order::Little, files::NANOSECONDS, 128, 101, &[record; 3])
}

fn tally_of(source: impl Read + Send + 'static) -> Tally {
    let mut reader = CaptureReader::from_reader(Box::new(source)).unwrap();
    while reader.next_segment().unwrap().is_some() {}
    reader.tally().clone()
}

fn damage_of(bytes: Vec<u8>) -> (u64, u64, String) {
    let tally = tally_of(Cursor::new(bytes));
    let damage = tally.damage.clone().unwrap();
    (tally.tcp_segments, damage.byte_offset, damage.cause)
}

fn error_of(bytes: &[u8]) -> String {
    let reader = CaptureReader::from_reader(Box::new(Cursor::new(bytes.to_vec())));
    reader.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn pcap_cut_anywhere() {
    let whole = pcap_of_three();
    for length in 24..whole.len() {
        let tally = tally_of(Cursor::new(whole[..length].to_vec()));
        let records = (length - 24) / RECORD_BYTES;
        assert_eq!(tally.tcp_segments as usize, records);
        let clean = (length - 24) % RECORD_BYTES == 0;
        let offset = tally.damage.map(|damage| damage.byte_offset as usize);
        assert_eq!(offset, (!clean).then_some(24 + records * RECORD_BYTES));
    }
    assert_eq!(
        damage_of(whole[..24 + RECORD_BYTES + 20].to_vec()),
        (1, 24 + RECORD_BYTES as u64, "it ends within a record (20 of 111 bytes are there)".to_owned())
    );
}

#[test]
fn snoop_cut_anywhere() {
    let frame = frame();
    let whole = files::snoop(26, &[(1, 0, &frame[..], FRAME_BYTES as u32); 3]);
    const RECORD_BYTES: usize = 24 + FRAME_BYTES + 1;
    for length in 16..whole.len() {
        let tally = tally_of(Cursor::new(whole[..length].to_vec()));
        // The byte of padding may be missing.
        let records = (length + 1 - 16) / RECORD_BYTES;
        assert_eq!(tally.frames as usize, records);
        let clean = (length - 16) % RECORD_BYTES == 0 || (length + 1 - 16) % RECORD_BYTES == 0;
        let offset = tally.damage.map(|damage| damage.byte_offset as usize);
        assert_eq!(offset, (!clean).then_some(16 + records * RECORD_BYTES), "{length}");
    }
    let with = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        bytes
    };
    assert!(damage_of(with(16 + 4, 0xff)).2.contains("captured bytes, which no record has"));
    assert!(damage_of(with(16 + 8, 0xff)).2.contains("which no record has"));
    assert!(damage_of(with(16 + 11, 23)).2.contains("a record of 23 bytes claims 95 captured bytes"));
    assert!(error_of(&with(5, 1)).contains("begins like one of snoop and goes on otherwise"));
    assert!(error_of(&with(11, 3)).ends_with("snoop's version must be 2, got 3"));
    assert!(error_of(&with(15, 17)).ends_with("snoop's media type 17 is none that can be read"));
    assert_eq!(error_of(&whole[..12]), "the capture ends after 12 bytes, within its file header");
}

#[test]
fn absurd_record_length() {
    let mut bytes = pcap_of_three();
    bytes[24 + RECORD_BYTES + 8..][..4].fill(0xff);
    let (segments, offset, cause) = damage_of(bytes);
    assert_eq!((segments, offset), (1, 135));
    assert!(cause.contains("4294967295 captured bytes"), "{cause}");
}

#[test]
fn absurd_block_lengths() {
    let order = Order::Big;
    let good = [
        files::section(order),
        files::interface(order, 101, None, None),
        files::enhanced_packet(order, 0, 1, &frame(), FRAME_BYTES as u32),
    ]
    .concat();
    for (length, expected) in [
        (0_u32, "claims to be 0 bytes"),
        (8, "claims to be 8 bytes"),
        (u32::MAX - 3, "which no packet has"),
        (12, "instead of at least 20"),
        (64, "it ends within a block"),
    ] {
        let mut bad = [order.u32(6), order.u32(length), order.u32(12)].concat();
        bad.truncate(12);
        let (segments, offset, cause) = damage_of([good.clone(), bad].concat());
        assert_eq!((segments, offset), (1, good.len() as u64), "{cause}");
        assert!(cause.contains(expected), "{cause}");
    }
    // An unknown block of 4 GiB is skipped as far as there is something.
    let bad = [order.u32(0x99), order.u32(u32::MAX - 3), [0; 4]].concat();
    let (_, offset, cause) = damage_of([good.clone(), bad].concat());
    assert_eq!(offset, good.len() as u64, "{cause}");
    let mismatch = [good.clone(), [order.u32(6), order.u32(16), [0; 4], order.u32(20)].concat()].concat();
    assert!(damage_of(mismatch).2.contains("16 bytes at its start and 20 at its end"));
    // A frame may not reach into the end of its block, let alone into the next.
    let mut overlong = files::obsolete_packet(order, 0, 1, &frame());
    overlong[20..24].copy_from_slice(&order.u32(97));
    let overlong = [good.clone(), overlong, vec![0; 200]].concat();
    assert!(damage_of(overlong).2.contains("97 captured bytes in a block with room for 96"));
    let nowhere = [good, files::enhanced_packet(order, 7, 1, &[0; 40], 40)].concat();
    assert!(damage_of(nowhere).2.contains("interface 7, which was not described"));
}

type Compress = fn(&[u8]) -> Vec<u8>;

const COMPRESSIONS: [(&str, Compress); 5] =
    [("gzip", files::gzip), ("zstd", files::zstd), ("xz", files::xz), ("bzip2", files::bzip2), ("lz4", files::lz4)];

#[test]
fn compressed_and_cut_anywhere() {
    let plain = pcap_of_three();
    for (name, compress) in COMPRESSIONS {
        let compressed = compress(&plain);
        for length in 0..compressed.len() {
            let cut = compressed[..length].to_vec();
            match CaptureReader::from_reader(Box::new(Cursor::new(cut.clone()))) {
                Ok(_) => assert!(tally_of(Cursor::new(cut)).damage.is_some(), "{name} cut at {length}"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        assert_eq!(tally_of(Cursor::new(compressed)).damage, None, "{name}");
    }
}

#[test]
fn compressed_and_cut() {
    let frame = frame();
    let records: Vec<files::Record<'_>> = (0..20_000).map(|second| (second, second * 7_919, &frame[..], 95)).collect();
    let plain = files::pcap(Order::Little, files::NANOSECONDS, 128, 101, &records);
    for (name, compress) in COMPRESSIONS {
        let compressed = compress(&plain);
        for share in [50, 90] {
            let tally = tally_of(Cursor::new(compressed[..compressed.len() * share / 100].to_vec()));
            let damage = tally.damage.clone().unwrap();
            // xz gives what it has decoded of an unfinished block, the others too.
            assert!(tally.tcp_segments > 1_000, "{name}: {} segments before {damage:?}", tally.tcp_segments);
            assert!(tally.tcp_segments < 20_000, "{name}");
            assert_eq!((damage.byte_offset - 24) / RECORD_BYTES as u64, tally.tcp_segments, "{name}");
        }
        let mut corrupt = compressed.clone();
        let middle = corrupt.len() / 2;
        corrupt[middle..middle + 64].fill(0xa5);
        assert!(tally_of(Cursor::new(corrupt)).damage.is_some(), "{name}");
    }
}

#[test]
fn failing_reads_are_damage() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is on fire"))
        }
    }
    let tally = tally_of(Cursor::new(pcap_of_three()).chain(Failing));
    assert_eq!(tally.tcp_segments, 3);
    assert!(tally.damage.unwrap().cause.contains("the disk is on fire"));
}

#[test]
fn a_failed_start_has_a_reason() {
    assert_eq!(error_of(&[]), "the capture is empty: it has not even a file header");
    assert_eq!(
        error_of(b"%PDF-1.7"),
        "the capture is neither pcap nor pcapng nor snoop, plain or compressed by gzip, zstd, xz, bzip2 or lz4: \
         it begins with 25 50 44 46 2d 31 2e 37; `editcap -F pcapng FILE NEW` converts what Wireshark can read"
    );
    assert_eq!(
        error_of(b"PK\x03\x04\x14"),
        "the capture is neither pcap nor pcapng nor snoop, but a zip archive: unpack it, and give the captures in it"
    );
    for page in [&b"\n\n\n\n\n\n<!DOCTYPE html>"[..], b"<!Doctype html>", b"<HTML>", b"<html lang=\"en\">"] {
        assert!(error_of(page).contains("but an HTML page: download the capture itself"));
    }
    assert_eq!(error_of(&pcap_of_three()[..20]), "the capture ends after 20 bytes, within its file header");
    assert_eq!(error_of(&[0x0a, 0x0d]), "the capture ends after 2 bytes, within its file header");
    let mut section = files::section(Order::Little);
    section[8] = 0;
    assert!(error_of(&section).starts_with("the capture has a broken file header: a section header has 1a2b3c00"));
    assert!(error_of(&files::gzip(b"hello world")).contains("it begins with 68 65 6c 6c 6f"));
    assert!(error_of(&[0x1f, 0x8b, 1, 2, 3, 4, 5]).starts_with("cannot read the capture: "));
    let named = |name: &str| CaptureReader::open(Path::new(name)).err().unwrap().to_string();
    assert_eq!(named(""), "a capture must have a name, got ''");
    assert!(named("https://example.org/x.pcap").contains("x.pcap: URLs are not fetched: download it"));
    let missing = CaptureReader::open(Path::new("/nonexistent/x.pcap")).err().unwrap().to_string();
    assert_eq!(missing, "cannot open /nonexistent/x.pcap: no such file or directory");
    let directory = CaptureReader::open(Path::new("/")).err().unwrap().to_string();
    assert_eq!(directory, "cannot open /: it is a directory");
}

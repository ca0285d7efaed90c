//! A capture whose frames are replaced reads as the one it was made from, with those frames.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::Cursor;

use crate::made::files::{self, Order};
use crate::made::frames::{ethernet, Ip, Tcp};
use pepscope_wire::{CaptureReader, EditableCapture, HeaderKind, Tally};

fn packet(sequence: u32) -> Vec<u8> {
    Ip::example_4().packet(6, &Tcp { sequence, payload: vec![7; 41], ..Tcp::example() }.bytes())
}

fn edited(bytes: &[u8]) -> EditableCapture {
    EditableCapture::from_reader(Box::new(Cursor::new(bytes.to_vec()))).unwrap()
}

/// Time, sequence number, payload on the wire and captured payload of a segment.
type Found = (i64, u32, u32, Vec<u8>);

fn read(bytes: &[u8]) -> (Vec<Found>, Tally) {
    let mut reader = CaptureReader::from_reader(Box::new(Cursor::new(bytes.to_vec()))).unwrap();
    let mut found = Vec::new();
    while let Some(segment) = reader.next_segment().unwrap() {
        found.push((segment.time_ns, segment.sequence, segment.payload_length, segment.payload.to_vec()));
    }
    (found, reader.tally().clone())
}

fn every_container() -> Vec<Vec<u8>> {
    let packets: Vec<Vec<u8>> = (0..4).map(packet).collect();
    let framed: Vec<Vec<u8>> = packets.iter().map(|packet| ethernet(0x0800, packet)).collect();
    let mut made = Vec::new();
    for (order, other) in [(Order::Big, Order::Little), (Order::Little, Order::Big)] {
        for magic in [files::MICROSECONDS, files::NANOSECONDS, files::MODIFIED] {
            let records: Vec<files::Record<'_>> = packets.iter().map(|p| (7, 250, &p[..], p.len() as u32)).collect();
            made.push(files::pcap(order, magic, 65_535, 101, &records));
        }
        let length = framed[0].len() as u32;
        let file = [
            files::section(order),
            files::interface(order, 1, Some(9), Some(100)),
            files::block(order, 4, b"names of hosts"),
            files::enhanced_packet(order, 0, 7, &framed[0], length),
            files::simple_packet(order, &framed[1], length),
            files::obsolete_packet(order, 0, 6_000_000, &framed[2]),
            files::section(other),
            files::interface(other, 101, Some(0x80 | 10), None),
            files::enhanced_packet(other, 0, 2_560, &packets[3], packets[3].len() as u32),
        ];
        made.push(file.concat());
    }
    made
}

#[test]
fn the_same_frames_make_a_capture_that_reads_the_same() {
    for file in every_container() {
        let capture = edited(&file);
        let frames: Vec<&[u8]> = capture.frames().map(|frame| capture.bytes(frame)).collect();
        assert_eq!(frames.len(), 4);
        let again = capture.with_frames(frames.iter().map(|bytes| Some(*bytes)));
        let ((before, tally), (after, tally_after)) = (read(&file), read(&again));
        assert_eq!(before, after);
        assert_eq!(Tally { bytes_read: tally.bytes_read, ..tally_after }, tally);
        assert!(!again.windows(5).any(|bytes| bytes == b"names"));
        if file[..2] != [0x0a, 0x0d] {
            assert_eq!(again, file, "a pcap file has nothing but frames");
        }
    }
}

#[test]
fn frames_may_be_shorter_and_left_out() {
    for file in every_container() {
        let capture = edited(&file);
        let before = read(&file).0;
        for cut_bytes in 0..8 {
            let kept = capture.frames().enumerate().map(|(place, frame)| {
                let bytes = capture.bytes(frame);
                (place != 2).then(|| &bytes[..bytes.len() - cut_bytes])
            });
            let (after, tally) = read(&capture.with_frames(kept));
            assert_eq!((tally.frames, &tally.damage), (3, &None));
            for (was, is) in [&before[0], &before[1], &before[3]].into_iter().zip(&after) {
                assert_eq!((was.0, was.1, was.2), (is.0, is.1, is.2));
                let missing = was.3.len() - is.3.len();
                assert!(was.3.starts_with(&is.3));
                // A simple packet block holds a multiple of four bytes, unless the whole frame.
                assert!(missing >= cut_bytes && missing < cut_bytes + 4, "{missing} for {cut_bytes}");
                assert!(cut_bytes > 0 || missing == 0);
            }
        }
    }
}

#[test]
fn a_damaged_capture_is_read_up_to_the_damage() {
    for file in every_container() {
        let capture = edited(&file[..file.len() - 3]);
        assert_eq!(capture.frames().count(), 3);
        let mut compressed = files::gzip(&file);
        compressed.truncate(compressed.len() - 9);
        let (_, tally) = read(&compressed);
        assert_eq!(edited(&compressed).frames().count() as u64, tally.frames);
    }
    assert!(EditableCapture::from_reader(Box::new(Cursor::new(b"no capture at all".to_vec()))).is_err());
}

#[test]
fn numbers_of_header_kinds_are_places_in_the_list_of_names() {
    for (number, (kind, _)) in HeaderKind::NAMES.iter().enumerate() {
        assert_eq!(*kind as usize, number);
    }
}

#[test]
fn of_wanted_segments_only_their_frames_are_kept() {
    for (number, file) in every_container().iter().enumerate() {
        let path = std::env::temp_dir().join(format!("pepscope-wanted-{}-{number}", std::process::id()));
        std::fs::write(&path, file).unwrap();
        let every = EditableCapture::open_segments(&path, |_| true).unwrap().to_bytes();
        let some = EditableCapture::open_segments(&path, |segment| segment.sequence % 2 == 1).unwrap().to_bytes();
        std::fs::remove_file(&path).unwrap();
        let (before, _) = read(file);
        assert_eq!(read(&every).0, before);
        // Frames without a time of their own get that of the frame before, which may have gone.
        let untimed = |found: Vec<Found>| found.into_iter().map(|(_, sequence, ..)| sequence).collect::<Vec<_>>();
        assert_eq!(untimed(read(&some).0), [1, 3]);
    }
}

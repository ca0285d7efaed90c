//! UDP datagrams outside known tunnels: shown to whom it may concern, and TCP packets inside are found where certain.
#![allow(clippy::unwrap_used)]

use std::io::Cursor;
use std::sync::{Arc, Mutex};

use crate::made::frames::{udp, Ip, Tcp};
use pepscope_wire::segment::TunnelKind;
use pepscope_wire::{CaptureReader, Datagram, DatagramObserver, Decoder, Frame, Reject};
use proptest::prelude::*;

const RAW_IP: u16 = 101;

fn frame(bytes: &[u8], wire_bytes: usize) -> Frame<'_> {
    Frame { index: 0, time_ns: 1, link_type: RAW_IP, bytes, wire_bytes: wire_bytes as u32 }
}

fn sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

fn checksum(mut total: u32) -> [u8; 2] {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    (!(total as u16)).to_be_bytes()
}

fn tcp(payload: &[u8]) -> Tcp {
    Tcp {
        source_port: 443,
        destination_port: 40_000,
        sequence: 7,
        acknowledgement: 9,
        window: 500,
        flags: 0x18,
        options: vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        payload: payload.to_vec(),
    }
}

/// An IP packet with every checksum right.
fn packet(ip: &Ip, payload: &[u8]) -> Vec<u8> {
    let mut segment = tcp(payload).bytes();
    segment[16..18].fill(0);
    let addresses = if ip.version == 4 { 12.. } else { 0.. };
    let pseudo = sum(&ip.source[addresses.clone()]) + sum(&ip.destination[addresses]) + 6 + segment.len() as u32;
    let sum_of_segment = checksum(pseudo + sum(&segment));
    segment[16..18].copy_from_slice(&sum_of_segment);
    ip.packet(6, &segment)
}

fn in_udp(header: &[u8], inner: &[u8]) -> Vec<u8> {
    Ip::example_4().packet(17, &udp(5000, 6000, &[header, inner].concat()))
}

#[test]
fn tcp_packets_behind_an_unknown_header_are_found() {
    for ip in [Ip::example_4(), Ip { option_bytes: 8, ..Ip::example_4() }, Ip::example_6()] {
        for header_bytes in [0, 1, 4, 12, 37, 64] {
            let outer = in_udp(&vec![0x45; header_bytes], &packet(&ip, b"hello"));
            let mut decoder = Decoder::new();
            let segment = decoder.decode(frame(&outer, outer.len())).unwrap();
            assert_eq!((segment.tunnel.kind, segment.payload), (TunnelKind::Udp, &b"hello"[..]));
            assert_eq!((segment.source, segment.source_port), (ip.source, 443));
            assert_eq!(decoder.datagram(&frame(&outer, outer.len())), None);
        }
        let too_far = in_udp(&[0; 65], &packet(&ip, b"hello"));
        assert_eq!(Decoder::new().decode(frame(&too_far, too_far.len())).err(), Some(Reject::NotTcp));
    }
}

#[test]
fn a_snapped_ipv4_packet_is_found_and_an_ipv6_one_is_not_accepted() {
    for (ip, found) in [(Ip::example_4(), true), (Ip::example_6(), false)] {
        let outer = in_udp(&[1, 2, 3, 4], &packet(&ip, &[5; 900]));
        let decoded = Decoder::new().decode(frame(&outer[..120], outer.len())).map(|segment| segment.payload_length);
        assert_eq!(decoded, if found { Ok(900) } else { Err(Reject::NotTcp) });
    }
}

#[test]
fn the_network_card_may_still_have_to_complete_the_checksum() {
    let ip = Ip::example_6();
    let mut segment = tcp(&[5; 4134]).bytes();
    let pseudo_header = sum(&ip.source) + sum(&ip.destination) + 6 + segment.len() as u32;
    let [high, low] = checksum(pseudo_header);
    segment[16..18].copy_from_slice(&[!high, !low]);
    let outer = in_udp(&[1, 2, 3, 4], &ip.packet(6, &segment));
    for captured in [outer.len(), 120] {
        let decoded = Decoder::new().decode(frame(&outer[..captured], outer.len())).map(|found| found.payload_length);
        assert_eq!(decoded, Ok(4134), "{captured} bytes");
    }
    segment[17] ^= 1;
    let wrong = in_udp(&[1, 2, 3, 4], &ip.packet(6, &segment));
    assert_eq!(Decoder::new().decode(frame(&wrong, wrong.len())).err(), Some(Reject::NotTcp));
}

#[test]
fn what_only_resembles_a_packet_stays_a_datagram() {
    let good = packet(&Ip::example_4(), b"hello");
    let mut wrong_sum = good.clone();
    wrong_sum[10] ^= 1;
    let mut not_tcp = good.clone();
    not_tcp[9] = 17;
    let longer = [&good[..], &[0]].concat();
    for inner in [wrong_sum, not_tcp, longer] {
        let outer = in_udp(&[9; 4], &inner);
        let mut decoder = Decoder::new();
        assert_eq!(decoder.decode(frame(&outer, outer.len())).err(), Some(Reject::NotTcp));
        let datagram = decoder.datagram(&frame(&outer, outer.len())).unwrap();
        assert_eq!((datagram.source_port, datagram.destination_port), (5000, 6000));
        assert_eq!((datagram.payload_length as usize, datagram.payload), (4 + inner.len(), &outer[28..]));
    }
}

/// Frame index, source port, length and captured length.
type Shown = (u64, u16, u32, usize);

#[derive(Clone, Default)]
struct Observed(Arc<Mutex<Vec<Shown>>>);

impl DatagramObserver for Observed {
    fn observe(&mut self, datagram: &Datagram<'_>) {
        let seen = (datagram.frame_index, datagram.source_port, datagram.payload_length, datagram.payload.len());
        self.0.lock().unwrap().push(seen);
    }
}

#[test]
fn a_reader_shows_datagrams_with_payload_and_counts_as_before() {
    let ip = Ip::example_4();
    let large = udp(7000, 8000, &[4; 1000]);
    let frames = [
        in_udp(&[], b"a datagram"),
        ip.packet(6, &tcp(b"x").bytes()),
        ip.packet(17, &udp(5000, 6000, &[])),
        ip.packet(17, &udp(2152, 2152, b"no tunnel")),
        ip.packet(1, &[0; 40]),
        ip.fragment(17, &large[..504], 0, true),
        ip.fragment(17, &large[504..], 504, false),
        in_udp(&[], &[1; 400])[..100].to_vec(),
    ];
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 101, 0, 0, 0];
    for (number, bytes) in frames.iter().enumerate() {
        let wire_bytes = if number == 7 { 428 } else { bytes.len() };
        for field in [number as u32, 0, bytes.len() as u32, wire_bytes as u32] {
            file.extend(field.to_le_bytes());
        }
        file.extend(bytes);
    }
    let mut reader = CaptureReader::from_reader(Box::new(Cursor::new(file))).unwrap();
    let seen = Observed::default();
    reader.set_observer(Box::new(seen.clone()));
    let mut segments = 0;
    while reader.next_segment().unwrap().is_some() {
        segments += 1;
    }
    assert_eq!(*seen.0.lock().unwrap(), [(0, 5000, 10, 10), (6, 7000, 1000, 1000), (7, 5000, 400, 72)]);
    assert_eq!((segments, reader.tally().not_tcp, reader.tally().fragments_held), (1, 6, 1));
}

proptest! {
    #[test]
    fn random_payload_is_never_taken_for_a_packet(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let outer = in_udp(&[], &payload);
        prop_assert_eq!(Decoder::new().decode(frame(&outer, outer.len())).err(), Some(Reject::NotTcp));
    }
}

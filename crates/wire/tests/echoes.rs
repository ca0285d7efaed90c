//! ICMP echo messages: which frames hold one, and what it says.
#![allow(clippy::unwrap_used)]

use crate::made::frames::Ip;
use pepscope_wire::{Decoder, Echo, Frame, Reject};
use proptest::prelude::*;

const RAW_IP: u16 = 101;

fn message(kind: u8, code: u8, identifier: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    let [id_high, id_low] = identifier.to_be_bytes();
    let [sequence_high, sequence_low] = sequence.to_be_bytes();
    [&[kind, code, 0, 0, id_high, id_low, sequence_high, sequence_low], data].concat()
}

fn found(bytes: &[u8], wire_bytes: usize) -> Option<Echo> {
    let mut decoder = Decoder::new();
    let frame = Frame { index: 3, time_ns: 17, link_type: RAW_IP, bytes, wire_bytes: wire_bytes as u32 };
    assert_eq!(decoder.decode(frame).err(), Some(Reject::NotTcp));
    assert_eq!(decoder.datagram(&frame), None);
    decoder.echo(&frame)
}

#[test]
fn requests_and_replies_of_both_versions_are_told_apart() {
    for (ip, number, kind, is_reply) in [
        (Ip::example_4(), 1, 8, false),
        (Ip::example_4(), 1, 0, true),
        (Ip::example_6(), 58, 128, false),
        (Ip { option_bytes: 8, ..Ip::example_6() }, 58, 129, true),
    ] {
        let packet = ip.packet(number, &message(kind, 0, 0xabcd, 0x0102, &[7; 56]));
        let expected = Echo {
            frame_index: 3,
            time_ns: 17,
            ip_version: ip.version,
            source: ip.source,
            destination: ip.destination,
            is_reply,
            identifier: 0xabcd,
            sequence: 0x0102,
            data_bytes: 56,
        };
        assert_eq!(found(&packet, packet.len()), Some(expected));
        assert_eq!(found(&packet[..packet.len() - 56], packet.len()), Some(expected), "data not captured");
        assert_eq!(found(&packet[..packet.len() - 57], packet.len()), None, "header cut");
    }
}

#[test]
fn other_messages_are_no_echo() {
    for (ip, number, kind, code) in [
        (Ip::example_4(), 1, 3, 3),
        (Ip::example_4(), 1, 8, 1),
        (Ip::example_4(), 1, 128, 0),
        (Ip::example_4(), 58, 128, 0),
        (Ip::example_6(), 58, 8, 0),
        (Ip::example_6(), 1, 8, 0),
    ] {
        let packet = ip.packet(number, &message(kind, code, 1, 2, &[0; 8]));
        assert_eq!(found(&packet, packet.len()), None);
    }
}

#[test]
fn the_next_frame_forgets_an_echo() {
    let ping = Ip::example_4().packet(1, &message(8, 0, 1, 2, &[]));
    let other = Ip::example_4().packet(89, &[0; 40]);
    let mut decoder = Decoder::new();
    for (bytes, is_echo) in [(&ping, true), (&other, false)] {
        let frame = Frame { index: 0, time_ns: 0, link_type: RAW_IP, bytes, wire_bytes: bytes.len() as u32 };
        assert!(decoder.decode(frame).is_err());
        assert_eq!(decoder.echo(&frame).is_some(), is_echo);
    }
}

proptest! {
    #[test]
    fn no_bytes_of_icmp_break_the_decoder(
        content in proptest::collection::vec(any::<u8>(), 0..40),
        version_6 in any::<bool>(),
        missing in 0_usize..60,
    ) {
        let ip = if version_6 { Ip::example_6() } else { Ip::example_4() };
        let packet = ip.packet(if version_6 { 58 } else { 1 }, &content);
        let captured = packet.len() - missing.min(content.len());
        let echo = found(&packet[..captured], packet.len());
        if let Some(echo) = echo {
            prop_assert_eq!(echo.data_bytes as usize, content.len() - 8);
            prop_assert_eq!(echo.identifier.to_be_bytes(), [content[4], content[5]]);
            prop_assert_eq!(echo.sequence.to_be_bytes(), [content[6], content[7]]);
        }
    }
}

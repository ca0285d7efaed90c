//! Frames without a TCP segment that can be read, each with its reason.
#![allow(clippy::unwrap_used, clippy::panic)]

mod made;

use made::frames::{ethernet, udp, wireless, Envelope, Ip, Tcp};
use pepscope_wire::{Decoder, Frame, Reject};

fn reject_of_cut(link_type: u16, bytes: &[u8], wire_bytes: u32) -> Option<Reject> {
    Decoder::new().decode(Frame { index: 3, time_ns: 5, link_type, bytes, wire_bytes }).err()
}

fn reject_of(link_type: u16, bytes: &[u8]) -> Option<Reject> {
    reject_of_cut(link_type, bytes, bytes.len() as u32)
}

#[test]
fn lengths_that_contradict_each_other() {
    let packet = Ip::example_4().packet(6, &Tcp::example().bytes());
    let with = |at: usize, value: u8| {
        let mut changed = packet.clone();
        changed[at] = value;
        reject_of(101, &changed)
    };
    assert_eq!(with(0, 0x44), Some(Reject::Malformed), "IPv4 header below 20 bytes");
    assert_eq!(with(3, 19), Some(Reject::Malformed), "IP length below its header");
    assert_eq!(with(3, 39), Some(Reject::Malformed), "no room for a TCP header");
    assert_eq!(with(20 + 12, 0x40), Some(Reject::Malformed), "TCP header below 20 bytes");
    assert_eq!(with(0, 0x55), Some(Reject::NotIp), "IP version 5");
    let mut six = Ip::example_6().packet(6, &Tcp::example().bytes());
    six[5] = 19;
    assert_eq!(reject_of(101, &six), Some(Reject::Malformed));
}

#[test]
fn packets_other_than_tcp_are_counted_apart() {
    let ip = Ip::example_4();
    assert_eq!(reject_of(1, &ethernet(0x0806, &[0; 28])), Some(Reject::NotIp));
    assert_eq!(reject_of(101, &ip.packet(17, &udp(53, 53, b"query"))), Some(Reject::NotTcp));
    assert_eq!(reject_of(101, &ip.packet(1, &[8, 0, 0, 0])), Some(Reject::NotTcp));
    assert_eq!(reject_of(101, &ip.fragment(1, &[8; 16], 0, true)), Some(Reject::NotTcp));
    let echo_request = [0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0];
    assert_eq!(reject_of(101, &ip.packet(17, &udp(2152, 2152, &echo_request))), Some(Reject::NotTcp));
    assert_eq!(reject_of(105, &wireless(0x80, 0, &[], &[0; 40])), Some(Reject::NotIp), "a beacon");
    assert_eq!(reject_of(105, &wireless(0x08, 0x41, &[], &[0; 40])), Some(Reject::Encrypted));
    assert_eq!(reject_of(147, &[0; 60]), Some(Reject::UnknownLinkType));
    assert_eq!(reject_of(1, &[]), Some(Reject::Malformed));
    assert_eq!(reject_of_cut(1, &[], 60), Some(Reject::CutShort));
}

#[test]
fn gtp_extension_of_length_zero_ends() {
    let header = [0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 0, 0, 0x85];
    assert_eq!(reject_of(101, &Ip::example_4().packet(17, &udp(2152, 2152, &header))), Some(Reject::Malformed));
}

#[test]
fn nesting_is_bounded() {
    let ip = Ip::example_4();
    let mut packet = ip.packet(6, &Tcp::example().bytes());
    for _ in 0..40 {
        packet = Envelope::IpInIp.wrap(&ip, &packet);
    }
    assert_eq!(reject_of(101, &packet), Some(Reject::TooDeep));
}

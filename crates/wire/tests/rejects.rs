//! Frames without a TCP segment that can be read, each with its reason.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::made::frames::{ethernet, link_frame, pktap, udp, wireless, Envelope, Ip, Tcp};
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

/// What a frame without TCP holds, and whether TCP may be inside.
fn content_of(link_type: u16, bytes: &[u8]) -> (String, bool) {
    let mut decoder = Decoder::new();
    let frame = Frame { index: 0, time_ns: 0, link_type, bytes, wire_bytes: bytes.len() as u32 };
    assert!(decoder.decode(frame).is_err());
    let content = decoder.content().unwrap();
    (content.to_string(), content.may_hide_tcp())
}

#[test]
fn contents_are_named() {
    let ip = Ip::example_4();
    let arp = ethernet(0x0806, &[0; 28]);
    let gre = |header: &[u8], inner: &[u8]| ip.packet(47, &[header, inner].concat());
    let beacon = wireless(0x80, 0, &[], &[0; 40]);
    for (link_type, frame, name, may_hide_tcp) in [
        (1, arp.clone(), "EtherType 0x0806 (ARP)", false),
        (1, ethernet(0x88e5, &[0; 40]), "EtherType 0x88e5 (MACsec)", true),
        (1, ethernet(0x1234, &[0; 40]), "EtherType 0x1234", false),
        (1, ethernet(38, &[0x42, 0x42, 3, 0]), "IEEE 802.2 service access point 0x42 (spanning tree)", false),
        (9, vec![0xc0, 0x21, 1, 2], "PPP protocol 0xc021 (LCP)", false),
        (9, vec![0xff, 3, 0xfd, 1, 2], "PPP protocol 0x00fd (compressed)", true),
        (101, ip.packet(17, &udp(53, 53, b"query")), "IP protocol 17 (UDP)", false),
        (101, ip.packet(50, &[0; 40]), "IP protocol 50 (ESP: encrypted)", true),
        (101, ip.packet(108, &[6, 0, 0, 2, 9, 9]), "IP protocol 108 (IPComp: compressed)", true),
        (101, Ip::example_6().packet(108, &[6, 0, 0, 2, 9]), "IP protocol 108 (IPComp: compressed)", true),
        (101, ip.fragment(50, &[8; 16], 0, true), "IP protocol 50 (ESP: encrypted)", true),
        (101, ip.packet(253, &[0; 40]), "IP protocol 253", false),
        (101, vec![0x50; 40], "IP version 5", false),
        (101, gre(&[0, 0, 0x12, 0x34], &[0; 40]), "GRE protocol 0x1234", true),
        (101, gre(&[0, 0, 0, 0], &[]), "GRE protocol 0x0000", false),
        (
            101,
            gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 9, 0x10, 6, 0, 6, 0, 0, 0, 20], &arp),
            "EtherType 0x0806 (ARP) in GRE protocol 0x88be (ERSPAN II)",
            false,
        ),
        (101, gre(&[0, 0, 0x88, 0xbe], &arp), "EtherType 0x0806 (ARP) in GRE protocol 0x88be (ERSPAN I)", false),
        (101, Envelope::Vxlan(1).wrap(&ip, &ip.packet(17, &udp(1, 2, b"x"))), "IP protocol 17 (UDP) in VXLAN", false),
        (
            101,
            ip.packet(17, &udp(1701, 1701, &[0xc8, 2, 0, 12, 0, 1, 0, 0, 0, 0, 0, 0])),
            "L2TP without a packet",
            false,
        ),
        (101, ip.packet(115, &[0, 0, 0, 9, 1, 2, 3, 4]), "IP protocol 115 (L2TP)", false),
        (105, beacon, "IEEE 802.11 frames that carry no packet", false),
    ] {
        assert_eq!(content_of(link_type, &frame), (name.to_owned(), may_hide_tcp));
    }
}

#[test]
fn what_ip_carries_is_no_frame_without_ip() {
    let unknown = [&[0, 0, 0x12, 0x34][..], &[0; 40]].concat();
    assert_eq!(reject_of(101, &Ip::example_4().packet(47, &unknown)), Some(Reject::NotTcp));
}

#[test]
fn headers_of_rare_links_are_checked() {
    let packet = Ip::example_4().packet(6, &Tcp::example().bytes());
    let with = |link_type: u16, at: usize, value: u8| {
        let mut frame = link_frame(link_type, 0x0800, &packet);
        frame[at] = value;
        reject_of(link_type, &frame)
    };
    assert_eq!(with(10, 0, 0x41), Some(Reject::NotIp), "an FDDI frame of station management");
    assert_eq!(with(7, 2, 213), Some(Reject::NotIp), "ARP on ARCnet");
    assert_eq!(with(7, 3, 2), Some(Reject::NotIp), "a later fragment on ARCnet");
    assert_eq!(with(239, 4, 3), Some(Reject::Malformed), "an attribute shorter than its own header");
    assert_eq!(with(239, 0, 7), None, "a bridge's packet: the packet header says what it is");
    assert_eq!(with(258, 0, 60), Some(Reject::Malformed), "a PKTAP header below its length");
    assert_eq!(with(258, 4, 0), Some(Reject::NotIp), "PKTAP without a packet");
    assert_eq!(with(258, 8, 147), Some(Reject::NotIp), "a user's own link type in PKTAP");
    assert_eq!(with(117, 0, 44), Some(Reject::Malformed), "a PFLOG header below its length");
    assert_eq!(with(117, 1, 7), Some(Reject::NotIp), "an address family that is none of IP");
    assert_eq!(with(109, 0, 7), Some(Reject::NotIp), "the same behind IPsec");
    assert_eq!(with(226, 1, 10), Some(Reject::NotIp), "the same of Solaris");
    assert_eq!(with(119, 0, 0x45), Some(Reject::NotIp), "a code of no wireless card");
    assert_eq!(with(163, 7, 7), Some(Reject::Malformed), "an AVS header below its length");
    assert_eq!(with(163, 3, 2), None, "the second version of AVS");
    assert_eq!(with(192, 2, 7), Some(Reject::Malformed), "a PPI header below its length");
    assert_eq!(with(192, 4, 147), Some(Reject::NotIp), "a user's own link type in PPI");
    // In one another without an end.
    let nested: Vec<u8> = (0..60).flat_map(|_| pktap(258)).collect();
    assert_eq!(reject_of(258, &nested), Some(Reject::TooDeep));
}

#[test]
fn exception_packets_of_arcnet_have_the_flag_further_on() {
    let packet = Ip::example_4().packet(6, &Tcp::example().bytes());
    let frame = [&[1, 2, 212, 0xff, 0xff, 0xff, 212, 0, 0, 9][..], &packet].concat();
    assert_eq!(reject_of(7, &frame), None);
    let old = [&[1, 2, 240][..], &packet].concat();
    assert_eq!(reject_of(7, &old), None);
}

#[test]
fn attributes_may_stand_in_either_byte_order() {
    let packet = Ip::example_4().packet(6, &Tcp::example().bytes());
    let length = (packet.len() as u16 + 4).to_be_bytes();
    let head = [2, 0, 0, 5, 0, 8, 0, 1, 8, 0, 1, 0];
    assert_eq!(reject_of(239, &[&head, &length[..], &[0, 9], &packet].concat()), None);
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

//! Whatever a TCP segment is wrapped in, the decoder finds it again, whole or cut.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::made::frames::{ethernet, link_frame, mapped, wireless, Envelope, Ip, Tag, Tcp};
use crate::made::frames::{LINKS_FOR_IP, LINKS_WITH_ETHER_TYPE};
use pepscope_wire::segment::{Segment, Tunnel, TunnelKind};
use pepscope_wire::tcp::parse_options;
use pepscope_wire::{dissect, Decoder, Dissector, Frame, Header, HeaderKind, Reject, KNOWN_LINK_TYPES};
use proptest::prelude::*;

fn frame(link_type: u16, bytes: &[u8], wire_bytes: usize) -> Frame<'_> {
    Frame { index: 3, time_ns: 5, link_type, bytes, wire_bytes: wire_bytes as u32 }
}

fn assert_same(segment: &Segment<'_>, ip: &Ip, tcp: &Tcp, context: &str) {
    assert_eq!((segment.frame_index, segment.time_ns), (3, 5), "{context}");
    assert_eq!(segment.ip_version, ip.version, "{context}");
    assert_eq!((segment.source, segment.destination), (ip.source, ip.destination), "{context}");
    assert_eq!((segment.ttl, segment.ip_id, segment.traffic_class), (ip.ttl, ip.id, ip.traffic_class), "{context}");
    assert_eq!(
        (segment.source_port, segment.destination_port, segment.sequence, segment.acknowledgement),
        (tcp.source_port, tcp.destination_port, tcp.sequence, tcp.acknowledgement),
        "{context}"
    );
    assert_eq!((segment.flags, segment.window), (tcp.flags, tcp.window), "{context}");
    assert_eq!(segment.payload_length as usize, tcp.payload.len(), "{context}");
    assert!(tcp.payload.starts_with(segment.payload), "{context}");
    assert!(tcp.options.starts_with(segment.options_raw), "{context}");
}

/// Whether a header stands within another one.
fn is_part(kind: HeaderKind) -> bool {
    use HeaderKind::{CaptureFields, GreKey, GtpUExtension, L2tpFields, TcpOption, TcpOptionsEnd};
    matches!(kind, CaptureFields | GreKey | GtpUExtension | L2tpFields | TcpOption | TcpOptionsEnd)
}

/// Headers stand one behind the other from the first byte to the payload; parts of headers within a header.
fn assert_tiled(headers: &[Header], bytes: &[u8], tcp: &Tcp) {
    let (parts, whole): (Vec<Header>, Vec<Header>) = headers.iter().partition(|header| is_part(header.kind));
    let mut at = 0;
    for header in &whole {
        assert_eq!(header.offset, at, "{whole:?}");
        at += header.length;
        assert!(at <= header.end && header.end <= bytes.len(), "{header:?} of {}", bytes.len());
    }
    let last = whole.last().unwrap();
    assert_eq!((last.kind, last.length), (HeaderKind::Tcp, 20 + tcp.options.len()));
    assert_eq!(bytes.get(at..last.end).unwrap(), tcp.payload);
    for part in parts {
        let holds = |header: &&Header| {
            header.offset <= part.offset && part.offset + part.length <= header.offset + header.length
        };
        assert!(whole.iter().find(holds).is_some(), "{part:?} is in none of {whole:?}");
    }
}

fn any_tcp() -> impl Strategy<Value = Tcp> {
    let numbers = (any::<(u16, u16, u32, u32, u16)>(), 0_u16..0x200);
    let options = proptest::collection::vec(any::<[u8; 4]>(), 0..=10);
    let payload = proptest::collection::vec(any::<u8>(), 0..300);
    (numbers, options, payload).prop_map(|((numbers, flags), options, payload)| Tcp {
        source_port: numbers.0,
        destination_port: numbers.1,
        sequence: numbers.2,
        acknowledgement: numbers.3,
        window: numbers.4,
        flags,
        options: options.concat(),
        payload,
    })
}

fn any_ip() -> impl Strategy<Value = Ip> {
    (any::<bool>(), any::<([u8; 16], [u8; 16], u8, u16, u8)>(), 0_u8..=5).prop_map(
        |(four, (source, destination, ttl, id, traffic_class), options)| {
            let last = |address: [u8; 16]| mapped([address[0], address[1], address[2], address[3]]);
            Ip {
                version: if four { 4 } else { 6 },
                source: if four { last(source) } else { source },
                destination: if four { last(destination) } else { destination },
                ttl,
                id: if four { id } else { 0 },
                traffic_class,
                option_bytes: options * 8,
            }
        },
    )
}

fn any_envelope() -> impl Strategy<Value = Envelope> {
    prop_oneof![
        Just(Envelope::IpInIp),
        Just(Envelope::Gre),
        any::<u32>().prop_map(Envelope::GreKeySequence),
        any::<u32>().prop_map(Envelope::GreEthernet),
        Just(Envelope::GreMpls),
        (1_u8..=3).prop_map(Envelope::Erspan),
        Just(Envelope::Wccp),
        Just(Envelope::GreWireless),
        (0_u32..1 << 24).prop_map(Envelope::Vxlan),
        (0_u32..1 << 24).prop_map(Envelope::Geneve),
        (0_u32..1 << 24).prop_map(Envelope::GeneveOptions),
        any::<u32>().prop_map(Envelope::GtpU),
        any::<u32>().prop_map(Envelope::GtpUSequence),
        any::<u32>().prop_map(Envelope::GtpUExtensions),
        Just(Envelope::Authentication),
        (1_u32..).prop_map(Envelope::L2tp),
        (1_u32..).prop_map(Envelope::L2tpEthernet),
        (1_u32..).prop_map(Envelope::L2tpPpp),
        Just(Envelope::GrePpp),
    ]
}

fn tunnel_of(envelope: Option<&Envelope>) -> Tunnel {
    let (kind, identifier) = match envelope {
        None => (TunnelKind::None, 0),
        Some(Envelope::IpInIp | Envelope::Authentication) => (TunnelKind::IpInIp, 0),
        Some(Envelope::Gre | Envelope::GreMpls | Envelope::Erspan(_) | Envelope::Wccp | Envelope::GreWireless) => {
            (TunnelKind::Gre, 0)
        }
        Some(Envelope::GrePpp) => (TunnelKind::Gre, 0),
        Some(Envelope::L2tp(identifier) | Envelope::L2tpEthernet(identifier) | Envelope::L2tpPpp(identifier)) => {
            (TunnelKind::L2tp, *identifier)
        }
        Some(Envelope::GreKeySequence(key) | Envelope::GreEthernet(key)) => (TunnelKind::Gre, *key),
        Some(Envelope::Vxlan(identifier)) => (TunnelKind::Vxlan, *identifier),
        Some(Envelope::Geneve(identifier) | Envelope::GeneveOptions(identifier)) => (TunnelKind::Geneve, *identifier),
        Some(Envelope::GtpU(teid) | Envelope::GtpUSequence(teid) | Envelope::GtpUExtensions(teid)) => {
            (TunnelKind::GtpU, *teid)
        }
    };
    Tunnel { kind, identifier }
}

/// Link type and frame for an IP packet, through a tag where the link can carry one.
fn any_link() -> impl Strategy<Value = (u16, Option<Tag>)> {
    let tag = prop_oneof![
        Just(None),
        Just(Some(Tag::Vlan)),
        Just(Some(Tag::QinQ)),
        Just(Some(Tag::Mpls)),
        Just(Some(Tag::MplsEthernet)),
        Just(Some(Tag::Pppoe)),
        Just(Some(Tag::PppoeCompressed)),
        Just(Some(Tag::BridgePortExtension)),
        Just(Some(Tag::VirtualInterface)),
        Just(Some(Tag::ProviderBackbone)),
        Just(Some(Tag::FabricPath)),
    ];
    prop_oneof![
        proptest::sample::select(&LINKS_FOR_IP[..]).prop_map(|link| (link, None)),
        (proptest::sample::select(&LINKS_WITH_ETHER_TYPE[..]), tag),
    ]
}

fn on_link(link_type: u16, tag: Option<Tag>, packet: &[u8]) -> Vec<u8> {
    let ether_type = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    match tag {
        None => link_frame(link_type, ether_type, packet),
        Some(tag) => {
            let (ether_type, tagged) = tag.wrap(packet);
            link_frame(link_type, ether_type, &tagged)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trip(
        tcp in any_tcp(),
        ip in any_ip(),
        outer in any_ip(),
        envelopes in proptest::collection::vec(any_envelope(), 0..4),
        (link_type, tag) in any_link(),
        trailer in 0_usize..20,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut packet = ip.packet(6, &tcp.bytes());
        for envelope in &envelopes {
            packet = envelope.wrap(&outer, &packet);
        }
        let mut bytes = on_link(link_type, tag, &packet);
        // Padding and frame check sequences are no payload.
        bytes.extend(std::iter::repeat_n(0xee, trailer));
        let mut decoder = Decoder::new();
        let segment = decoder.decode(frame(link_type, &bytes, bytes.len())).unwrap();
        assert_same(&segment, &ip, &tcp, "whole");
        prop_assert_eq!(segment.payload, &tcp.payload[..]);
        prop_assert_eq!(segment.options_raw, &tcp.options[..]);
        prop_assert!(!segment.header_truncated && !segment.options_truncated);
        prop_assert_eq!(segment.tunnel, tunnel_of(envelopes.first()));

        let mut headers = Vec::new();
        prop_assert_eq!(dissect(link_type, &bytes, bytes.len() as u32, &mut headers), Ok(()));
        assert_tiled(&headers, &bytes, &tcp);

        let captured = &bytes[..cut.index(bytes.len())];
        let mut decoder = Decoder::new();
        let of_cut = dissect(link_type, captured, bytes.len() as u32, &mut Vec::new());
        prop_assert_eq!(of_cut.err(), decoder.decode(frame(link_type, captured, bytes.len())).err());
        match decoder.decode(frame(link_type, captured, bytes.len())) {
            Ok(segment) => {
                assert_same(&segment, &ip, &tcp, "cut");
                prop_assert_eq!(segment.header_truncated, captured.len() + trailer + tcp.payload.len() < bytes.len());
                prop_assert!(segment.header_truncated || !segment.options_truncated);
                if !segment.options_truncated {
                    // What was not captured behind the end of the list, or of no list, changes nothing.
                    prop_assert_eq!(segment.options, parse_options(&tcp.options));
                }
                if tcp.options.is_empty() {
                    prop_assert!(!segment.options_truncated);
                }
            }
            Err(reject) => prop_assert_eq!(reject, Reject::CutShort),
        }
    }

    #[test]
    fn fragments_in_any_order(
        tcp in any_tcp(),
        mut ip in any_ip(),
        tunnelled in any::<bool>(),
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
        cuts in (1_usize..3, 3_usize..5),
    ) {
        ip.id = 77;
        let whole = [tcp.bytes(), vec![7; 24]].concat();
        let tcp = Tcp { payload: [tcp.payload.clone(), vec![7; 24]].concat(), ..tcp };
        let bounds = [0, cuts.0 * 8, cuts.1 * 8, whole.len()];
        let (mut decoder, mut dissector) = (Decoder::new(), Dissector::new());
        for (turn, part) in order.into_iter().enumerate() {
            let (from, to) = (bounds[part], bounds[part + 1]);
            let mut packet = ip.fragment(6, &whole[from..to], from as u16, part < 2);
            if tunnelled {
                packet = Envelope::GtpU(9).wrap(&Ip::example_4(), &packet);
            }
            let mut headers = Vec::new();
            let place = dissector.dissect(frame(101, &packet, packet.len()), &mut headers).unwrap().unwrap();
            prop_assert_eq!((place.datagram, place.offset), (0, from as u32));
            let last = headers.last().unwrap();
            prop_assert_eq!(packet.get(last.offset + last.length..last.end).unwrap(), &whole[from..to]);
            prop_assert_eq!(place.whole.is_some(), turn == 2);
            if let Some(datagram) = place.whole {
                prop_assert!(datagram.is_complete && datagram.wire_bytes == whole.len());
                prop_assert_eq!(&datagram.captured, &whole);
                assert_tiled(&datagram.headers, &whole, &tcp);
            }
            match decoder.decode(frame(101, &packet, packet.len())) {
                Ok(segment) => {
                    prop_assert_eq!(turn, 2);
                    let expected = if ip.version == 4 { ip } else { Ip { id: 0, ..ip } };
                    assert_same(&segment, &expected, &tcp, "assembled");
                    prop_assert_eq!(segment.payload, &tcp.payload[..]);
                }
                Err(reject) => {
                    prop_assert!(turn < 2);
                    prop_assert_eq!(reject, Reject::FragmentHeld);
                }
            }
        }
        prop_assert_eq!(decoder.unfinished_datagrams(), 0);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        link_type in proptest::sample::select(&KNOWN_LINK_TYPES[..]),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        wire_bytes in any::<u32>(),
    ) {
        let mut decoder = Decoder::new();
        if let Ok(segment) = decoder.decode(frame(link_type, &bytes, wire_bytes as usize)) {
            prop_assert!(segment.payload.len() <= segment.payload_length as usize);
        }
    }
}

#[test]
fn fragments_of_the_outer_packet() {
    let (ip, tcp) = (Ip::example_6(), Tcp::example());
    let outer = Ip::example_4();
    let inner = Envelope::Vxlan(5).wrap(&outer, &ip.packet(6, &tcp.bytes()));
    let payload = &inner[20..];
    let first = outer.fragment(17, &payload[..48], 0, true);
    let second = outer.fragment(17, &payload[48..], 48, false);
    let mut decoder = Decoder::new();
    let held = decoder.decode(frame(1, &ethernet(0x0800, &first), 14 + first.len())).err();
    assert_eq!(held, Some(Reject::FragmentHeld));
    let bytes = ethernet(0x0800, &second);
    let segment = decoder.decode(frame(1, &bytes, bytes.len())).unwrap();
    assert_same(&segment, &ip, &tcp, "outer fragments");
    assert_eq!(segment.tunnel, Tunnel { kind: TunnelKind::Vxlan, identifier: 5 });
}

#[test]
fn lengths_that_offload_leaves_zero() {
    let tcp = Tcp { payload: vec![1; 70_000], ..Tcp::example() };
    for ip in [Ip::example_4(), Ip::example_6()] {
        let mut packet = ip.packet(6, &tcp.bytes());
        let length_at = if ip.version == 4 { 2 } else { 4 };
        packet[length_at..length_at + 2].fill(0);
        let bytes = ethernet(ip.ether_type(), &packet);
        let mut decoder = Decoder::new();
        let segment = decoder.decode(frame(1, &bytes[..128], bytes.len())).unwrap();
        assert_same(&segment, &ip, &tcp, "length zero");
    }
}

#[test]
fn jumbo_payload() {
    let (ip, tcp) = (Ip::example_6(), Tcp { payload: vec![1; 70_000], ..Tcp::example() });
    let body = tcp.bytes();
    let hop_by_hop = [&[6, 0, 0xc2, 4], &(body.len() as u32 + 8).to_be_bytes()[..], &body].concat();
    let mut packet = ip.packet(0, &hop_by_hop);
    packet[4..6].fill(0);
    packet.extend([0; 6]);
    let mut decoder = Decoder::new();
    let segment = decoder.decode(frame(229, &packet, packet.len())).unwrap();
    assert_same(&segment, &ip, &tcp, "jumbo");
    assert_eq!(segment.payload.len(), 70_000);
}

#[test]
fn ethernet_padding_is_no_payload() {
    let (ip, tcp) = (Ip::example_4(), Tcp { payload: Vec::new(), options: Vec::new(), ..Tcp::example() });
    let mut bytes = ethernet(0x0800, &ip.packet(6, &tcp.bytes()));
    bytes.resize(60, 0);
    let mut decoder = Decoder::new();
    let segment = decoder.decode(frame(1, &bytes, 60)).unwrap();
    assert_eq!((segment.payload_length, segment.payload.len()), (0, 0));
}

#[test]
fn cisco_hdlc_may_hide_behind_any_serial_link_type() {
    let (ip, tcp) = (Ip::example_4(), Tcp::example());
    let bytes = link_frame(50, 0x0800, &ip.packet(6, &tcp.bytes()));
    for link_type in [9, 50, 104] {
        let mut decoder = Decoder::new();
        let segment = decoder.decode(frame(link_type, &bytes, bytes.len())).unwrap();
        assert_same(&segment, &ip, &tcp, "Cisco HDLC");
    }
}

#[test]
fn wireless_aggregate_and_address_forms() {
    let (ip, tcp) = (Ip::example_4(), Tcp::example());
    let packet = ip.packet(6, &tcp.bytes());
    let body = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet[..]].concat();
    let in_aggregate = [&[0; 12], &(body.len() as u16).to_be_bytes()[..], &body].concat();
    for (name, bytes) in [
        ("plain", wireless(0x08, 0x01, &[], &body)),
        ("four addresses", wireless(0x08, 0x03, &[0; 6], &body)),
        ("QoS", wireless(0x88, 0x02, &[0; 2], &body)),
        ("QoS with HT control", wireless(0x88, 0x82, &[0; 6], &body)),
        ("aggregate", wireless(0x88, 0x02, &[0x80, 0], &in_aggregate)),
    ] {
        let mut decoder = Decoder::new();
        let segment = decoder.decode(frame(105, &bytes, bytes.len())).unwrap();
        assert_same(&segment, &ip, &tcp, name);
    }
}

//! Well-formed inputs to begin with.
#![allow(clippy::unwrap_used)]

#[path = "../../crates/wire/tests/made/mod.rs"]
mod made;

use made::files::{self, Order};
use made::frames::{link_frame, udp, Envelope, Ip, Tag, Tcp, LINKS_FOR_IP, LINKS_WITH_ETHER_TYPE};

fn segments() -> Vec<Tcp> {
    let example = Tcp::example();
    vec![
        example.clone(),
        Tcp { options: Vec::new(), payload: Vec::new(), ..example.clone() },
        Tcp { flags: 0x002, options: vec![2, 4, 5, 0xb4, 4, 2, 1, 1, 1, 3, 3, 7], ..example.clone() },
        Tcp { options: vec![1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4], ..example },
    ]
}

/// IP packets, plain and with options, of both versions.
pub fn packets() -> Vec<Vec<u8>> {
    let headers = [Ip::example_4(), Ip::example_6()];
    let headers = headers.into_iter().flat_map(|ip| [ip, Ip { option_bytes: 16, ..ip }]);
    let mut out: Vec<Vec<u8>> =
        headers.flat_map(|ip| segments().into_iter().map(move |tcp| ip.packet(6, &tcp.bytes()))).collect();
    let jumbo = [&[6, 0, 0xc2, 4, 0, 0, 0, 40][..], &Tcp::example().bytes()].concat();
    out.push(Ip::example_6().packet(0, &jumbo));
    out
}

/// Packets in every tunnel.
pub fn tunnels() -> Vec<Vec<u8>> {
    let inner = Ip::example_4().packet(6, &Tcp::example().bytes());
    let envelopes = [
        Envelope::IpInIp,
        Envelope::Gre,
        Envelope::GreKeySequence(7),
        Envelope::GreEthernet(8),
        Envelope::GreMpls,
        Envelope::Vxlan(9),
        Envelope::GeneveOptions(13),
        Envelope::Erspan(2),
        Envelope::Erspan(3),
        Envelope::Wccp,
        Envelope::GtpU(10),
        Envelope::GtpUSequence(11),
        Envelope::GtpUExtensions(12),
        Envelope::Authentication,
        Envelope::L2tp(14),
        Envelope::L2tpEthernet(15),
        Envelope::L2tpPpp(16),
        Envelope::GrePpp,
    ];
    let mut out: Vec<Vec<u8>> = envelopes
        .iter()
        .flat_map(|envelope| [Ip::example_4(), Ip::example_6()].map(|outer| envelope.wrap(&outer, &inner)))
        .collect();
    out.push(Ip::example_4().packet(17, &udp(2152, 2152, &[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0])));
    out
}

/// A link type number in two bytes, then a frame of it.
pub fn frames() -> Vec<Vec<u8>> {
    let packet = Ip::example_4().packet(6, &Tcp::example().bytes());
    let named = |link: u16, frame: Vec<u8>| [&link.to_be_bytes()[..], &frame].concat();
    let mut out = Vec::new();
    for link in LINKS_FOR_IP {
        out.push(named(link, link_frame(link, 0x0800, &packet)));
    }
    for link in LINKS_WITH_ETHER_TYPE {
        out.push(named(link, link_frame(link, 0x0800, &packet)));
        for tag in [
            Tag::Vlan,
            Tag::QinQ,
            Tag::Mpls,
            Tag::MplsEthernet,
            Tag::Pppoe,
            Tag::PppoeCompressed,
            Tag::VirtualInterface,
            Tag::FabricPath,
        ] {
            let (ether_type, tagged) = tag.wrap(&packet);
            out.push(named(link, link_frame(link, ether_type, &tagged)));
        }
    }
    out
}

/// Fragments in sequence, each behind its length in two bytes.
pub fn fragment_sequences() -> Vec<Vec<u8>> {
    let whole = Tcp::example().bytes();
    let mut out = Vec::new();
    for ip in [Ip::example_4(), Ip::example_6()] {
        for bounds in [vec![(0, 16), (16, 40), (40, whole.len())], vec![(40, whole.len()), (0, 24), (16, 40)]] {
            let mut sequence = Vec::new();
            for (from, to) in bounds {
                let part = ip.fragment(6, &whole[from..to], from as u16, to < whole.len());
                sequence.extend((part.len() as u16).to_be_bytes());
                sequence.extend(part);
            }
            out.push(sequence);
        }
    }
    out
}

/// TCP option bytes.
pub fn options() -> Vec<Vec<u8>> {
    segments().into_iter().map(|tcp| tcp.options).collect()
}

pub fn pcap_files() -> Vec<Vec<u8>> {
    let frames = packets();
    let records: Vec<files::Record<'_>> = frames.iter().map(|frame| (1, 500, &frame[..], frame.len() as u32)).collect();
    let mut out = Vec::new();
    for order in [Order::Big, Order::Little] {
        for magic in [files::MICROSECONDS, files::NANOSECONDS, files::MODIFIED] {
            out.push(files::pcap(order, magic, 65_535, 101, &records));
            out.push(files::pcap(order, magic, 0, 147, &records[..2]));
        }
    }
    out
}

pub fn pcapng_files() -> Vec<Vec<u8>> {
    let packet = Ip::example_4().packet(6, &Tcp::example().bytes());
    let length = packet.len() as u32;
    [Order::Big, Order::Little]
        .map(|order| {
            [
                files::section(order),
                files::interface(order, 101, Some(9), Some(-5)),
                files::enhanced_packet(order, 0, 7, &packet, length),
                files::interface(order, 228, Some(0x8a), None),
                files::block(order, 5, &[0; 24]),
                files::simple_packet(order, &packet, length),
                files::obsolete_packet(order, 1, 9, &packet),
            ]
            .concat()
        })
        .to_vec()
}

pub fn snoop_files() -> Vec<Vec<u8>> {
    let frames = packets();
    let records: Vec<files::Record<'_>> = frames.iter().map(|frame| (1, 500, &frame[..], frame.len() as u32)).collect();
    vec![files::snoop(4, &records), files::snoop(8, &records[..2]), files::snoop(17, &records[..1])]
}

pub fn compressed_files() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for file in [&pcap_files()[0], &pcapng_files()[1]] {
        out.extend([files::gzip(file), files::zstd(file), files::xz(file), files::bzip2(file), files::lz4(file)]);
        let (one, two) = file.split_at(file.len() / 2);
        out.push([files::gzip(one), files::gzip(two)].concat());
    }
    out
}

/// Programs of eight-byte instructions behind the length of a frame in one byte, and the frame.
pub fn programs() -> Vec<Vec<u8>> {
    let frame = Ip::example_4().packet(6, &Tcp::example().bytes());
    let port_or_length: &[(u16, u8, u8, u32)] = &[
        (0x30, 0, 0, 9),
        (0x15, 0, 9, 6),
        (0xb1, 0, 0, 0),
        (0x48, 0, 0, 2),
        (0x02, 0, 0, 3),
        (0x15, 4, 0, 443),
        (0x80, 0, 0, 0),
        (0x07, 0, 0, 0),
        (0x60, 0, 0, 3),
        (0x2d, 0, 1, 0),
        (0x06, 0, 0, 1),
        (0x16, 0, 0, 0),
    ];
    let arithmetic: &[(u16, u8, u8, u32)] = &[
        (0x20, 0, 0, 0),
        (0x01, 0, 0, 3),
        (0x3c, 0, 0, 0),
        (0x94, 0, 0, 7),
        (0x64, 0, 0, 40),
        (0x84, 0, 0, 0),
        (0x16, 0, 0, 0),
    ];
    [port_or_length, arithmetic]
        .map(|program| {
            let mut out = vec![frame.len() as u8];
            out.extend(&frame);
            for (code, jt, jf, k) in program {
                out.extend(code.to_be_bytes());
                out.extend([*jt, *jf]);
                out.extend(k.to_be_bytes());
            }
            out
        })
        .to_vec()
}

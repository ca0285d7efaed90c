//! TCP segments in IP, in tunnels, in tags and labels.

use super::links::snap;
pub use super::links::{link_frame, pktap, wireless, LINKS_FOR_IP, LINKS_WITH_ETHER_TYPE};

/// A TCP segment to be made.
#[derive(Clone, Debug)]
pub struct Tcp {
    pub source_port: u16,
    pub destination_port: u16,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u16,
    pub window: u16,
    /// A multiple of four bytes, at most 40.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Tcp {
    pub fn example() -> Tcp {
        Tcp {
            source_port: 443,
            destination_port: 50_000,
            sequence: 0xfedc_ba98,
            acknowledgement: 0x0123_4567,
            flags: 0x018,
            window: 501,
            options: vec![1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4],
            payload: b"the quick brown fox jumps over the lazy dog".to_vec(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.source_port.to_be_bytes());
        out.extend(self.destination_port.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.acknowledgement.to_be_bytes());
        let words = (20 + self.options.len() as u16) / 4;
        out.extend(((words << 12) | self.flags).to_be_bytes());
        out.extend(self.window.to_be_bytes());
        out.extend([0; 4]);
        out.extend(&self.options);
        out.extend(&self.payload);
        out
    }
}

/// What an IP header is to say besides its payload.
#[derive(Clone, Copy, Debug)]
pub struct Ip {
    pub version: u8,
    /// IPv6, or IPv4 mapped into it.
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub ttl: u8,
    pub id: u16,
    pub traffic_class: u8,
    /// Bytes of IPv4 options, or of a destination options header; a multiple of eight.
    pub option_bytes: u8,
}

pub fn mapped(address: [u8; 4]) -> [u8; 16] {
    let mut out = [0; 16];
    out[10..12].fill(0xff);
    out[12..].copy_from_slice(&address);
    out
}

impl Ip {
    pub fn example_4() -> Ip {
        Ip {
            version: 4,
            source: mapped([192, 0, 2, 1]),
            destination: mapped([198, 51, 100, 7]),
            ttl: 57,
            id: 0x1234,
            traffic_class: 0x28,
            option_bytes: 0,
        }
    }

    pub fn example_6() -> Ip {
        let address = |last| [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        Ip { version: 6, source: address(1), destination: address(2), id: 0, ..Ip::example_4() }
    }

    pub fn ether_type(&self) -> u16 {
        if self.version == 4 {
            0x0800
        } else {
            0x86dd
        }
    }

    pub fn packet(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        self.fragment(protocol, payload, 0, false)
    }

    /// `offset_bytes` is a multiple of eight.
    pub fn fragment(&self, protocol: u8, payload: &[u8], offset_bytes: u16, more: bool) -> Vec<u8> {
        let options = usize::from(self.option_bytes);
        let mut out = Vec::new();
        if self.version == 4 {
            let total = (20 + options + payload.len()) as u16;
            out.extend([0x45 + (options / 4) as u8, self.traffic_class]);
            out.extend(total.to_be_bytes());
            out.extend(self.id.to_be_bytes());
            let more_flag = if more { 0x2000 } else { 0 };
            out.extend((offset_bytes / 8 + more_flag).to_be_bytes());
            out.extend([self.ttl, protocol, 0, 0]);
            out.extend(&self.source[12..]);
            out.extend(&self.destination[12..]);
            out.extend(std::iter::repeat_n(1, options));
            let checksum = !out.chunks(2).fold(0_u16, |sum, word| {
                let (sum, carried) = sum.overflowing_add(u16::from_be_bytes([word[0], word[1]]));
                sum + u16::from(carried)
            });
            out[10..12].copy_from_slice(&checksum.to_be_bytes());
            out.extend(payload);
        } else {
            let fragmented = offset_bytes != 0 || more;
            let mut rest = Vec::new();
            let mut next = protocol;
            if fragmented {
                rest.extend([next, 0]);
                rest.extend((offset_bytes | u16::from(more)).to_be_bytes());
                rest.extend(u32::from(self.id).to_be_bytes());
                next = 44;
            }
            if options > 0 {
                let mut header = vec![next, (options / 8 - 1) as u8];
                header.extend(std::iter::repeat_n(0, options - 2));
                header.extend(rest);
                rest = header;
                next = 60;
            }
            rest.extend(payload);
            out.extend([0x60 | (self.traffic_class >> 4), self.traffic_class << 4, 0, 0]);
            out.extend((rest.len() as u16).to_be_bytes());
            out.extend([next, self.ttl]);
            out.extend(self.source);
            out.extend(self.destination);
            out.extend(rest);
        }
        out
    }
}

/// Tunnels from IP packet to IP packet.
#[derive(Clone, Copy, Debug)]
pub enum Envelope {
    IpInIp,
    Gre,
    GreKeySequence(u32),
    GreEthernet(u32),
    GreMpls,
    /// By its type, 2 or 3; 1 has no header of its own.
    Erspan(u8),
    Wccp,
    GreWireless,
    Vxlan(u32),
    Geneve(u32),
    GeneveOptions(u32),
    GtpU(u32),
    GtpUSequence(u32),
    GtpUExtensions(u32),
    Authentication,
    /// Version 2 with all optional fields and two bytes of padding.
    L2tp(u32),
    /// Version 3 over IP with a cookie of eight bytes, Ethernet inside.
    L2tpEthernet(u32),
    /// Version 3 over UDP with a sublayer header, PPP inside.
    L2tpPpp(u32),
    GrePpp,
}

pub fn udp(source_port: u16, destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(source_port.to_be_bytes());
    out.extend(destination_port.to_be_bytes());
    out.extend((8 + payload.len() as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend(payload);
    out
}

pub fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    out.extend(ether_type.to_be_bytes());
    out.extend(payload);
    out
}

fn ether_type_of(packet: &[u8]) -> u16 {
    if packet[0] >> 4 == 4 {
        0x0800
    } else {
        0x86dd
    }
}

fn gtp_u(flags: u8, teid: u32, optional: &[u8], inner: &[u8]) -> Vec<u8> {
    let mut out = vec![0x30 | flags, 255];
    out.extend(((optional.len() + inner.len()) as u16).to_be_bytes());
    out.extend(teid.to_be_bytes());
    out.extend(optional);
    out.extend(inner);
    udp(2152, 2152, &out)
}

fn geneve(kind: [u8; 2], identifier: u32, options: &[u8], inner: &[u8]) -> Vec<u8> {
    let critical = if options.is_empty() { 0 } else { 0x40 };
    let header = [options.len() as u8 / 4, critical, kind[0], kind[1]];
    [&header, &(identifier << 8).to_be_bytes()[..], options, inner].concat()
}

impl Envelope {
    /// `inner`, an IP packet, inside a packet with the header `outer`.
    pub fn wrap(self, outer: &Ip, inner: &[u8]) -> Vec<u8> {
        let kind = ether_type_of(inner).to_be_bytes();
        match self {
            Envelope::IpInIp => outer.packet(if inner[0] >> 4 == 4 { 4 } else { 41 }, inner),
            Envelope::Gre => outer.packet(47, &[&[0, 0], &kind[..], inner].concat()),
            Envelope::GreKeySequence(key) => {
                outer.packet(47, &[&[0x30, 0], &kind[..], &key.to_be_bytes(), &[0, 0, 0, 9], inner].concat())
            }
            Envelope::GreEthernet(key) => {
                let frame = ethernet(ether_type_of(inner), inner);
                outer.packet(47, &[&[0x20, 0, 0x65, 0x58], &key.to_be_bytes()[..], &frame].concat())
            }
            Envelope::GreMpls => outer.packet(47, &[&[0, 0, 0x88, 0x47, 0, 1, 0x01, 64], inner].concat()),
            Envelope::Erspan(kind) => {
                let header: &[u8] = match kind {
                    1 => &[0, 0, 0x88, 0xbe],
                    2 => &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 9, 0x10, 6, 0, 6, 0, 0, 0, 20],
                    _ => &[
                        0x10, 0, 0x22, 0xeb, 0, 0, 0, 9, 0x20, 6, 0, 6, 1, 2, 3, 4, 0, 0, 0, 1, 9, 8, 7, 6, 5, 4, 3, 2,
                    ],
                };
                outer.packet(47, &[header, &ethernet(ether_type_of(inner), inner)].concat())
            }
            Envelope::Wccp => outer.packet(47, &[&[0, 0, 0x88, 0x3e, 5, 0x59, 0, 0x48], inner].concat()),
            Envelope::GreWireless => {
                let frame = wireless(0x88, 0x01, &[0, 0], &[&snap(ether_type_of(inner))[..], inner].concat());
                outer.packet(47, &[&[0, 0, 0x82, 0x10], &frame[..]].concat())
            }
            Envelope::Vxlan(identifier) => {
                let frame = ethernet(ether_type_of(inner), inner);
                let header = [[8, 0, 0, 0], (identifier << 8).to_be_bytes()].concat();
                outer.packet(17, &udp(55_555, 4789, &[&header[..], &frame].concat()))
            }
            Envelope::Geneve(identifier) => {
                let frame = ethernet(ether_type_of(inner), inner);
                outer.packet(17, &udp(55_555, 6081, &geneve([0x65, 0x58], identifier, &[], &frame)))
            }
            Envelope::GeneveOptions(identifier) => {
                // An IP packet without Ethernet, behind one critical option of 100 bytes.
                let options = [&[0, 1, 0x80, 24][..], &[0xab; 96]].concat();
                outer.packet(17, &udp(55_555, 6081, &geneve(kind, identifier, &options, inner)))
            }
            Envelope::GtpU(teid) => outer.packet(17, &gtp_u(0, teid, &[], inner)),
            Envelope::GtpUSequence(teid) => outer.packet(17, &gtp_u(2, teid, &[0, 7, 0, 0], inner)),
            Envelope::GtpUExtensions(teid) => {
                // A PDU session container (QFI 9) and a long PDCP PDU number of two units.
                let optional = [0, 0, 0, 0x85, 1, 0x10, 9, 0x82, 2, 0, 0, 0, 0, 0, 0, 0];
                outer.packet(17, &gtp_u(4, teid, &optional, inner))
            }
            Envelope::L2tp(identifier) => {
                let header =
                    [&[0x4a, 2, 0, 0][..], &identifier.to_be_bytes(), &[0, 5, 0, 6, 0, 2, 0xee, 0xee]].concat();
                outer.packet(17, &udp(1701, 1701, &[&header[..], &[0xff, 3], &ppp_protocol(inner), inner].concat()))
            }
            Envelope::L2tpEthernet(session) => {
                let cookie = [0xc0, 0x0c, 0x1e, 0xc0, 0x0c, 0x1e, 0xc0, 0x0c];
                let frame = ethernet(ether_type_of(inner), inner);
                outer.packet(115, &[&session.to_be_bytes()[..], &cookie, &frame].concat())
            }
            Envelope::L2tpPpp(session) => {
                let header = [&[0, 3, 0, 0][..], &session.to_be_bytes(), &[0x40, 0, 0, 9, 0xff, 3]].concat();
                outer.packet(17, &udp(1701, 1701, &[&header[..], &ppp_protocol(inner), inner].concat()))
            }
            Envelope::GrePpp => {
                // PPTP: payload length and call, a sequence number, PPP without address and control.
                let length = (inner.len() as u16 + 2).to_be_bytes();
                let header = [&[0x30, 1, 0x88, 0x0b][..], &length, &[0, 0, 0, 0, 0, 9]].concat();
                outer.packet(47, &[&header[..], &ppp_protocol(inner), inner].concat())
            }
            Envelope::Authentication => {
                // In transport mode the protected packet is in tunnel here, too: next header IP.
                let next = if inner[0] >> 4 == 4 { 4 } else { 41 };
                let header = [next, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];
                outer.packet(51, &[&header, inner].concat())
            }
        }
    }
}

/// What may stand between an EtherType and an IP packet.
#[derive(Clone, Copy, Debug)]
pub enum Tag {
    Vlan,
    QinQ,
    Mpls,
    MplsEthernet,
    Pppoe,
    PppoeCompressed,
    BridgePortExtension,
    /// VN-tag.
    VirtualInterface,
    ProviderBackbone,
    FabricPath,
}

impl Tag {
    /// `payload` of `ether_type` behind the tag, and the tag's own EtherType.
    pub fn wrap(self, ip: &[u8]) -> (u16, Vec<u8>) {
        let kind = ether_type_of(ip).to_be_bytes();
        let ppp = [0, if ip[0] >> 4 == 4 { 0x21 } else { 0x57 }];
        let session = |ppp: &[u8]| {
            let length = ((ppp.len() + ip.len()) as u16).to_be_bytes();
            [&[0x11, 0, 0, 1], &length[..], ppp, ip].concat()
        };
        match self {
            Tag::Vlan => (0x8100, [&[0, 42], &kind[..], ip].concat()),
            Tag::QinQ => (0x88a8, [&[0, 7, 0x81, 0, 0, 42], &kind[..], ip].concat()),
            Tag::Mpls => (0x8847, [&[0, 1, 0, 64, 0, 2, 0x01, 64], ip].concat()),
            Tag::MplsEthernet => {
                (0x8847, [&[0, 1, 0x01, 64, 0, 0, 0, 0], &ethernet(ether_type_of(ip), ip)[..]].concat())
            }
            Tag::Pppoe => (0x8864, session(&ppp)),
            Tag::PppoeCompressed => (0x8864, session(&ppp[1..])),
            Tag::BridgePortExtension => (0x893f, [&[0x10, 0, 0, 0xd3, 0, 0], &kind[..], ip].concat()),
            Tag::VirtualInterface => (0x8926, [&[0, 0, 0, 0x33], &kind[..], ip].concat()),
            Tag::ProviderBackbone => (0x88e7, [&[0, 0x1e, 0xbb, 0x30], &ethernet(ether_type_of(ip), ip)[..]].concat()),
            Tag::FabricPath => (0x8903, [&[0, 0x20], &ethernet(ether_type_of(ip), ip)[..]].concat()),
        }
    }
}

/// The two bytes of PPP that announce an IP packet.
fn ppp_protocol(packet: &[u8]) -> [u8; 2] {
    [0, if packet[0] >> 4 == 4 { 0x21 } else { 0x57 }]
}

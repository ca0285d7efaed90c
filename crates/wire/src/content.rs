//! What a frame without TCP holds, as far as its headers name it.

use std::fmt;

use crate::headers::ethertype;
use crate::headers::ip::protocol;
use crate::headers::layer::{Layer, WalkState};
use crate::headers::link::{self, LinkType};
use crate::headers::view::View;
use crate::segment::TunnelKind;

/// What a GRE header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrePayload {
    pub(crate) protocol: u16,
    /// It has a sequence number, which tells ERSPAN type II from type I.
    pub(crate) is_numbered: bool,
}

/// What the innermost header that was read announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    /// Nothing: the link header itself belongs to no packet.
    Link(LinkType),
    EtherType(u16),
    /// The destination's service access point of IEEE 802.2.
    ServiceAccessPoint(u8),
    PointToPoint(u16),
    IpVersion(u8),
    IpProtocol(u8),
    Gre(GrePayload),
    /// A message of a tunnel over UDP that carries no packet.
    TunnelMessage(&'static str),
}

/// What a frame without TCP holds; `Display` names it, such as `GRE protocol 0x88be (ERSPAN II)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    announced: Announced,
    tunnel: TunnelKind,
    gre: Option<GrePayload>,
}

impl Content {
    /// What stands at `view`, where a walk found at the header `layer` that no TCP follows.
    pub(crate) fn of(layer: Layer, view: View<'_>, state: &WalkState) -> Content {
        let announced = match layer {
            Layer::Link(link) => Announced::Link(link),
            Layer::EtherType(kind) => match state.gre {
                Some(gre) if gre.protocol == kind => Announced::Gre(gre),
                _ => Announced::EtherType(kind),
            },
            Layer::LogicalLinkControl => Announced::ServiceAccessPoint(view.byte(0).unwrap_or_default()),
            Layer::PointToPoint => Announced::PointToPoint(
                ethertype::point_to_point_protocol(view).map(|(number, _)| number).unwrap_or_default(),
            ),
            Layer::Ip => Announced::IpVersion(view.byte(0).unwrap_or_default() >> 4),
            Layer::IpPayload(number) => Announced::IpProtocol(number),
            Layer::Tcp => Announced::IpProtocol(protocol::TCP),
            Layer::GtpU => Announced::TunnelMessage("GTP-U"),
            Layer::Vxlan => Announced::TunnelMessage("VXLAN"),
            Layer::Geneve => Announced::TunnelMessage("Geneve"),
            Layer::L2tp => Announced::TunnelMessage("L2TP"),
        };
        Content { announced, tunnel: state.tunnel.kind, gre: state.gre }
    }

    /// A part of a datagram that cannot hold TCP.
    pub(crate) fn of_fragment(number: u8, state: &WalkState) -> Content {
        Content { announced: Announced::IpProtocol(number), tunnel: state.tunnel.kind, gre: state.gre }
    }

    /// Whether TCP may be inside all the same: encrypted, compressed, or in a tunnel that is not known.
    pub fn may_hide_tcp(&self) -> bool {
        const MACSEC: u16 = 0x88e5;
        const NSH: u16 = 0x894f;
        const ESP: u8 = 50;
        const IP_COMPRESSION: u8 = 108;
        // RFC 1990, RFC 1968, RFC 1962.
        const MULTILINK: u16 = 0x003d;
        const ENCRYPTED: [u16; 2] = [0x0053, 0x0055];
        const COMPRESSED: [u16; 2] = [0x00fb, 0x00fd];
        match self.announced {
            Announced::EtherType(kind) => kind == MACSEC || kind == NSH,
            Announced::PointToPoint(number) => {
                number == MULTILINK || ENCRYPTED.contains(&number) || COMPRESSED.contains(&number)
            }
            Announced::IpProtocol(number) => number == ESP || number == IP_COMPRESSION,
            // Zero is Cisco's keep-alive.
            Announced::Gre(GrePayload { protocol, .. }) => {
                protocol != 0 && (ether_type_name(protocol).is_none() || protocol == MACSEC || protocol == NSH)
            }
            Announced::Link(_)
            | Announced::ServiceAccessPoint(_)
            | Announced::IpVersion(_)
            | Announced::TunnelMessage(_) => false,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.announced {
            Announced::Link(link) => write!(out, "{} that carry no packet", link::frames_name(link))?,
            Announced::EtherType(kind) => {
                write!(out, "EtherType 0x{kind:04x}")?;
                named(out, ether_type_name(kind))?;
            }
            Announced::ServiceAccessPoint(point) => {
                write!(out, "IEEE 802.2 service access point 0x{point:02x}")?;
                named(out, service_access_point_name(point))?;
            }
            Announced::PointToPoint(number) => {
                write!(out, "PPP protocol 0x{number:04x}")?;
                named(out, point_to_point_name(number))?;
            }
            Announced::IpVersion(version) => write!(out, "IP version {version}")?,
            Announced::IpProtocol(number) => {
                write!(out, "IP protocol {number}")?;
                named(out, ip_protocol_name(number))?;
            }
            Announced::Gre(gre) => return write_gre(out, gre),
            Announced::TunnelMessage(name) => return write!(out, "{name} without a packet"),
        }
        match (self.tunnel, self.gre) {
            (TunnelKind::None, _) => Ok(()),
            (TunnelKind::Gre, Some(gre)) => {
                out.write_str(" in ")?;
                write_gre(out, gre)
            }
            (kind, _) => write!(out, " in {}", tunnel_name(kind)),
        }
    }
}

fn named(out: &mut fmt::Formatter<'_>, name: Option<&str>) -> fmt::Result {
    name.map_or(Ok(()), |name| write!(out, " ({name})"))
}

fn write_gre(out: &mut fmt::Formatter<'_>, gre: GrePayload) -> fmt::Result {
    const ERSPAN: u16 = 0x88be;
    write!(out, "GRE protocol 0x{:04x}", gre.protocol)?;
    match (gre.protocol, gre.is_numbered) {
        (ERSPAN, true) => out.write_str(" (ERSPAN II)"),
        (ERSPAN, false) => out.write_str(" (ERSPAN I)"),
        (protocol, _) => named(out, ether_type_name(protocol)),
    }
}

fn tunnel_name(kind: TunnelKind) -> &'static str {
    match kind {
        TunnelKind::None => "no tunnel",
        TunnelKind::GtpU => "GTP-U",
        TunnelKind::Gre => "GRE",
        TunnelKind::IpInIp => "IP in IP",
        TunnelKind::Vxlan => "VXLAN",
        TunnelKind::Udp => "an unknown UDP tunnel",
        TunnelKind::Geneve => "Geneve",
        TunnelKind::L2tp => "L2TP",
    }
}

fn ether_type_name(kind: u16) -> Option<&'static str> {
    Some(match kind {
        0x0800 => "IPv4",
        0x0806 => "ARP",
        0x22eb => "ERSPAN III",
        0x2000 => "CDP",
        0x2001 => "NHRP",
        0x6558 => "Ethernet",
        0x8035 => "RARP",
        0x809b => "AppleTalk",
        0x8137 => "IPX",
        0x86dd => "IPv6",
        0x8808 => "Ethernet flow control",
        0x8809 => "slow protocols such as LACP",
        0x880b => "PPP",
        0x883e => "WCCP",
        0x8847 | 0x8848 => "MPLS",
        0x8863 => "PPPoE discovery",
        0x8864 => "PPPoE",
        0x888e => "EAPOL",
        0x88be => "ERSPAN",
        0x88cc => "LLDP",
        0x88e5 => "MACsec",
        0x88f7 => "PTP",
        0x8902 => "connectivity faults",
        0x8906 => "FCoE",
        0x8915 => "RoCE",
        0x894f => "NSH",
        0x9000 => "Ethernet loopback",
        _ => return None,
    })
}

fn service_access_point_name(point: u8) -> Option<&'static str> {
    Some(match point {
        0x42 => "spanning tree",
        0xaa => "SNAP",
        0xe0 => "IPX",
        0xf0 => "NetBIOS",
        0xfe => "IS-IS and other OSI protocols",
        _ => return None,
    })
}

fn point_to_point_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x003d => "multilink",
        0x0053 | 0x0055 => "encrypted",
        0x00fb | 0x00fd => "compressed",
        0x8021 => "IPCP",
        0x8057 => "IPv6CP",
        0x80fd => "CCP",
        0xc021 => "LCP",
        0xc023 => "PAP",
        0xc223 => "CHAP",
        _ => return None,
    })
}

fn ip_protocol_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "hop-by-hop options",
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPv4",
        6 => "TCP",
        17 => "UDP",
        41 => "IPv6",
        46 => "RSVP",
        47 => "GRE",
        50 => "ESP: encrypted",
        51 => "AH",
        58 => "ICMPv6",
        59 => "no next header",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        108 => "IPComp: compressed",
        112 => "VRRP",
        115 => "L2TP",
        132 => "SCTP",
        136 => "UDP-Lite",
        137 => "MPLS",
        _ => return None,
    })
}

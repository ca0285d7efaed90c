//! Where the headers of a frame stand: the same walk that finds TCP segments, with a record of what it steps over.

use crate::error::Reject;
use crate::headers::view::View;

/// What a header is, or a part of one whose place varies. The numbers are those that the Python bindings hand over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum HeaderKind {
    /// Ethernet II or IEEE 802.3: destination, source, type or length.
    Ethernet = 0,
    /// BSD loopback: an address family.
    Loopback = 1,
    /// PPP, its address and control bytes included where they are there.
    Ppp = 2,
    CiscoHdlc = 3,
    LinuxSll = 4,
    LinuxSll2 = 5,
    Radiotap = 6,
    /// An IEEE 802.11 data frame header with its padding.
    Ieee80211 = 7,
    /// The header of one frame in an IEEE 802.11 aggregate (A-MSDU).
    AggregateSubframe = 8,
    /// IEEE 802.2 logical link control, SNAP included.
    LogicalLinkControl = 9,
    /// One tag of a switch: IEEE 802.1Q, 802.1ad, 802.1BR, VN-tag; or in front of a whole frame 802.1ah, FabricPath.
    Vlan = 10,
    /// A label stack, and the control word behind it where there is one.
    Mpls = 11,
    Pppoe = 12,
    /// An IPv4 header with its options.
    Ipv4 = 13,
    /// The 40 bytes of an IPv6 header, without extension headers.
    Ipv6 = 14,
    /// One IPv6 extension header, except the one of a fragment.
    Ipv6Extension = 15,
    /// The IP authentication header.
    Authentication = 16,
    Udp = 17,
    /// A TCP header with its options.
    Tcp = 18,
    /// A GRE header with its optional fields.
    Gre = 19,
    /// Within a GRE header: the key, or in PPTP the call identifier.
    GreKey = 20,
    /// A GTP-U header with its optional fields and extension headers.
    GtpU = 21,
    /// Within a GTP-U header: one extension header.
    GtpUExtension = 22,
    Vxlan = 23,
    /// What stands between UDP and a whole IP packet in a tunnel that is not known.
    UnknownTunnel = 24,
    /// Within a TCP header: one option of more than one byte, kind and length included.
    TcpOption = 25,
    /// Within a TCP header: the end of the option list or a broken option, and all option bytes behind it.
    TcpOptionsEnd = 26,
    /// The IPv6 header that says where in its datagram a fragment begins.
    Ipv6Fragment = 27,
    /// A Geneve header with its options.
    Geneve = 28,
    /// Between a GRE header and the packet: what ERSPAN or WCCP puts there.
    GreShim = 29,
    /// An L2TP header, cookie and sublayer included.
    L2tp = 30,
    /// What netfilter's logging puts before a packet.
    Nflog = 31,
    /// What macOS puts before a packet of any link-layer type.
    Pktap = 32,
    /// FDDI: frame control, destination, source.
    Fddi = 33,
    /// ARCnet, of any form.
    Arcnet = 34,
    /// IP over InfiniBand with the route header before it.
    InfiniBand = 35,
    /// Within an L2TP header: tunnel and session, the cookie and sublayer of a pseudo-wire, padding.
    L2tpFields = 36,
    /// What a capturing system puts before a packet of a link-layer type that it names or that is always the same.
    CaptureHeader = 37,
    /// Within a capture header: what says nothing of the packet's own headers.
    CaptureFields = 38,
}

impl HeaderKind {
    /// Every kind with its name in Python, in the order of the numbers.
    pub const NAMES: [(HeaderKind, &'static str); 39] = [
        (HeaderKind::Ethernet, "ETHERNET"),
        (HeaderKind::Loopback, "LOOPBACK"),
        (HeaderKind::Ppp, "PPP"),
        (HeaderKind::CiscoHdlc, "CISCO_HDLC"),
        (HeaderKind::LinuxSll, "LINUX_SLL"),
        (HeaderKind::LinuxSll2, "LINUX_SLL2"),
        (HeaderKind::Radiotap, "RADIOTAP"),
        (HeaderKind::Ieee80211, "IEEE802_11"),
        (HeaderKind::AggregateSubframe, "AGGREGATE_SUBFRAME"),
        (HeaderKind::LogicalLinkControl, "LOGICAL_LINK_CONTROL"),
        (HeaderKind::Vlan, "VLAN"),
        (HeaderKind::Mpls, "MPLS"),
        (HeaderKind::Pppoe, "PPPOE"),
        (HeaderKind::Ipv4, "IPV4"),
        (HeaderKind::Ipv6, "IPV6"),
        (HeaderKind::Ipv6Extension, "IPV6_EXTENSION"),
        (HeaderKind::Authentication, "AUTHENTICATION"),
        (HeaderKind::Udp, "UDP"),
        (HeaderKind::Tcp, "TCP"),
        (HeaderKind::Gre, "GRE"),
        (HeaderKind::GreKey, "GRE_KEY"),
        (HeaderKind::GtpU, "GTP_U"),
        (HeaderKind::GtpUExtension, "GTP_U_EXTENSION"),
        (HeaderKind::Vxlan, "VXLAN"),
        (HeaderKind::UnknownTunnel, "UNKNOWN_TUNNEL"),
        (HeaderKind::TcpOption, "TCP_OPTION"),
        (HeaderKind::TcpOptionsEnd, "TCP_OPTIONS_END"),
        (HeaderKind::Ipv6Fragment, "IPV6_FRAGMENT"),
        (HeaderKind::Geneve, "GENEVE"),
        (HeaderKind::GreShim, "GRE_SHIM"),
        (HeaderKind::L2tp, "L2TP"),
        (HeaderKind::Nflog, "NFLOG"),
        (HeaderKind::Pktap, "PKTAP"),
        (HeaderKind::Fddi, "FDDI"),
        (HeaderKind::Arcnet, "ARCNET"),
        (HeaderKind::InfiniBand, "INFINIBAND"),
        (HeaderKind::L2tpFields, "L2TP_FIELDS"),
        (HeaderKind::CaptureHeader, "CAPTURE_HEADER"),
        (HeaderKind::CaptureFields, "CAPTURE_FIELDS"),
    ];
}

/// One header of a frame. Offsets are bytes from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: HeaderKind,
    pub offset: usize,
    /// The header's length; of TCP as the header states it, even where less was captured.
    pub length: usize,
    /// Where, on the wire, ends what the header belongs to: beyond the captured bytes where the snap length cut it.
    pub end: usize,
}

/// Takes note of the headers that a walk steps over.
pub(crate) trait HeaderTrace {
    fn note(&mut self, header: Header);

    /// Steps over a header of `bytes` bytes at the start of `view`.
    #[inline]
    fn step_over<'a>(&mut self, kind: HeaderKind, view: View<'a>, bytes: usize) -> Result<View<'a>, Reject> {
        let rest = view.advance(bytes)?;
        self.note_at(kind, view, bytes);
        Ok(rest)
    }

    /// Notes that the first `bytes` bytes of `view` are a header.
    #[inline]
    fn note_at(&mut self, kind: HeaderKind, view: View<'_>, bytes: usize) {
        let end = view.start() + view.wire_bytes();
        self.note(Header { kind, offset: view.start(), length: bytes, end });
    }
}

/// No notes, at no cost.
impl HeaderTrace for () {
    #[inline(always)]
    fn note(&mut self, _: Header) {}
}

impl HeaderTrace for Vec<Header> {
    fn note(&mut self, header: Header) {
        self.push(header);
    }
}

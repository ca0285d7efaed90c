//! What capturing systems write before a packet: NFLOG of Linux, PKTAP of macOS, PFLOG and ENC of the BSDs, IPNET of
//! Solaris, and the headers of wireless and of Endace's cards.

use crate::error::Reject;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::layer::Layer;
use crate::headers::link::{address_family, LinkType};
use crate::headers::view::View;

/// A packet that a netfilter rule logged: attributes, of which one holds the packet from its IP header on
/// (tcpdump.org, LINKTYPE_NFLOG). Attributes stand in the byte order of the host that captured.
pub(super) fn nflog<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const HEADER_BYTES: usize = 4;
    const ATTRIBUTE_HEADER_BYTES: usize = 4;
    const PACKET_HEADER: u16 = 1;
    const PAYLOAD: u16 = 9;
    const INET: u8 = 2;
    const INET_6: u8 = 10;
    let family = view.byte(0)?;
    let mut kind_of_packet = None;
    let mut at = HEADER_BYTES;
    loop {
        let attribute = view.advance(at)?;
        // Types are small, so the order in which they are is the order of the bytes.
        let (length, kind) = match (attribute.u16_le(0)?, attribute.u16_le(2)?) {
            (length, kind) if kind <= 0xff => (length, kind),
            (length, kind) => (length.swap_bytes(), kind.swap_bytes()),
        };
        let length = usize::from(length);
        if length < ATTRIBUTE_HEADER_BYTES {
            return Err(Reject::Malformed);
        }
        match kind {
            PAYLOAD => {
                let packet = trace.step_over(HeaderKind::Nflog, view, at + ATTRIBUTE_HEADER_BYTES)?;
                let packet = packet.with_wire_bytes(length - ATTRIBUTE_HEADER_BYTES);
                return match (family, kind_of_packet) {
                    (INET | INET_6, _) => Ok((Layer::Ip, packet)),
                    (_, Some(kind)) => Ok((Layer::EtherType(kind), packet)),
                    _ => Err(Reject::NotIp),
                };
            }
            PACKET_HEADER => kind_of_packet = Some(attribute.u16_be(ATTRIBUTE_HEADER_BYTES)?),
            _ => {}
        }
        at += length.next_multiple_of(4);
    }
}

/// A packet with the interface and the process that macOS saw it at (bsd/net/pktap.h), then its own link header.
pub(super) fn pktap<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const LEAST_HEADER_BYTES: usize = 108;
    const PACKET_FOLLOWS: u32 = 1;
    let length = view.u32_le(0)?;
    let next = view.u32_le(4)?;
    let link_type = view.u32_le(8)?;
    let header_bytes = usize::try_from(length).map_err(|_| Reject::Malformed)?;
    if header_bytes < LEAST_HEADER_BYTES {
        return Err(Reject::Malformed);
    }
    if next != PACKET_FOLLOWS {
        return Err(Reject::NotIp);
    }
    let link = u16::try_from(link_type).ok().and_then(LinkType::from_number).ok_or(Reject::NotIp)?;
    Ok((Layer::Link(link), trace.step_over(HeaderKind::Pktap, view, header_bytes)?))
}

/// A packet that a rule of OpenBSD's packet filter logged (net/if_pflog.h): the header's length without padding, the
/// address family, names of interface and rules.
pub(super) fn pflog<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const LEAST_HEADER_BYTES: usize = 45;
    let [length, family] = view.bytes::<2>(0)?;
    let header_bytes = usize::from(length).next_multiple_of(4);
    if usize::from(length) < LEAST_HEADER_BYTES {
        return Err(Reject::Malformed);
    }
    if !is_internet(u32::from(family)) {
        return Err(Reject::NotIp);
    }
    Ok((Layer::Ip, step_over_fields(view, header_bytes, 2, trace)?))
}

/// A packet of an IPsec tunnel as it is inside (net/if_enc.h): the address family in the byte order of the host that
/// captured, the index of its security association, flags.
pub(super) fn enc<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const HEADER_BYTES: usize = 12;
    if !is_internet(address_family(view)?) {
        return Err(Reject::NotIp);
    }
    Ok((Layer::Ip, step_over_fields(view, HEADER_BYTES, 4, trace)?))
}

/// A packet of Solaris' IP layer (sys/ipnet.h): version, address family, interfaces and zones.
pub(super) fn ipnet<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const HEADER_BYTES: usize = 24;
    /// Up to the packet's length, by which other readers end it.
    const READ_BYTES: usize = 8;
    const INET: u8 = 2;
    const INET_6: u8 = 26;
    match view.byte(1)? {
        INET | INET_6 => Ok((Layer::Ip, step_over_fields(view, HEADER_BYTES, READ_BYTES, trace)?)),
        _ => Err(Reject::NotIp),
    }
}

/// An IEEE 802.11 frame behind what a Prism card measured, or behind the header of AVS, which drivers of those cards
/// write under either number. Both begin with a code and their length; of AVS in the order of the network, of Prism in
/// that of the host that captured.
pub(super) fn prism<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    /// Of both versions.
    const AVS: [u32; 2] = [0x8021_1001, 0x8021_1002];
    const PRISM: [u32; 2] = [0x41, 0x44];
    let (code, length) = (view.u32_be(0)?, view.u32_be(4)?);
    let length = match code {
        code if AVS.contains(&code) || PRISM.contains(&code) => length,
        code if PRISM.contains(&code.swap_bytes()) => length.swap_bytes(),
        _ => return Err(Reject::NotIp),
    };
    named_length(view, length, LinkType::Ieee80211, trace)
}

/// Per-packet information (CACE Technologies): fields of any kind, then a frame of the link-layer type that it names.
pub(super) fn ppi<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    let length = view.u16_le(2)?;
    let link_type = view.u32_le(4)?;
    let link = u16::try_from(link_type).ok().and_then(LinkType::from_number).ok_or(Reject::NotIp)?;
    named_length(view, u32::from(length), link, trace)
}

/// A record of an Endace card (Extensible Record Format): time, kind, lengths, then further headers of eight bytes, of
/// which each says whether another one follows, and Ethernet behind two bytes of padding, a serial frame, or IP.
pub(super) fn erf<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const TIME_BYTES: usize = 8;
    const HEADER_BYTES: usize = 16;
    const FURTHER_HEADER_BYTES: usize = 8;
    const ETHERNET_PADDING_BYTES: usize = 2;
    /// Set in the kind where a further header follows, and in the first byte of each where another one does.
    const MORE: u8 = 0x80;
    let kind = view.byte(TIME_BYTES)?;
    let mut frame_at = HEADER_BYTES;
    let mut more = kind & MORE;
    while more != 0 {
        more = view.byte(frame_at)? & MORE;
        frame_at += FURTHER_HEADER_BYTES;
    }
    let (layer, frame_at) = match kind & !MORE {
        2 | 11 | 16 | 20 => (Layer::Link(LinkType::Ethernet), frame_at + ETHERNET_PADDING_BYTES),
        1 | 10 | 15 | 19 => (Layer::Link(LinkType::PppOrCiscoHdlc), frame_at),
        22 | 23 => (Layer::Ip, frame_at),
        _ => return Err(Reject::NotIp),
    };
    Ok((layer, trace.step_over(HeaderKind::CaptureHeader, view, frame_at)?))
}

/// Steps over a header that states its own length behind eight bytes at the start.
fn named_length<'a>(
    view: View<'a>,
    length: u32,
    link: LinkType,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    const START_BYTES: usize = 8;
    let header_bytes = usize::try_from(length).ok().filter(|bytes| *bytes >= START_BYTES).ok_or(Reject::Malformed)?;
    Ok((Layer::Link(link), step_over_fields(view, header_bytes, START_BYTES, trace)?))
}

/// Steps over a header of which only the first `read_bytes` say what follows.
fn step_over_fields<'a>(
    view: View<'a>,
    header_bytes: usize,
    read_bytes: usize,
    trace: &mut impl HeaderTrace,
) -> Result<View<'a>, Reject> {
    let rest = trace.step_over(HeaderKind::CaptureHeader, view, header_bytes)?;
    trace.note_at(HeaderKind::CaptureFields, view.advance(read_bytes)?, header_bytes - read_bytes);
    Ok(rest)
}

/// IPv4, or IPv6 by the number of NetBSD and OpenBSD, FreeBSD or macOS.
fn is_internet(family: u32) -> bool {
    matches!(family, 2 | 24 | 28 | 30)
}

//! What capturing systems write before a packet: NFLOG of Linux, PKTAP of macOS.

use crate::error::Reject;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::layer::Layer;
use crate::headers::link::LinkType;
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

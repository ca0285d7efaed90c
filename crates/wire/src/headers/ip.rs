//! IPv4 and IPv6 headers with options, extension headers and fragments.

use crate::content;
use crate::error::Reject;
use crate::headers::fragments::FragmentKey;
use crate::headers::header::{Header, HeaderKind, HeaderTrace};
use crate::headers::layer::{mapped_ipv4, IpHeader, WalkState};
use crate::headers::view::View;

pub(crate) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const IPV4: u8 = 4;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const IPV6: u8 = 41;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const AUTHENTICATION: u8 = 51;
    pub(crate) const ICMP_6: u8 = 58;
    pub(crate) const DESTINATION_OPTIONS: u8 = 60;
    pub(crate) const L2TP: u8 = 115;
    pub(crate) const MPLS: u8 = 137;
    pub(crate) const MOBILITY: u8 = 135;
    pub(crate) const HOST_IDENTITY: u8 = 139;
    pub(crate) const SHIM6: u8 = 140;

    /// May TCP be inside?
    pub(crate) fn may_hold_tcp(number: u8) -> bool {
        matches!(number, IPV4 | TCP | UDP | IPV6 | GRE | AUTHENTICATION | DESTINATION_OPTIONS | L2TP | MPLS)
    }
}

/// A part of a datagram.
pub(crate) struct Fragment<'a> {
    pub(crate) key: FragmentKey,
    pub(crate) offset: u32,
    pub(crate) more: bool,
    pub(crate) payload: View<'a>,
}

/// What follows an IP header.
pub(crate) enum Content<'a> {
    Whole(u8, View<'a>),
    Part(Fragment<'a>),
}

/// Reads the IP header of either version.
pub(crate) fn step<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<Content<'a>, Reject> {
    match view.byte(0)? >> 4 {
        4 => version_4(view, state, trace),
        6 => version_6(view, state, trace),
        _ => Err(Reject::NotIp),
    }
}

const IPV4_HEADER_BYTES: usize = 20;

fn version_4<'a>(view: View<'a>, state: &mut WalkState, trace: &mut impl HeaderTrace) -> Result<Content<'a>, Reject> {
    let header = view.bytes::<IPV4_HEADER_BYTES>(0)?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let total_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_bytes < IPV4_HEADER_BYTES {
        return Err(Reject::Malformed);
    }
    // Segmentation offload leaves the length zero where it does not fit or is not known yet.
    let view = if total_bytes == 0 { view } else { view.with_wire_bytes(total_bytes) };
    let payload = trace.step_over(HeaderKind::Ipv4, view, header_bytes)?;
    let [_, traffic_class, _, _, id_high, id_low, part_high, part_low, ttl, number, ..] = header;
    let id = u16::from_be_bytes([id_high, id_low]);
    state.ip = IpHeader {
        version: 4,
        source: mapped_ipv4([header[12], header[13], header[14], header[15]]),
        destination: mapped_ipv4([header[16], header[17], header[18], header[19]]),
        ttl,
        id,
        traffic_class,
    };
    let part = u16::from_be_bytes([part_high, part_low]);
    let (offset, more) = (u32::from(part & 0x1fff) * 8, part & 0x2000 != 0);
    if offset == 0 && !more {
        return Ok(Content::Whole(number, payload));
    }
    part_of(number, u32::from(id), offset, more, payload, state)
}

const IPV6_HEADER_BYTES: usize = 40;
/// More extension headers than any packet has.
const MOST_EXTENSION_HEADERS: usize = 16;

fn version_6<'a>(view: View<'a>, state: &mut WalkState, trace: &mut impl HeaderTrace) -> Result<Content<'a>, Reject> {
    let header = view.bytes::<IPV6_HEADER_BYTES>(0)?;
    let payload_bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut number = header[6];
    let mut source = [0; 16];
    let mut destination = [0; 16];
    source.copy_from_slice(&header[8..24]);
    destination.copy_from_slice(&header[24..40]);
    state.ip = IpHeader {
        version: 6,
        source,
        destination,
        ttl: header[7],
        id: 0,
        traffic_class: (header[0] << 4) | (header[1] >> 4),
    };
    let header_start = view.start();
    let mut view = view.advance(IPV6_HEADER_BYTES)?;
    if payload_bytes != 0 {
        view = view.with_wire_bytes(payload_bytes);
    } else if number == protocol::HOP_BY_HOP {
        if let Some(jumbo_bytes) = jumbo_payload_bytes(view)? {
            view = view.with_wire_bytes(jumbo_bytes);
        }
    }
    let end = view.start() + view.wire_bytes();
    trace.note(Header { kind: HeaderKind::Ipv6, offset: header_start, length: IPV6_HEADER_BYTES, end });
    for _ in 0..MOST_EXTENSION_HEADERS {
        match number {
            protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::DESTINATION_OPTIONS
            | protocol::MOBILITY
            | protocol::HOST_IDENTITY
            | protocol::SHIM6 => {
                let [next, units] = view.bytes::<2>(0)?;
                number = next;
                view = trace.step_over(HeaderKind::Ipv6Extension, view, 8 * (usize::from(units) + 1))?;
            }
            protocol::FRAGMENT => {
                let [next, _, part_high, part_low, id @ ..] = view.bytes::<8>(0)?;
                number = next;
                view = trace.step_over(HeaderKind::Ipv6Fragment, view, 8)?;
                let part = u16::from_be_bytes([part_high, part_low]);
                let (offset, more) = (u32::from(part & 0xfff8), part & 1 != 0);
                if offset != 0 || more {
                    return part_of(number, u32::from_be_bytes(id), offset, more, view, state);
                }
            }
            _ => return Ok(Content::Whole(number, view)),
        }
    }
    Err(Reject::TooDeep)
}

/// The jumbo payload option (RFC 2675) of a hop-by-hop header.
fn jumbo_payload_bytes(view: View<'_>) -> Result<Option<usize>, Reject> {
    const PAD_1: u8 = 0;
    const JUMBO_PAYLOAD: u8 = 0xc2;
    let end = 8 * (usize::from(view.byte(1)?) + 1);
    let mut at = 2;
    while at + 1 < end {
        let kind = view.byte(at)?;
        if kind == PAD_1 {
            at += 1;
            continue;
        }
        let length = usize::from(view.byte(at + 1)?);
        if kind == JUMBO_PAYLOAD && length == 4 {
            return view.u32_be(at + 2).map(|bytes| usize::try_from(bytes).ok());
        }
        at += 2 + length;
    }
    Ok(None)
}

/// The authentication header (RFC 4302), the same in both versions.
pub(crate) fn authentication<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(u8, View<'a>), Reject> {
    let [next, words] = view.bytes::<2>(0)?;
    Ok((next, trace.step_over(HeaderKind::Authentication, view, 4 * (usize::from(words) + 2))?))
}

fn part_of<'a>(
    number: u8,
    identification: u32,
    offset: u32,
    more: bool,
    payload: View<'a>,
    state: &mut WalkState,
) -> Result<Content<'a>, Reject> {
    if !protocol::may_hold_tcp(number) {
        state.content = Some(content::Content::of_fragment(number, state));
        return Err(Reject::NotTcp);
    }
    let key = FragmentKey {
        source: state.ip.source,
        destination: state.ip.destination,
        identification,
        protocol: number,
        tunnel_identifier: state.tunnel.identifier,
    };
    Ok(Content::Part(Fragment { key, offset, more, payload }))
}

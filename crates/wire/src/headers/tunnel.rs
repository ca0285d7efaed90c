//! Tunnels over IP and UDP: GRE, GTP-U, VXLAN, Geneve, L2TP, and IP in IP.

pub(crate) mod l2tp;

use crate::content::GrePayload;
use crate::datagram::{self, DatagramPosition};
use crate::error::Reject;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::inner_packet;
use crate::headers::layer::{Layer, WalkState};
use crate::headers::link::LinkType;
use crate::headers::view::View;
use crate::segment::{Tunnel, TunnelKind};

/// UDP ports of tunnels that are decoded.
const GTP_U_PORT: u16 = 2152;
const VXLAN_PORT: u16 = 4789;
/// What Linux used before the assignment, and still does by default.
const OLD_VXLAN_PORT: u16 = 8472;
const GENEVE_PORT: u16 = 6081;
const L2TP_PORT: u16 = 1701;

/// Steps over a UDP header into the tunnel that its ports name, or to the TCP packet that it carries anyway.
pub(crate) fn udp<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    use datagram::HEADER_BYTES;
    let source = view.u16_be(0)?;
    let destination = view.u16_be(2)?;
    if destination == GTP_U_PORT || source == GTP_U_PORT {
        Ok((Layer::GtpU, trace.step_over(HeaderKind::Udp, view, HEADER_BYTES)?))
    } else if destination == VXLAN_PORT || destination == OLD_VXLAN_PORT {
        Ok((Layer::Vxlan, trace.step_over(HeaderKind::Udp, view, HEADER_BYTES)?))
    } else if destination == GENEVE_PORT {
        Ok((Layer::Geneve, trace.step_over(HeaderKind::Udp, view, HEADER_BYTES)?))
    } else if destination == L2TP_PORT || source == L2TP_PORT {
        Ok((Layer::L2tp, trace.step_over(HeaderKind::Udp, view, HEADER_BYTES)?))
    } else {
        unknown_udp(view, state, trace)
    }
}

/// Other ports: a packet in an unknown tunnel, or a datagram whose position is stored for the observer.
fn unknown_udp<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    // The UDP length separates payload from padding, except in super-packets, where it does not fit and is zero.
    let Ok(length) = view.u16_be(4).map(usize::from) else { return Err(Reject::NotTcp) };
    let view = if length < datagram::HEADER_BYTES { view } else { view.with_wire_bytes(length.min(view.wire_bytes())) };
    let Ok(payload) = trace.step_over(HeaderKind::Udp, view, datagram::HEADER_BYTES) else {
        return Err(Reject::NotTcp);
    };
    if let Some(packet) = inner_packet::find(payload) {
        state.tunnel = Tunnel { kind: TunnelKind::Udp, identifier: 0 };
        trace.note_at(HeaderKind::UnknownTunnel, payload, packet.start() - payload.start());
        return Ok((Layer::Ip, packet));
    }
    state.datagram = Some(DatagramPosition {
        start: view.start(),
        captured_end: view.end(),
        wire_bytes: view.wire_bytes(),
        assembled: false,
        ip: state.ip,
    });
    Err(Reject::NotTcp)
}

/// GTP-U user data (3GPP TS 29.281 section 5), extension headers included.
pub(crate) fn gtp_u<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    const VERSION_1_GTP: u8 = 0x30;
    const EXTENSION: u8 = 0x04;
    const ANY_OPTIONAL_FIELD: u8 = 0x07;
    const USER_DATA: u8 = 255;
    const NO_MORE_EXTENSIONS: u8 = 0;
    let [flags, message] = view.bytes::<2>(0)?;
    if flags & 0xf0 != VERSION_1_GTP || message != USER_DATA {
        return Err(Reject::NotTcp);
    }
    let identifier = view.u32_be(4)?;
    let mut inner = view.advance(8)?;
    if flags & ANY_OPTIONAL_FIELD != 0 {
        let mut next = if flags & EXTENSION != 0 { inner.byte(3)? } else { NO_MORE_EXTENSIONS };
        inner = inner.advance(4)?;
        while next != NO_MORE_EXTENSIONS {
            let extension_bytes = 4 * usize::from(inner.byte(0)?);
            if extension_bytes == 0 {
                return Err(Reject::Malformed);
            }
            next = inner.byte(extension_bytes - 1)?;
            inner = trace.step_over(HeaderKind::GtpUExtension, inner, extension_bytes)?;
        }
    }
    state.tunnel = Tunnel { kind: TunnelKind::GtpU, identifier };
    trace.note_at(HeaderKind::GtpU, view, inner.start() - view.start());
    // A PDU session may also carry Ethernet or nothing that is IP; only the version nibble distinguishes them.
    match inner.byte(0)? >> 4 {
        4 | 6 => Ok((Layer::Ip, inner)),
        _ => Err(Reject::NotTcp),
    }
}

/// VXLAN (RFC 7348).
pub(crate) fn vxlan<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    const IDENTIFIER_IS_VALID: u8 = 0x08;
    if view.byte(0)? & IDENTIFIER_IS_VALID == 0 {
        return Err(Reject::NotTcp);
    }
    let identifier = view.u32_be(4)? >> 8;
    state.tunnel = Tunnel { kind: TunnelKind::Vxlan, identifier };
    Ok((Layer::Link(LinkType::Ethernet), trace.step_over(HeaderKind::Vxlan, view, 8)?))
}

/// Geneve (RFC 8926); its options say nothing about the packet behind them.
pub(crate) fn geneve<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    const HEADER_BYTES: usize = 8;
    let version = view.byte(0)? >> 6;
    let option_words = usize::from(view.byte(0)? & 0x3f);
    if version != 0 {
        return Err(Reject::NotTcp);
    }
    let kind = view.u16_be(2)?;
    let identifier = view.u32_be(4)? >> 8;
    let inner = trace.step_over(HeaderKind::Geneve, view, HEADER_BYTES + 4 * option_words)?;
    state.tunnel = Tunnel { kind: TunnelKind::Geneve, identifier };
    Ok((Layer::EtherType(kind), inner))
}

/// GRE (RFC 2784, RFC 2890) and its PPTP variant (RFC 2637).
pub(crate) fn gre<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    let flags = view.u16_be(0)?;
    let kind = view.u16_be(2)?;
    let version = flags & 0x7;
    if version > 1 || flags & ROUTING != 0 {
        return Err(Reject::NotTcp);
    }
    let mut header_bytes = 4;
    if flags & CHECKSUM != 0 {
        header_bytes += 4;
    }
    let mut identifier = 0;
    if flags & KEY != 0 {
        identifier = view.u32_be(header_bytes)?;
        if version == 1 {
            // The upper half is the payload length, the lower the call.
            identifier &= 0xffff;
            trace.note_at(HeaderKind::GreKey, view.advance(header_bytes + 2)?, 2);
        } else {
            trace.note_at(HeaderKind::GreKey, view.advance(header_bytes)?, 4);
        }
        header_bytes += 4;
    }
    if flags & SEQUENCE != 0 {
        header_bytes += 4;
    }
    if version == 1 && flags & ACKNOWLEDGEMENT != 0 {
        header_bytes += 4;
    }
    let inner = trace.step_over(HeaderKind::Gre, view, header_bytes)?;
    state.tunnel = Tunnel { kind: TunnelKind::Gre, identifier };
    state.gre = Some(GrePayload { protocol: kind, is_numbered: flags & SEQUENCE != 0 });
    gre_payload(kind, flags & SEQUENCE != 0, inner, trace)
}

/// What GRE's protocol type announces: an EtherType, or a header of ERSPAN, WCCP or an access point.
fn gre_payload<'a>(
    kind: u16,
    is_numbered: bool,
    view: View<'a>,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    // draft-foschiano-erspan: type II is numbered, type I is not and has no header.
    const ERSPAN: u16 = 0x88be;
    const ERSPAN_II_BYTES: usize = 8;
    const ERSPAN_III: u16 = 0x22eb;
    const ERSPAN_III_BYTES: usize = 12;
    const ERSPAN_III_PLATFORM_BYTES: usize = 8;
    const ERSPAN_III_HAS_PLATFORM: u8 = 0x01;
    const ERSPAN_III_IP_PACKET: u8 = 2;
    // draft-wilson-wrec-wccp-v2: version 1 has no header, and its packets are IPv4.
    const WCCP: u16 = 0x883e;
    const WCCP_2_BYTES: usize = 4;
    // Aruba access points: one type for each queue, with an 802.11 frame.
    const ARUBA_FIRST: u16 = 0x8200;
    const ARUBA_LAST: u16 = 0x82f0;
    let (next, shim_bytes) = match kind {
        ERSPAN => (Layer::Link(LinkType::Ethernet), if is_numbered { ERSPAN_II_BYTES } else { 0 }),
        ERSPAN_III => {
            let [frame_type, flags] = view.bytes::<2>(10)?;
            let is_ip = (frame_type >> 2) & 0x1f == ERSPAN_III_IP_PACKET;
            let has_platform = flags & ERSPAN_III_HAS_PLATFORM != 0;
            let inner = if is_ip { Layer::Ip } else { Layer::Link(LinkType::Ethernet) };
            (inner, ERSPAN_III_BYTES + if has_platform { ERSPAN_III_PLATFORM_BYTES } else { 0 })
        }
        WCCP => (Layer::Ip, if (0x45..=0x4f).contains(&view.byte(0)?) { 0 } else { WCCP_2_BYTES }),
        ARUBA_FIRST..=ARUBA_LAST if kind & 0xf == 0 => (Layer::Link(LinkType::Ieee80211), 0),
        _ => (Layer::EtherType(kind), 0),
    };
    if shim_bytes == 0 {
        return Ok((next, view));
    }
    Ok((next, trace.step_over(HeaderKind::GreShim, view, shim_bytes)?))
}

/// IP directly in IP (RFC 2003, RFC 4213).
pub(crate) fn ip_in_ip<'a>(view: View<'a>, state: &mut WalkState) -> (Layer, View<'a>) {
    state.tunnel = Tunnel { kind: TunnelKind::IpInIp, identifier: 0 };
    (Layer::Ip, view)
}

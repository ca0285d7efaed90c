//! Tunnels over IP and UDP: GRE, GTP-U, VXLAN, and IP in IP.

use crate::datagram::{self, DatagramPlace};
use crate::error::Reject;
use crate::inner_packet;
use crate::layer::{Layer, Passed};
use crate::link::LinkType;
use crate::segment::{Tunnel, TunnelKind};
use crate::view::View;

/// UDP ports of tunnels that are looked into.
const GTP_U_PORT: u16 = 2152;
const VXLAN_PORT: u16 = 4789;
/// What Linux used before the assignment, and still does by default.
const OLD_VXLAN_PORT: u16 = 8472;

/// Steps over a UDP header into the tunnel that its ports name, or to the TCP packet that it carries anyway.
pub(crate) fn udp<'a>(view: View<'a>, passed: &mut Passed) -> Result<(Layer, View<'a>), Reject> {
    use datagram::HEADER_BYTES;
    let source = view.u16_be(0)?;
    let destination = view.u16_be(2)?;
    if destination == GTP_U_PORT || source == GTP_U_PORT {
        Ok((Layer::GtpU, view.advance(HEADER_BYTES)?))
    } else if destination == VXLAN_PORT || destination == OLD_VXLAN_PORT {
        Ok((Layer::Vxlan, view.advance(HEADER_BYTES)?))
    } else {
        unknown_udp(view, passed)
    }
}

/// What travels on other ports: packets in a tunnel that is not known here, or a datagram worth remembering.
fn unknown_udp<'a>(view: View<'a>, passed: &mut Passed) -> Result<(Layer, View<'a>), Reject> {
    // The UDP length tells padding apart, except in super-packets, where it does not fit and is zero.
    let Ok(length) = view.u16_be(4).map(usize::from) else { return Err(Reject::NotTcp) };
    let view = if length < datagram::HEADER_BYTES { view } else { view.with_wire_bytes(length.min(view.wire_bytes())) };
    let Ok(payload) = view.advance(datagram::HEADER_BYTES) else { return Err(Reject::NotTcp) };
    if let Some(packet) = inner_packet::find(payload) {
        passed.tunnel = Tunnel { kind: TunnelKind::Udp, identifier: 0 };
        return Ok((Layer::Ip, packet));
    }
    passed.datagram = Some(DatagramPlace {
        start: view.start(),
        captured_end: view.end(),
        wire_bytes: view.wire_bytes(),
        assembled: false,
        ip: passed.ip,
    });
    Err(Reject::NotTcp)
}

/// GTP-U user data (3GPP TS 29.281 section 5), extension headers included.
pub(crate) fn gtp_u<'a>(view: View<'a>, passed: &mut Passed) -> Result<(Layer, View<'a>), Reject> {
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
            inner = inner.advance(extension_bytes)?;
        }
    }
    passed.tunnel = Tunnel { kind: TunnelKind::GtpU, identifier };
    // A PDU session may also carry Ethernet or nothing that is IP; only the nibble tells.
    match inner.byte(0)? >> 4 {
        4 | 6 => Ok((Layer::Ip, inner)),
        _ => Err(Reject::NotTcp),
    }
}

/// VXLAN (RFC 7348).
pub(crate) fn vxlan<'a>(view: View<'a>, passed: &mut Passed) -> Result<(Layer, View<'a>), Reject> {
    const IDENTIFIER_IS_VALID: u8 = 0x08;
    if view.byte(0)? & IDENTIFIER_IS_VALID == 0 {
        return Err(Reject::NotTcp);
    }
    let identifier = view.u32_be(4)? >> 8;
    passed.tunnel = Tunnel { kind: TunnelKind::Vxlan, identifier };
    Ok((Layer::Link(LinkType::Ethernet), view.advance(8)?))
}

/// GRE (RFC 2784, RFC 2890) and its PPTP variant (RFC 2637).
pub(crate) fn gre<'a>(view: View<'a>, passed: &mut Passed) -> Result<(Layer, View<'a>), Reject> {
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
        }
        header_bytes += 4;
    }
    if flags & SEQUENCE != 0 {
        header_bytes += 4;
    }
    if version == 1 && flags & ACKNOWLEDGEMENT != 0 {
        header_bytes += 4;
    }
    let inner = view.advance(header_bytes)?;
    passed.tunnel = Tunnel { kind: TunnelKind::Gre, identifier };
    Ok((Layer::EtherType(kind), inner))
}

/// IP directly in IP (RFC 2003, RFC 4213).
pub(crate) fn ip_in_ip<'a>(view: View<'a>, passed: &mut Passed) -> (Layer, View<'a>) {
    passed.tunnel = Tunnel { kind: TunnelKind::IpInIp, identifier: 0 };
    (Layer::Ip, view)
}

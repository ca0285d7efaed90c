//! L2TP: PPP sessions over UDP in version 2, pseudo-wires over UDP or IP in version 3.

use crate::error::Reject;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::inner_packet;
use crate::headers::layer::{Layer, WalkState};
use crate::headers::link::LinkType;
use crate::headers::view::View;
use crate::segment::{Tunnel, TunnelKind};

const CONTROL: u16 = 0x8000;
const LENGTH: u16 = 0x4000;
const SEQUENCE: u16 = 0x0800;
const OFFSET: u16 = 0x0200;
const VERSION: u16 = 0x000f;

/// L2TP in UDP: data of version 2 (RFC 2661) or of version 3 (RFC 3931 section 4.1.2).
pub(crate) fn in_udp<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    let flags = view.u16_be(0)?;
    if flags & CONTROL != 0 {
        return Err(Reject::NotTcp);
    }
    match flags & VERSION {
        2 => version_2(flags, view, state, trace),
        3 => session(view, 4, state, trace),
        _ => Err(Reject::NotTcp),
    }
}

/// L2TPv3 directly in IP (RFC 3931 section 4.1.1).
pub(crate) fn in_ip<'a>(
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    session(view, 0, state, trace)
}

fn version_2<'a>(
    flags: u16,
    view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    let identifiers_at = if flags & LENGTH != 0 { 4 } else { 2 };
    let identifier = view.u32_be(identifiers_at)?;
    let mut header_bytes = identifiers_at + 4;
    if flags & SEQUENCE != 0 {
        header_bytes += 4;
    }
    if flags & OFFSET != 0 {
        let padding_bytes = usize::from(view.u16_be(header_bytes)?);
        header_bytes += 2;
        trace.note_at(HeaderKind::L2tpFields, view.advance(header_bytes)?, padding_bytes);
        header_bytes += padding_bytes;
    }
    let inner = trace.step_over(HeaderKind::L2tp, view, header_bytes)?;
    trace.note_at(HeaderKind::L2tpFields, view.advance(identifiers_at)?, 4);
    state.tunnel = Tunnel { kind: TunnelKind::L2tp, identifier };
    Ok((Layer::PointToPoint, inner))
}

/// A session of version 3 whose identifier stands at `session_at`. Only the control connection, which may be long over,
/// says what follows: a cookie of 0, 4 or 8 bytes, a sublayer header of 0 or 4, and Ethernet, PPP or IP. So all of these
/// are tried, and one is taken only where an IP header of the right length follows.
fn session<'a>(
    view: View<'a>,
    session_at: usize,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    const OF_CONTROL: u32 = 0;
    const LARGEST_SHIM_BYTES: usize = 12;
    /// Session, shim, Ethernet with a VLAN tag, the longest IPv4 header.
    const MOST_BYTES_NEEDED: usize = 4 + LARGEST_SHIM_BYTES + 18 + 60;
    let identifier = view.u32_be(session_at)?;
    if identifier == OF_CONTROL {
        return Err(Reject::NotTcp);
    }
    for shim_bytes in (0..=LARGEST_SHIM_BYTES).step_by(4) {
        let header_bytes = session_at + 4 + shim_bytes;
        let Ok(inner) = view.advance(header_bytes) else { break };
        let Some(layer) = pseudo_wire(inner) else { continue };
        state.tunnel = Tunnel { kind: TunnelKind::L2tp, identifier };
        let inner = trace.step_over(HeaderKind::L2tp, view, header_bytes)?;
        trace.note_at(HeaderKind::L2tpFields, view.advance(session_at)?, header_bytes - session_at);
        return Ok((layer, inner));
    }
    let is_cut = view.captured().len() < view.wire_bytes().min(session_at + MOST_BYTES_NEEDED);
    Err(if is_cut { Reject::CutShort } else { Reject::NotTcp })
}

/// What `view` is, if an IP packet in Ethernet (perhaps with a VLAN tag), in PPP, or alone.
fn pseudo_wire(view: View<'_>) -> Option<Layer> {
    const ETHERNET_BYTES: usize = 14;
    const VLAN_BYTES: usize = 4;
    let is_ip_at = |at: usize| view.advance(at).is_ok_and(inner_packet::is_ip_header);
    let names_ip = |at: usize| matches!(view.bytes::<2>(at), Ok([0x08, 0x00] | [0x86, 0xdd]));
    let is_tagged = matches!(view.bytes::<2>(ETHERNET_BYTES - 2), Ok([0x81, 0x00] | [0x88, 0xa8]));
    if names_ip(ETHERNET_BYTES - 2) && is_ip_at(ETHERNET_BYTES) {
        return Some(Layer::Link(LinkType::Ethernet));
    }
    if is_tagged && names_ip(ETHERNET_BYTES + VLAN_BYTES - 2) && is_ip_at(ETHERNET_BYTES + VLAN_BYTES) {
        return Some(Layer::Link(LinkType::Ethernet));
    }
    match view.bytes::<4>(0) {
        Ok([0xff, 0x03, 0x00, 0x21 | 0x57]) if is_ip_at(4) => Some(Layer::PointToPoint),
        Ok([0x00, 0x21 | 0x57, ..]) if is_ip_at(2) => Some(Layer::PointToPoint),
        _ if is_ip_at(0) => Some(Layer::Ip),
        _ => None,
    }
}

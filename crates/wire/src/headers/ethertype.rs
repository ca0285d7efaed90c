//! What an EtherType announces: IP, or tags, labels and sessions in front of it.

use crate::error::Reject;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::layer::Layer;
use crate::headers::link::LinkType;
use crate::headers::view::View;

/// Smaller values are IEEE 802.3 lengths.
pub(crate) const ETHERNET_MINIMUM_TYPE: u16 = 0x0600;
pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const PROVIDER_VLAN: u16 = 0x88a8;
const OLD_PROVIDER_VLAN: [u16; 3] = [0x9100, 0x9200, 0x9300];
const BRIDGE_PORT_EXTENSION: u16 = 0x893f;
const VN_TAG: u16 = 0x8926;
const PROVIDER_BACKBONE: u16 = 0x88e7;
const FABRIC_PATH: u16 = 0x8903;
pub(crate) const MPLS_UNICAST: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
pub(crate) const PPPOE_SESSION: u16 = 0x8864;
pub(crate) const TRANSPARENT_ETHERNET: u16 = 0x6558;
pub(crate) const PPP: u16 = 0x880b;

const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
const LLC_IP: u8 = 0x06;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS_UNICAST: u16 = 0x0281;
const PPP_MPLS_MULTICAST: u16 = 0x0283;

/// Steps over the header that `kind` announces.
pub(crate) fn step<'a>(kind: u16, view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    match kind {
        IPV4 | IPV6 => Ok((Layer::Ip, view)),
        VLAN | PROVIDER_VLAN => tag(view, 2, trace),
        other if OLD_PROVIDER_VLAN.contains(&other) => tag(view, 2, trace),
        BRIDGE_PORT_EXTENSION => tag(view, 6, trace),
        VN_TAG => tag(view, 4, trace),
        PROVIDER_BACKBONE => Ok((Layer::Link(LinkType::Ethernet), trace.step_over(HeaderKind::Vlan, view, 4)?)),
        FABRIC_PATH => Ok((Layer::Link(LinkType::Ethernet), trace.step_over(HeaderKind::Vlan, view, 2)?)),
        MPLS_UNICAST | MPLS_MULTICAST => mpls(view, trace),
        PPPOE_SESSION => pppoe(view, trace),
        TRANSPARENT_ETHERNET => Ok((Layer::Link(LinkType::Ethernet), view)),
        PPP => Ok((Layer::PointToPoint, view)),
        _ => Err(Reject::NotIp),
    }
}

/// A tag of `control_bytes` bytes with the next EtherType behind them: IEEE 802.1Q and 802.1ad, 802.1BR, VN-tag,
/// or that of a switch's maker.
pub(crate) fn tag<'a>(
    view: View<'a>,
    control_bytes: usize,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    let kind = view.u16_be(control_bytes)?;
    let payload = trace.step_over(HeaderKind::Vlan, view, control_bytes + 2)?;
    if kind >= ETHERNET_MINIMUM_TYPE {
        Ok((Layer::EtherType(kind), payload))
    } else {
        Ok((Layer::LogicalLinkControl, payload))
    }
}

/// A label stack (RFC 3032) names no payload: the first nibble decides (RFC 4928); zero is a control word (RFC 4385).
fn mpls<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const LABEL_BYTES: usize = 4;
    const CONTROL_WORD_BYTES: usize = 4;
    let mut stack_bytes = 0;
    loop {
        let bottom = view.byte(stack_bytes + 2)? & 1 != 0;
        stack_bytes += LABEL_BYTES;
        if bottom {
            break;
        }
    }
    match view.byte(stack_bytes)? >> 4 {
        4 | 6 => Ok((Layer::Ip, trace.step_over(HeaderKind::Mpls, view, stack_bytes)?)),
        0 => {
            let frame = trace.step_over(HeaderKind::Mpls, view, stack_bytes + CONTROL_WORD_BYTES)?;
            Ok((Layer::Link(LinkType::Ethernet), frame))
        }
        _ => Err(Reject::NotIp),
    }
}

/// PPPoE session data (RFC 2516).
fn pppoe<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const HEADER_BYTES: usize = 6;
    let [version_and_type, code] = view.bytes::<2>(0)?;
    if version_and_type != 0x11 {
        return Err(Reject::Malformed);
    }
    if code != 0 {
        return Err(Reject::NotIp);
    }
    Ok((Layer::PointToPoint, trace.step_over(HeaderKind::Pppoe, view, HEADER_BYTES)?))
}

/// A PPP protocol field of one or two bytes, with or without the address and control bytes (RFC 1661, RFC 1662).
pub(crate) fn point_to_point<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    let (protocol, header_bytes) = point_to_point_protocol(view)?;
    let payload = trace.step_over(HeaderKind::Ppp, view, header_bytes)?;
    match protocol {
        PPP_IPV4 | PPP_IPV6 => Ok((Layer::Ip, payload)),
        PPP_MPLS_UNICAST | PPP_MPLS_MULTICAST => Ok((Layer::EtherType(MPLS_UNICAST), payload)),
        _ => Err(Reject::NotIp),
    }
}

/// The protocol number that a PPP header announces, and the header's length.
pub(crate) fn point_to_point_protocol(view: View<'_>) -> Result<(u16, usize), Reject> {
    let at = if view.byte(0)? == 0xff && view.byte(1)? == 0x03 { 2 } else { 0 };
    let first = view.byte(at)?;
    if first & 1 != 0 {
        return Ok((u16::from(first), at + 1));
    }
    Ok((view.u16_be(at)?, at + 2))
}

/// IEEE 802.2, with an EtherType behind it where it is SNAP (RFC 1042).
pub(crate) fn logical_link_control<'a>(
    view: View<'a>,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    let header = view.bytes::<3>(0)?;
    if header == SNAP {
        let kind = view.u16_be(6)?;
        return Ok((Layer::EtherType(kind), trace.step_over(HeaderKind::LogicalLinkControl, view, 8)?));
    }
    if header[0] == LLC_IP && header[1] == LLC_IP {
        return Ok((Layer::Ip, trace.step_over(HeaderKind::LogicalLinkControl, view, 3)?));
    }
    Err(Reject::NotIp)
}

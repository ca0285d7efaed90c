//! What an EtherType announces: IP, or tags, labels and sessions in front of it.

use crate::error::Reject;
use crate::layer::Layer;
use crate::link::LinkType;
use crate::view::View;

/// Smaller values are IEEE 802.3 lengths.
pub(crate) const ETHERNET_MINIMUM_TYPE: u16 = 0x0600;
pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const PROVIDER_VLAN: u16 = 0x88a8;
const OLD_PROVIDER_VLAN: [u16; 3] = [0x9100, 0x9200, 0x9300];
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
pub(crate) fn step(kind: u16, view: View<'_>) -> Result<(Layer, View<'_>), Reject> {
    match kind {
        IPV4 | IPV6 => Ok((Layer::Ip, view)),
        VLAN | PROVIDER_VLAN => vlan(view),
        other if OLD_PROVIDER_VLAN.contains(&other) => vlan(view),
        MPLS_UNICAST | MPLS_MULTICAST => mpls(view),
        PPPOE_SESSION => pppoe(view),
        TRANSPARENT_ETHERNET => Ok((Layer::Link(LinkType::Ethernet), view)),
        PPP => Ok((Layer::PointToPoint, view)),
        _ => Err(Reject::NotIp),
    }
}

/// IEEE 802.1Q and 802.1ad tags alike.
fn vlan(view: View<'_>) -> Result<(Layer, View<'_>), Reject> {
    let kind = view.u16_be(2)?;
    let payload = view.advance(4)?;
    if kind >= ETHERNET_MINIMUM_TYPE {
        Ok((Layer::EtherType(kind), payload))
    } else {
        Ok((Layer::LogicalLinkControl, payload))
    }
}

/// A label stack (RFC 3032) names no payload: the first nibble tells (RFC 4928), zero being a control word (RFC 4385).
fn mpls(mut view: View<'_>) -> Result<(Layer, View<'_>), Reject> {
    loop {
        let bottom = view.byte(2)? & 1 != 0;
        view = view.advance(4)?;
        if bottom {
            break;
        }
    }
    match view.byte(0)? >> 4 {
        4 | 6 => Ok((Layer::Ip, view)),
        0 => Ok((Layer::Link(LinkType::Ethernet), view.advance(4)?)),
        _ => Err(Reject::NotIp),
    }
}

/// PPPoE session data (RFC 2516).
fn pppoe(view: View<'_>) -> Result<(Layer, View<'_>), Reject> {
    const HEADER_BYTES: usize = 6;
    let [version_and_type, code] = view.bytes::<2>(0)?;
    if version_and_type != 0x11 {
        return Err(Reject::Malformed);
    }
    if code != 0 {
        return Err(Reject::NotIp);
    }
    Ok((Layer::PointToPoint, view.advance(HEADER_BYTES)?))
}

/// A PPP protocol field of one or two bytes, with or without the address and control bytes (RFC 1661, RFC 1662).
pub(crate) fn point_to_point(mut view: View<'_>) -> Result<(Layer, View<'_>), Reject> {
    if view.byte(0)? == 0xff && view.byte(1)? == 0x03 {
        view = view.advance(2)?;
    }
    let first = view.byte(0)?;
    let (protocol, field_bytes) = if first & 1 != 0 { (u16::from(first), 1) } else { (view.u16_be(0)?, 2) };
    let payload = view.advance(field_bytes)?;
    match protocol {
        PPP_IPV4 | PPP_IPV6 => Ok((Layer::Ip, payload)),
        PPP_MPLS_UNICAST | PPP_MPLS_MULTICAST => Ok((Layer::EtherType(MPLS_UNICAST), payload)),
        _ => Err(Reject::NotIp),
    }
}

/// IEEE 802.2, with an EtherType behind it where it is SNAP (RFC 1042).
pub(crate) fn logical_link_control(view: View<'_>) -> Result<(Layer, View<'_>), Reject> {
    let header = view.bytes::<3>(0)?;
    if header == SNAP {
        return Ok((Layer::EtherType(view.u16_be(6)?), view.advance(8)?));
    }
    if header[0] == LLC_IP && header[1] == LLC_IP {
        return Ok((Layer::Ip, view.advance(3)?));
    }
    Err(Reject::NotIp)
}

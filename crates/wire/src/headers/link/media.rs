//! Link headers of media other than Ethernet: FDDI, ARCnet, IP over InfiniBand.

use crate::error::Reject;
use crate::headers::ethertype::{IPV4, IPV6};
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::layer::Layer;
use crate::headers::view::View;

/// FDDI (ISO 9314-2): a frame control byte, two addresses, and IEEE 802.2 where the frame is one of data.
pub(super) fn fddi<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const HEADER_BYTES: usize = 13;
    /// Long addresses and the format of an LLC frame, synchronous or not, of any priority.
    const FORMAT: u8 = 0x70;
    const LLC: u8 = 0x50;
    if view.byte(0)? & FORMAT != LLC {
        return Err(Reject::NotIp);
    }
    Ok((Layer::LogicalLinkControl, trace.step_over(HeaderKind::Fddi, view, HEADER_BYTES)?))
}

/// ARCnet as the BSDs give it: a protocol number right behind two addresses.
pub(super) fn arcnet<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    /// An exception packet: padding and the real flag and sequence number follow.
    const EXCEPTION: u8 = 0xff;
    arcnet_packet(view, 2, |flag| if flag == EXCEPTION { 4 } else { 0 }, trace)
}

/// ARCnet as Linux gives it, with two bytes more before the protocol number and never an exception packet.
pub(super) fn arcnet_linux<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    arcnet_packet(view, 4, |_| 0, trace)
}

/// The header from its protocol number on: RFC 1201 with flag and sequence number of a fragment, RFC 1051 without.
///
/// Of a packet that was divided, the first fragment holds the headers; the others are nothing that can be read alone.
fn arcnet_packet<'a>(
    view: View<'a>,
    protocol_at: usize,
    exception_bytes: impl Fn(u8) -> usize,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    const RFC_1201_IPV4: u8 = 212;
    const RFC_1201_IPV6: u8 = 196;
    const RFC_1051_IPV4: u8 = 240;
    const FRAGMENT_FIELD_BYTES: usize = 3;
    let (kind, header_bytes) = match view.byte(protocol_at)? {
        RFC_1051_IPV4 => (IPV4, protocol_at + 1),
        protocol @ (RFC_1201_IPV4 | RFC_1201_IPV6) => {
            let skipped = exception_bytes(view.byte(protocol_at + 1)?);
            let flag = view.byte(protocol_at + 1 + skipped)?;
            let is_later_fragment = flag != 0 && flag & 1 == 0;
            if is_later_fragment {
                return Err(Reject::NotIp);
            }
            let kind = if protocol == RFC_1201_IPV4 { IPV4 } else { IPV6 };
            (kind, protocol_at + 1 + FRAGMENT_FIELD_BYTES + skipped)
        }
        _ => return Err(Reject::NotIp),
    };
    Ok((Layer::EtherType(kind), trace.step_over(HeaderKind::Arcnet, view, header_bytes)?))
}

/// IP over InfiniBand (RFC 4391): what the capture puts in the place of a global route header, then an EtherType.
pub(super) fn infiniband<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    const ETHER_TYPE_AT: usize = 40;
    const HEADER_BYTES: usize = 44;
    let kind = view.u16_be(ETHER_TYPE_AT)?;
    Ok((Layer::EtherType(kind), trace.step_over(HeaderKind::InfiniBand, view, HEADER_BYTES)?))
}

//! Ethernet between a switch and the processor that it belongs to: a tag says which port a frame came in by (DSA of
//! Linux).

use crate::error::Reject;
use crate::headers::ethertype;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::layer::Layer;
use crate::headers::link::LinkType;
use crate::headers::view::View;

const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: usize = 4;

/// The makers' tags that the registry of tcpdump.org knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SwitchTag {
    /// Four bytes behind the addresses.
    Broadcom,
    /// Four bytes before the addresses.
    BroadcomPrepended,
    /// Four bytes behind the addresses.
    Marvell,
    /// The same four bytes behind an EtherType and two bytes more.
    MarvellWithEtherType,
}

pub(super) fn step<'a>(
    tag: SwitchTag,
    view: View<'a>,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    let tag_bytes = match tag {
        SwitchTag::BroadcomPrepended => {
            return Ok((Layer::Link(LinkType::Ethernet), trace.step_over(HeaderKind::Vlan, view, TAG_BYTES)?));
        }
        SwitchTag::Broadcom | SwitchTag::Marvell => TAG_BYTES,
        SwitchTag::MarvellWithEtherType => TAG_BYTES + 4,
    };
    let view = trace.step_over(HeaderKind::Ethernet, view, ADDRESSES_BYTES)?;
    ethertype::tag(view, tag_bytes, trace)
}

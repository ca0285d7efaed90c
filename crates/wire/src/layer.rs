//! What may come next inside a frame, and what the headers passed so far have told.

use crate::datagram::DatagramPlace;
use crate::link::LinkType;
use crate::segment::{Tunnel, TunnelKind};

/// The header that stands at the view's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Link(LinkType),
    /// Whatever this EtherType says.
    EtherType(u16),
    /// IEEE 802.2 logical link control.
    LogicalLinkControl,
    /// A PPP protocol field, perhaps behind its address and control bytes.
    PointToPoint,
    /// IPv4 or IPv6, told by the version nibble.
    Ip,
    /// What this IP protocol number says.
    IpPayload(u8),
    GtpU,
    Vxlan,
    /// The end of the walk.
    Tcp,
}

/// Fields of the innermost IP header passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IpHeader {
    pub(crate) version: u8,
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) ttl: u8,
    pub(crate) id: u16,
    pub(crate) traffic_class: u8,
}

/// What a walk has learnt on its way down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) ip: IpHeader,
    pub(crate) tunnel: Tunnel,
    pub(crate) layers_left: u8,
    /// The UDP datagram at which the walk ended, if it did.
    pub(crate) datagram: Option<DatagramPlace>,
}

/// Headers in one another: four tunnels with VLAN tags and labels stay well below.
const MOST_LAYERS: u8 = 40;

impl Passed {
    pub(crate) fn nothing() -> Self {
        Passed {
            ip: IpHeader::default(),
            tunnel: Tunnel { kind: TunnelKind::None, identifier: 0 },
            layers_left: MOST_LAYERS,
            datagram: None,
        }
    }
}

/// IPv4 behind `::ffff:0:0/96`.
#[inline]
pub(crate) fn mapped_ipv4(address: [u8; 4]) -> [u8; 16] {
    (0xffff_0000_0000 | u128::from(u32::from_be_bytes(address))).to_be_bytes()
}

//! The kinds of header that may come next in a frame, and the state of the walk through them.

use crate::content::{Content, GrePayload};
use crate::datagram::DatagramPosition;
use crate::headers::echo::FoundEcho;
use crate::headers::link::LinkType;
use crate::segment::{Tunnel, TunnelKind};

/// The header that stands at the view's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Link(LinkType),
    /// The header that this EtherType announces.
    EtherType(u16),
    /// IEEE 802.2 logical link control.
    LogicalLinkControl,
    /// A PPP protocol field, perhaps behind its address and control bytes.
    PointToPoint,
    /// IPv4 or IPv6, by the version nibble.
    Ip,
    /// The header that this IP protocol number announces.
    IpPayload(u8),
    GtpU,
    Vxlan,
    Geneve,
    L2tp,
    /// The end of the walk.
    Tcp,
}

/// Fields of the innermost IP header that was walked over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IpHeader {
    pub(crate) version: u8,
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) ttl: u8,
    pub(crate) id: u16,
    pub(crate) traffic_class: u8,
}

/// What the headers walked over so far contained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkState {
    pub(crate) ip: IpHeader,
    pub(crate) tunnel: Tunnel,
    /// What the innermost GRE header announced.
    pub(crate) gre: Option<GrePayload>,
    pub(crate) layers_left: u8,
    /// What no TCP was found in, where the walk ended so.
    pub(crate) content: Option<Content>,
    /// The UDP datagram at which the walk ended, if it did.
    pub(crate) datagram: Option<DatagramPosition>,
    /// The ICMP echo message at which the walk ended, if it did.
    pub(crate) echo: Option<FoundEcho>,
}

/// Headers in one another: four tunnels with VLAN tags and labels stay well below.
const MOST_LAYERS: u8 = 40;

impl WalkState {
    pub(crate) fn start() -> Self {
        WalkState {
            ip: IpHeader::default(),
            tunnel: Tunnel { kind: TunnelKind::None, identifier: 0 },
            gre: None,
            layers_left: MOST_LAYERS,
            content: None,
            datagram: None,
            echo: None,
        }
    }
}

/// IPv4 behind `::ffff:0:0/96`.
#[inline]
pub(crate) fn mapped_ipv4(address: [u8; 4]) -> [u8; 16] {
    (0xffff_0000_0000 | u128::from(u32::from_be_bytes(address))).to_be_bytes()
}

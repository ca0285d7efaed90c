//! Link-layer headers of every known link-layer type (numbers of the tcpdump.org registry).

mod media;
mod metadata;
mod names;
mod switch_tag;

use crate::error::Reject;
use crate::headers::ethertype::ETHERNET_MINIMUM_TYPE;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::layer::Layer;
use crate::headers::view::View;
use crate::headers::wireless;
pub(crate) use names::frames_name;
pub use names::link_type_name;
use switch_tag::SwitchTag;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkType {
    /// BSD loopback: address family in the byte order of the capturing host, or of the network.
    Loopback,
    Ethernet,
    PppOrCiscoHdlc,
    PppEther,
    /// IPv4 or IPv6 without any link header.
    Raw,
    LinuxSll,
    LinuxSll2,
    Ieee80211,
    Radiotap,
    /// ARCnet as the BSDs give it.
    Arcnet,
    ArcnetLinux,
    Fddi,
    /// IP over InfiniBand.
    InfiniBand,
    Nflog,
    Pktap,
    /// What OpenBSD's packet filter logs.
    Pflog,
    /// What IPsec of the BSDs has decrypted, or is about to encrypt.
    Enc,
    /// IP of Solaris' zones.
    Ipnet,
    /// Which way a PPP frame went, before it.
    PppDirection,
    /// IEEE 802.11 behind a header of Prism cards or in the form of AVS, which may stand for each other.
    Prism,
    /// A header that names the link-layer type of the frame behind it.
    Ppi,
    /// A record of an Endace card (ERF): its header names the kind of frame behind it.
    Erf,
    /// Ethernet between the ports of a switch and its processor.
    SwitchTag(SwitchTag),
}

/// Every link-layer type number that can be read.
pub const KNOWN_LINK_TYPES: [u16; 35] = [
    0, 1, 7, 9, 10, 12, 14, 50, 51, 101, 104, 105, 108, 109, 113, 117, 119, 127, 129, 149, 163, 192, 197, 204, 226,
    228, 229, 239, 242, 258, 276, 281, 282, 284, 285,
];

impl LinkType {
    pub(crate) fn from_number(number: u16) -> Option<LinkType> {
        Some(match number {
            0 | 108 => LinkType::Loopback,
            1 => LinkType::Ethernet,
            7 => LinkType::Arcnet,
            9 | 50 | 104 => LinkType::PppOrCiscoHdlc,
            10 => LinkType::Fddi,
            51 => LinkType::PppEther,
            12 | 14 | 101 | 228 | 229 => LinkType::Raw,
            105 => LinkType::Ieee80211,
            109 => LinkType::Enc,
            113 => LinkType::LinuxSll,
            117 => LinkType::Pflog,
            119 | 163 => LinkType::Prism,
            127 => LinkType::Radiotap,
            129 => LinkType::ArcnetLinux,
            // The second is the number of a user's own type that macOS uses in its captures.
            258 | 149 => LinkType::Pktap,
            204 => LinkType::PppDirection,
            192 => LinkType::Ppi,
            197 => LinkType::Erf,
            226 => LinkType::Ipnet,
            239 => LinkType::Nflog,
            242 => LinkType::InfiniBand,
            276 => LinkType::LinuxSll2,
            281 => LinkType::SwitchTag(SwitchTag::Broadcom),
            282 => LinkType::SwitchTag(SwitchTag::BroadcomPrepended),
            284 => LinkType::SwitchTag(SwitchTag::Marvell),
            285 => LinkType::SwitchTag(SwitchTag::MarvellWithEtherType),
            _ => return None,
        })
    }
}

const SLL_BYTES: usize = 16;
const SLL2_BYTES: usize = 20;
const SLL_PROTOCOL_802_2: u16 = 4;

/// Steps over the link header.
pub(crate) fn step<'a>(
    link: LinkType,
    view: View<'a>,
    trace: &mut impl HeaderTrace,
) -> Result<(Layer, View<'a>), Reject> {
    match link {
        LinkType::Raw => Ok((Layer::Ip, view)),
        LinkType::Ethernet => ethernet(view, trace),
        LinkType::Loopback => loopback(view, trace),
        LinkType::PppOrCiscoHdlc => hdlc(view, trace),
        LinkType::PppEther => Ok((Layer::EtherType(crate::headers::ethertype::PPPOE_SESSION), view)),
        LinkType::LinuxSll => cooked(view.u16_be(14)?, trace.step_over(HeaderKind::LinuxSll, view, SLL_BYTES)?),
        LinkType::LinuxSll2 => cooked(view.u16_be(0)?, trace.step_over(HeaderKind::LinuxSll2, view, SLL2_BYTES)?),
        LinkType::Ieee80211 => wireless::frame(view, trace),
        LinkType::Radiotap => wireless::radiotap(view, trace),
        LinkType::Arcnet => media::arcnet(view, trace),
        LinkType::ArcnetLinux => media::arcnet_linux(view, trace),
        LinkType::Fddi => media::fddi(view, trace),
        LinkType::InfiniBand => media::infiniband(view, trace),
        LinkType::Nflog => metadata::nflog(view, trace),
        LinkType::Pktap => metadata::pktap(view, trace),
        LinkType::Pflog => metadata::pflog(view, trace),
        LinkType::Enc => metadata::enc(view, trace),
        LinkType::Ipnet => metadata::ipnet(view, trace),
        LinkType::PppDirection => {
            Ok((Layer::Link(LinkType::PppOrCiscoHdlc), trace.step_over(HeaderKind::CaptureHeader, view, 1)?))
        }
        LinkType::Prism => metadata::prism(view, trace),
        LinkType::Ppi => metadata::ppi(view, trace),
        LinkType::Erf => metadata::erf(view, trace),
        LinkType::SwitchTag(tag) => switch_tag::step(tag, view, trace),
    }
}

/// Ethernet II, or IEEE 802.3 with a length where the type would be.
fn ethernet<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    let kind = view.u16_be(12)?;
    let payload = trace.step_over(HeaderKind::Ethernet, view, 14)?;
    if kind >= ETHERNET_MINIMUM_TYPE {
        Ok((Layer::EtherType(kind), payload))
    } else {
        Ok((Layer::LogicalLinkControl, payload))
    }
}

/// An address family in the byte order of the host that captured, or of the network: all are less than 256.
fn address_family(view: View<'_>) -> Result<u32, Reject> {
    let little = view.u32_le(0)?;
    Ok(if little <= 0xff { little } else { little.swap_bytes() })
}

/// Families are numbered by the capturing system: 2 is IPv4 everywhere, IPv6 has five numbers.
fn loopback<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    match address_family(view)? {
        2 | 10 | 23 | 24 | 28 | 30 => Ok((Layer::Ip, trace.step_over(HeaderKind::Loopback, view, 4)?)),
        _ => Err(Reject::NotIp),
    }
}

/// PPP in HDLC framing, or Cisco HDLC, distinguished by the address byte.
fn hdlc<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    match view.byte(0)? {
        0x0f | 0x8f => {
            let kind = view.u16_be(2)?;
            Ok((Layer::EtherType(kind), trace.step_over(HeaderKind::CiscoHdlc, view, 4)?))
        }
        _ => Ok((Layer::PointToPoint, view)),
    }
}

fn cooked(protocol: u16, payload: View<'_>) -> Result<(Layer, View<'_>), Reject> {
    match protocol {
        SLL_PROTOCOL_802_2 => Ok((Layer::LogicalLinkControl, payload)),
        _ => Ok((Layer::EtherType(protocol), payload)),
    }
}

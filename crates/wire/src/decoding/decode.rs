//! One frame to its TCP segment, through every header and tunnel in between.

use crate::content::Content;
use crate::datagram::{Datagram, DatagramPosition};
use crate::decoding::position::SegmentPosition;
use crate::error::Reject;
use crate::headers::echo::{self, Echo, FoundEcho};
use crate::headers::fragments::Fragments;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::ip::{self, protocol, Fragment};
use crate::headers::layer::{Layer, WalkState};
use crate::headers::link::LinkType;
use crate::headers::view::View;
use crate::segment::Segment;
use crate::{decoding::fast_path, headers::ethertype, headers::link, headers::tcp, headers::tunnel};

/// A frame as a capture file or a live capture gives it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its index in the capture, from 0.
    pub index: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    /// Number of the tcpdump.org registry.
    pub link_type: u16,
    /// What was captured of it.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub wire_bytes: u32,
}

/// Decodes frames of one capture; keeps fragments between them.
#[derive(Default)]
pub struct Decoder {
    fragments: Fragments,
    assembled: Vec<u8>,
    /// What the latest frame held instead of TCP.
    datagram: Option<DatagramPosition>,
    echo: Option<FoundEcho>,
    content: Option<Content>,
}

/// What a walk ends in.
pub(crate) enum WalkEnd<'a> {
    Segment(SegmentPosition),
    Fragment(Fragment<'a>),
}

impl Decoder {
    pub fn new() -> Self {
        Decoder::default()
    }

    /// The TCP segment of a frame, or why there is none.
    pub fn decode<'a>(&'a mut self, frame: Frame<'a>) -> Result<Segment<'a>, Reject> {
        (self.datagram, self.echo, self.content) = (None, None, None);
        let link = LinkType::from_number(frame.link_type).ok_or(Reject::UnknownLinkType)?;
        let place = self.locate(link, frame.time_ns, frame.bytes, frame.wire_bytes as usize)?;
        let base = if place.assembled { &self.assembled } else { frame.bytes };
        place.show(base, frame.index, frame.time_ns, |segment| *segment).ok_or(Reject::Malformed)
    }

    /// The UDP datagram with payload, outside every known tunnel, that `frame` held; only right after its `decode`.
    pub fn datagram<'a>(&'a self, frame: &Frame<'a>) -> Option<Datagram<'a>> {
        let place = self.datagram?;
        let base = if place.assembled { &self.assembled } else { frame.bytes };
        place.datagram(base, frame.index, frame.time_ns)
    }

    /// The ICMP echo message that `frame` held; only right after its `decode`.
    pub fn echo(&self, frame: &Frame<'_>) -> Option<Echo> {
        self.echo.map(|found| found.echo(frame.index, frame.time_ns))
    }

    /// Datagrams of which some fragment has not come (yet).
    pub fn unfinished_datagrams(&self) -> u64 {
        self.fragments.unfinished_datagrams()
    }

    /// Where the UDP datagram stands at which the latest frame that holds no TCP ended.
    pub(crate) fn datagram_position(&self) -> Option<DatagramPosition> {
        self.datagram
    }

    /// The ICMP echo message at which the latest frame that holds no TCP ended.
    pub(crate) fn found_echo(&self) -> Option<FoundEcho> {
        self.echo
    }

    /// What the latest frame held in which no TCP was found.
    pub fn content(&self) -> Option<Content> {
        self.content
    }

    /// The datagram that a place with `assembled` set refers to.
    pub(crate) fn assembled(&self) -> &[u8] {
        &self.assembled
    }

    fn locate(
        &mut self,
        link: LinkType,
        time_ns: i64,
        bytes: &[u8],
        wire_bytes: usize,
    ) -> Result<SegmentPosition, Reject> {
        match fast_path::locate(link, bytes) {
            Some(place) => Ok(place),
            None => self.locate_on_slow_path(link, time_ns, bytes, wire_bytes),
        }
    }

    /// The slow path: every frame that `fast_path` does not decode.
    #[inline(never)]
    pub(crate) fn locate_on_slow_path(
        &mut self,
        link: LinkType,
        time_ns: i64,
        bytes: &[u8],
        wire_bytes: usize,
    ) -> Result<SegmentPosition, Reject> {
        let mut state = WalkState::start();
        let mut walked = walk(Layer::Link(link), View::new(bytes, wire_bytes), &mut state, &mut ());
        let mut assembled = false;
        let located = loop {
            let Fragment { key, offset, more, payload } = match walked {
                Ok(WalkEnd::Segment(place)) => break Ok(SegmentPosition { assembled, ..place }),
                Ok(WalkEnd::Fragment(fragment)) => fragment,
                Err(reject) => break Err(reject),
            };
            match self.fragments.add(key, time_ns, offset, more, payload.captured(), payload.wire_bytes()) {
                Ok(whole) => {
                    self.assembled = whole.captured;
                    assembled = true;
                    let view = View::new(&self.assembled, whole.wire_bytes);
                    walked = walk(Layer::IpPayload(key.protocol), view, &mut state, &mut ());
                }
                Err(reject) => break Err(reject),
            }
        };
        self.datagram = state.datagram.map(|place| DatagramPosition { assembled, ..place });
        self.echo = state.echo;
        self.content = state.content;
        located
    }
}

/// Steps from header to header until TCP, or a fragment of an IP datagram. Where no TCP is found, the state holds what
/// was found instead.
pub(crate) fn walk<'a>(
    mut layer: Layer,
    mut view: View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<WalkEnd<'a>, Reject> {
    let walked = walk_headers(&mut layer, &mut view, state, trace);
    let Err(Reject::NotIp | Reject::NotTcp) = walked else { return walked };
    state.content = state.content.or_else(|| Some(Content::of(layer, view, state)));
    // What an IP packet carries is within IP, whatever its own headers announce.
    Err(if state.ip.version == 0 { Reject::NotIp } else { Reject::NotTcp })
}

/// The steps of [`walk`]; `layer` and `view` are then those at which it ended.
#[inline(always)]
fn walk_headers<'a>(
    layer: &mut Layer,
    view: &mut View<'a>,
    state: &mut WalkState,
    trace: &mut impl HeaderTrace,
) -> Result<WalkEnd<'a>, Reject> {
    loop {
        state.layers_left = state.layers_left.checked_sub(1).ok_or(Reject::TooDeep)?;
        (*layer, *view) = match *layer {
            Layer::Link(link) => link::step(link, *view, trace)?,
            Layer::EtherType(kind) => ethertype::step(kind, *view, trace)?,
            Layer::LogicalLinkControl => ethertype::logical_link_control(*view, trace)?,
            Layer::PointToPoint => ethertype::point_to_point(*view, trace)?,
            Layer::Ip => match ip::step(*view, state, trace)? {
                ip::Content::Whole(number, payload) => (Layer::IpPayload(number), payload),
                ip::Content::Part(part) => return Ok(WalkEnd::Fragment(part)),
            },
            Layer::IpPayload(number) => match number {
                protocol::TCP => (Layer::Tcp, *view),
                protocol::UDP => tunnel::udp(*view, state, trace)?,
                protocol::GRE => tunnel::gre(*view, state, trace)?,
                protocol::IPV4 | protocol::IPV6 => tunnel::ip_in_ip(*view, state),
                protocol::MPLS => (Layer::EtherType(ethertype::MPLS_UNICAST), *view),
                protocol::L2TP => tunnel::l2tp::in_ip(*view, state, trace)?,
                protocol::AUTHENTICATION => {
                    let (next, payload) = ip::authentication(*view, trace)?;
                    (Layer::IpPayload(next), payload)
                }
                protocol::ICMP | protocol::ICMP_6 => {
                    echo::find(number, *view, state);
                    return Err(Reject::NotTcp);
                }
                _ => return Err(Reject::NotTcp),
            },
            Layer::GtpU => tunnel::gtp_u(*view, state, trace)?,
            Layer::Vxlan => tunnel::vxlan(*view, state, trace)?,
            Layer::Geneve => tunnel::geneve(*view, state, trace)?,
            Layer::L2tp => tunnel::l2tp::in_udp(*view, state, trace)?,
            Layer::Tcp => {
                let header_bytes = tcp::check(*view)?;
                trace.note_at(HeaderKind::Tcp, *view, header_bytes);
                tcp::trace_options(*view, header_bytes, trace);
                return Ok(WalkEnd::Segment(SegmentPosition {
                    tcp_start: view.start(),
                    captured_end: view.end(),
                    wire_bytes: view.wire_bytes(),
                    assembled: false,
                    ip: state.ip,
                    tunnel: state.tunnel,
                }));
            }
        };
    }
}

//! One frame to its TCP segment, through every header and tunnel in between.

use crate::datagram::{Datagram, DatagramPlace};
use crate::error::Reject;
use crate::fragments::Fragments;
use crate::ip::{self, protocol, Content};
use crate::layer::{Layer, Passed};
use crate::link::LinkType;
use crate::place::Place;
use crate::segment::Segment;
use crate::view::View;
use crate::{ethertype, link, plain, tcp, tunnel};

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
    datagram: Option<DatagramPlace>,
}

enum Walked {
    Segment(Place),
    Datagram { protocol: u8, captured: Vec<u8>, wire_bytes: usize },
}

impl Decoder {
    pub fn new() -> Self {
        Decoder::default()
    }

    /// The TCP segment of a frame, or why there is none.
    pub fn decode<'a>(&'a mut self, frame: Frame<'a>) -> Result<Segment<'a>, Reject> {
        self.datagram = None;
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

    /// Datagrams of which some fragment has not come (yet).
    pub fn unfinished_datagrams(&self) -> u64 {
        self.fragments.unfinished_datagrams()
    }

    /// Where the UDP datagram stands at which the latest frame that holds no TCP ended.
    pub(crate) fn datagram_place(&self) -> Option<DatagramPlace> {
        self.datagram
    }

    /// The datagram that a place with `assembled` set refers to.
    pub(crate) fn assembled(&self) -> &[u8] {
        &self.assembled
    }

    fn locate(&mut self, link: LinkType, time_ns: i64, bytes: &[u8], wire_bytes: usize) -> Result<Place, Reject> {
        match plain::locate(link, bytes) {
            Some(place) => Ok(place),
            None => self.locate_anywhere(link, time_ns, bytes, wire_bytes),
        }
    }

    /// The long way for what `plain` does not know.
    #[inline(never)]
    pub(crate) fn locate_anywhere(
        &mut self,
        link: LinkType,
        time_ns: i64,
        bytes: &[u8],
        wire_bytes: usize,
    ) -> Result<Place, Reject> {
        let mut passed = Passed::nothing();
        let frame = View::new(bytes, wire_bytes);
        let mut walked = walk(Layer::Link(link), frame, &mut passed, &mut self.fragments, time_ns);
        let mut assembled = false;
        let located = loop {
            match walked {
                Ok(Walked::Segment(place)) => break Ok(Place { assembled, ..place }),
                Ok(Walked::Datagram { protocol, captured, wire_bytes }) => {
                    self.assembled = captured;
                    assembled = true;
                    let view = View::new(&self.assembled, wire_bytes);
                    walked = walk(Layer::IpPayload(protocol), view, &mut passed, &mut self.fragments, time_ns);
                }
                Err(reject) => break Err(reject),
            }
        };
        self.datagram = passed.datagram.map(|place| DatagramPlace { assembled, ..place });
        located
    }
}

/// Steps from header to header until TCP, or a datagram that its last fragment completed.
fn walk(
    mut layer: Layer,
    mut view: View<'_>,
    passed: &mut Passed,
    fragments: &mut Fragments,
    time_ns: i64,
) -> Result<Walked, Reject> {
    loop {
        passed.layers_left = passed.layers_left.checked_sub(1).ok_or(Reject::TooDeep)?;
        (layer, view) = match layer {
            Layer::Link(link) => link::step(link, view)?,
            Layer::EtherType(kind) => ethertype::step(kind, view)?,
            Layer::LogicalLinkControl => ethertype::logical_link_control(view)?,
            Layer::PointToPoint => ethertype::point_to_point(view)?,
            Layer::Ip => match ip::step(view, passed)? {
                Content::Whole(number, payload) => (Layer::IpPayload(number), payload),
                Content::Part(part) => {
                    let payload = part.payload;
                    let whole = fragments.add(
                        part.key,
                        time_ns,
                        part.offset,
                        part.more,
                        payload.captured(),
                        payload.wire_bytes(),
                    )?;
                    return Ok(Walked::Datagram {
                        protocol: part.key.protocol,
                        captured: whole.captured,
                        wire_bytes: whole.wire_bytes,
                    });
                }
            },
            Layer::IpPayload(number) => match number {
                protocol::TCP => (Layer::Tcp, view),
                protocol::UDP => tunnel::udp(view, passed)?,
                protocol::GRE => tunnel::gre(view, passed)?,
                protocol::IPV4 | protocol::IPV6 => tunnel::ip_in_ip(view, passed),
                protocol::MPLS => (Layer::EtherType(ethertype::MPLS_UNICAST), view),
                protocol::AUTHENTICATION => {
                    let (next, payload) = ip::authentication(view)?;
                    (Layer::IpPayload(next), payload)
                }
                _ => return Err(Reject::NotTcp),
            },
            Layer::GtpU => tunnel::gtp_u(view, passed)?,
            Layer::Vxlan => tunnel::vxlan(view, passed)?,
            Layer::Tcp => {
                tcp::check(view)?;
                return Ok(Walked::Segment(Place {
                    tcp_start: view.start(),
                    captured_end: view.end(),
                    wire_bytes: view.wire_bytes(),
                    assembled: false,
                    ip: passed.ip,
                    tunnel: passed.tunnel,
                }));
            }
        };
    }
}

//! The headers of a capture's frames, and of the datagrams that their fragments make.

use crate::decoding::decode::{walk, Frame, WalkEnd};
use crate::error::Reject;
use crate::headers::fragments::Fragments;
use crate::headers::header::Header;
use crate::headers::ip::Fragment;
use crate::headers::layer::{Layer, WalkState};
use crate::headers::link::LinkType;
use crate::headers::view::View;

/// Appends the headers of a frame to `headers`, outermost first; parts of a header stand beside it.
///
/// Succeeds where the headers end in TCP, or in a UDP datagram outside every known tunnel. Otherwise gives the reason,
/// with the headers up to there. Fragments of an IP datagram are not reassembled: their frames end in `FragmentHeld`.
pub fn dissect(link_type: u16, bytes: &[u8], wire_bytes: u32, headers: &mut Vec<Header>) -> Result<(), Reject> {
    let mut state = WalkState::start();
    match from_link(link_type, bytes, wire_bytes, &mut state, headers)? {
        Some(_) => Err(Reject::FragmentHeld),
        None => Ok(()),
    }
}

/// Dissects the frames of one capture in their order, and puts fragments together as [`crate::Decoder`] does.
#[derive(Default)]
pub struct Dissector {
    fragments: Fragments,
}

/// The fragment of an IP datagram that a frame ends in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentPlace {
    /// Number of the datagram in this capture.
    pub datagram: u64,
    /// Where in the datagram's payload the fragment begins.
    pub offset: u32,
    /// The datagram, where this fragment was the last one to come.
    pub whole: Option<WholeDatagram>,
}

/// The payload of an IP datagram that was put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeDatagram {
    /// What was captured of it before the first hole.
    pub captured: Vec<u8>,
    /// Its length on the wire.
    pub wire_bytes: usize,
    /// The headers in it, with offsets from its start.
    pub headers: Vec<Header>,
    /// Whether they end in TCP, or in a UDP datagram outside every known tunnel.
    pub is_complete: bool,
}

impl Dissector {
    pub fn new() -> Self {
        Dissector::default()
    }

    /// Appends the headers of a frame to `headers` as [`dissect`] does; gives the fragment that the frame ends in.
    pub fn dissect(&mut self, frame: Frame<'_>, headers: &mut Vec<Header>) -> Result<Option<FragmentPlace>, Reject> {
        let mut state = WalkState::start();
        let found = from_link(frame.link_type, frame.bytes, frame.wire_bytes, &mut state, headers)?;
        let Some(Fragment { key, offset, more, payload }) = found else { return Ok(None) };
        let added = self.fragments.add(key, frame.time_ns, offset, more, payload.captured(), payload.wire_bytes());
        let whole = match added {
            Ok(whole) => Some(whole),
            Err(Reject::FragmentHeld) => None,
            Err(reject) => return Err(reject),
        };
        let whole = whole.map(|whole| {
            let mut headers = Vec::new();
            let view = View::new(&whole.captured, whole.wire_bytes);
            let is_complete =
                matches!(walk_on(Layer::IpPayload(key.protocol), view, &mut state, &mut headers), Ok(None));
            WholeDatagram { wire_bytes: whole.wire_bytes, headers, is_complete, captured: whole.captured }
        });
        Ok(Some(FragmentPlace { datagram: self.fragments.latest_number(), offset, whole }))
    }
}

fn from_link<'a>(
    link_type: u16,
    bytes: &'a [u8],
    wire_bytes: u32,
    state: &mut WalkState,
    headers: &mut Vec<Header>,
) -> Result<Option<Fragment<'a>>, Reject> {
    let link = LinkType::from_number(link_type).ok_or(Reject::UnknownLinkType)?;
    walk_on(Layer::Link(link), View::new(bytes, wire_bytes as usize), state, headers)
}

/// Walks to TCP or UDP, or to the fragment that is given.
fn walk_on<'a>(
    layer: Layer,
    view: View<'a>,
    state: &mut WalkState,
    headers: &mut Vec<Header>,
) -> Result<Option<Fragment<'a>>, Reject> {
    match walk(layer, view, state, headers) {
        Ok(WalkEnd::Segment(_)) => Ok(None),
        Ok(WalkEnd::Fragment(fragment)) => Ok(Some(fragment)),
        Err(_) if state.datagram.is_some() => Ok(None),
        Err(reject) => Err(reject),
    }
}

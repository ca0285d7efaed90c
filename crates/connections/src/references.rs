//! Round trips to hosts that no TCP split can shorten: answers to ICMP echo requests and to UDP datagrams.
//!
//! A round trip is from the first datagram of a request to the first datagram of its answer, at the capture point. What
//! ties an answer to its request is an identifier that only the request told (RFC 792, RFC 1035, RFC 5905, RFC 8489,
//! RFC 9000), or that it repeats the request; other UDP flows give turns, which are weaker: two streams that run both
//! ways take turns too. Memory is bounded: see [`kept`].

use std::collections::hash_map::Entry;

use pepscope_wire::{Datagram, Echo};

use crate::key::folded_product;

mod flow_key;
mod kept;
mod protocols;
mod quic;

use flow_key::{FlowKey, FlowMap};
use kept::KeptReferences;
use protocols::{Message, Tag};
use quic::Handshake;

/// Later answers belong to no request: as long as a retransmission timeout may grow (RFC 6298, 2.5).
const LONGEST_ROUND_TRIP_NS: i64 = 60_000_000_000;
/// With `MOST_WAITING` some 60 MB where every flow is full; ordinary captures hold a few flows of one request.
const MOST_FLOWS: usize = 1 << 15;
/// Requests of one flow that wait for their answers; the oldest goes first.
const MOST_WAITING: usize = 32;
/// Flows left out between two looks for room.
const FLOWS_BETWEEN_LOOKS: u64 = 1 << 14;
/// How much of a datagram is compared with its answer, and how much that must be at least: by chance, eight bytes agree
/// once in 2^64.
const COMPARED_BYTES: usize = 64;
const FEWEST_COMPARED_BYTES: usize = 8;
/// The echo service (RFC 862), of which any length will do.
const ECHO_PORT: u16 = 7;

/// What ties an answer to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ReferenceKind {
    /// ICMP or ICMPv6 echo: identifier and sequence number.
    IcmpEcho = 0,
    /// The identifier of a DNS message.
    Dns = 1,
    /// NTP: the request's transmit timestamp comes back as origin timestamp.
    Ntp = 2,
    /// STUN: the transaction ID of a request.
    Stun = 3,
    /// A QUIC server answers a client's first Initial packet under the connection ID that it told.
    QuicInitial = 4,
    /// A QUIC client uses the connection ID that the server's first datagram told: the host is the client.
    QuicReturn = 5,
    /// The answer repeats a datagram byte for byte (RFC 862 and the like).
    UdpEcho = 6,
    /// The other side of a UDP flow sent something next. Weaker: only the first of a flow must be an answer.
    UdpTurn = 7,
}

impl ReferenceKind {
    /// Names in results, in the order of the numbers.
    pub const NAMES: [&'static str; 8] =
        ["icmp-echo", "dns", "ntp", "stun", "quic-initial", "quic-return", "udp-echo", "udp-turn"];
}

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Who answered: IPv6, or IPv4 behind `::ffff:0:0/96`; its port, 0 for ICMP.
    pub host: [u8; 16],
    pub host_port: u16,
    pub asker: [u8; 16],
    pub ip_version: u8,
    pub kind: ReferenceKind,
    /// When the first datagram of the request was captured, in nanoseconds since the epoch.
    pub asked_ns: i64,
    /// Index of its frame in the capture, from 0, and of the answer's.
    pub asked_frame: u64,
    pub answered_frame: u64,
    /// From then to the first datagram of the answer.
    pub round_trip_ns: i64,
    /// By how much later the last datagram of the request was captured, before the answer: the round trip that the
    /// answer took lies between `round_trip_ns - repeated_ns` and `round_trip_ns`. 0 where one datagram asked.
    pub repeated_ns: i64,
    /// Bytes behind the ICMP or UDP header, on the wire.
    pub request_bytes: u32,
    pub answer_bytes: u32,
    /// Nothing was answered before between these end points (of ICMP: under this identifier).
    pub is_first: bool,
}

/// A request without answer so far.
#[derive(Clone, Copy, Debug)]
struct Request {
    frame_index: u64,
    first_ns: i64,
    last_ns: i64,
    bytes: u32,
}

impl Request {
    fn new(passage: &Passage) -> Self {
        let Passage { frame_index, time_ns, bytes, .. } = *passage;
        Request { frame_index, first_ns: time_ns, last_ns: time_ns, bytes }
    }

    fn is_over(&self, now_ns: i64) -> bool {
        now_ns.saturating_sub(self.last_ns) > LONGEST_ROUND_TRIP_NS
    }

    /// Asks again, or anew where the latest time was too long ago.
    fn repeat(&mut self, passage: &Passage) {
        if self.is_over(passage.time_ns) {
            *self = Request::new(passage);
        } else {
            self.last_ns = self.last_ns.max(passage.time_ns);
        }
    }
}

/// What one flow is waiting for.
#[derive(Debug, Default)]
struct Flow {
    latest_ns: i64,
    answered: bool,
    /// Requests with an identifier and who asked, the oldest first.
    waiting: Vec<(End, Tag, Request)>,
    turn: Option<Turn>,
    handshake: Option<Box<Handshake>>,
}

/// The datagrams that the side that began a flow sent since the other side's latest.
#[derive(Debug)]
struct Turn {
    asker: End,
    request: Option<Request>,
    /// Of the latest of them, where enough was captured.
    content: Option<u64>,
}

/// Address and port; of ICMP the identifier stands for the port.
type End = ([u8; 16], u16);

/// Who sent a datagram to whom, and when.
#[derive(Clone, Copy, Debug)]
struct Passage {
    ip_version: u8,
    source: End,
    destination: End,
    frame_index: u64,
    time_ns: i64,
    bytes: u32,
}

impl Passage {
    /// What this passage answers; `None` where it comes too late, or before the request.
    fn answers(&self, request: &Request, kind: ReferenceKind, is_first: bool) -> Option<Reference> {
        let round_trip_ns = self.time_ns.checked_sub(request.first_ns)?;
        let since_last_ns = self.time_ns.checked_sub(request.last_ns)?;
        (0..=LONGEST_ROUND_TRIP_NS).contains(&since_last_ns).then_some(Reference {
            host: self.source.0,
            host_port: self.source.1,
            asker: self.destination.0,
            ip_version: self.ip_version,
            kind,
            asked_ns: request.first_ns,
            asked_frame: request.frame_index,
            answered_frame: self.frame_index,
            round_trip_ns,
            repeated_ns: request.last_ns - request.first_ns,
            request_bytes: request.bytes,
            answer_bytes: self.bytes,
            is_first,
        })
    }
}

/// References in the making. Push every echo message and datagram in capture order, then finish.
#[derive(Default)]
pub struct References {
    flows: FlowMap<Flow>,
    kept: KeptReferences,
    left_out: u64,
}

impl References {
    /// Takes in the next echo message.
    pub fn push_echo(&mut self, echo: &Echo) {
        let passage = Passage {
            ip_version: echo.ip_version,
            source: (echo.source, echo.identifier),
            destination: (echo.destination, echo.identifier),
            frame_index: echo.frame_index,
            time_ns: echo.time_ns,
            bytes: echo.data_bytes,
        };
        let tag = Tag::Echo(echo.sequence);
        let message = if echo.is_reply { Message::Answer(tag) } else { Message::Request(tag) };
        let Some(flow) = room(&mut self.flows, &mut self.left_out, &passage, true) else { return };
        if let Some(found) = flow.identified(&passage, message) {
            self.kept.push(Reference { host_port: 0, ..found });
        }
    }

    /// Takes in the next UDP datagram.
    pub fn push(&mut self, datagram: &Datagram<'_>) {
        let passage = Passage {
            ip_version: datagram.ip_version,
            source: (datagram.source, datagram.source_port),
            destination: (datagram.destination, datagram.destination_port),
            frame_index: datagram.frame_index,
            time_ns: datagram.time_ns,
            bytes: datagram.payload_length,
        };
        let Some(flow) = room(&mut self.flows, &mut self.left_out, &passage, false) else { return };
        let found = match protocols::message(datagram) {
            Message::Unknown => flow.unknown(&passage, datagram.payload),
            message => flow.identified(&passage, message),
        };
        if let Some(found) = found {
            self.kept.push(found);
        }
    }

    /// Flows and references for which there was no room.
    pub fn left_out(&self) -> u64 {
        self.left_out + self.kept.left_out()
    }

    /// The end of the capture: what was kept, by the time of the request.
    pub fn finish(self) -> Vec<Reference> {
        self.kept.finish()
    }
}

/// The flow of a passage; `None` where there is no room for a new one.
fn room<'a>(
    flows: &'a mut FlowMap<Flow>,
    left_out: &mut u64,
    passage: &Passage,
    is_icmp: bool,
) -> Option<&'a mut Flow> {
    let key = FlowKey::new(passage.source, passage.destination, is_icmp);
    if flows.len() >= MOST_FLOWS && !flows.contains_key(&key) {
        // Looking through all flows for each new one would cost too much where they are here to stay.
        if *left_out % FLOWS_BETWEEN_LOOKS == 0 {
            flows.retain(|_, flow| passage.time_ns.saturating_sub(flow.latest_ns) <= LONGEST_ROUND_TRIP_NS);
        }
        if flows.len() >= MOST_FLOWS {
            *left_out += 1;
            return None;
        }
    }
    let flow = match flows.entry(key) {
        Entry::Occupied(found) => found.into_mut(),
        Entry::Vacant(place) => place.insert(Flow { latest_ns: passage.time_ns, ..Flow::default() }),
    };
    flow.latest_ns = flow.latest_ns.max(passage.time_ns);
    Some(flow)
}

impl Flow {
    /// A message with an identifier.
    fn identified(&mut self, passage: &Passage, message: Message) -> Option<Reference> {
        match message {
            Message::Request(tag) => {
                match self.waiting.iter_mut().find(|(asker, known, _)| (*asker, *known) == (passage.source, tag)) {
                    Some((_, _, request)) => request.repeat(passage),
                    None => {
                        if self.waiting.len() >= MOST_WAITING {
                            self.waiting.remove(0);
                        }
                        self.waiting.push((passage.source, tag, Request::new(passage)));
                    }
                }
                None
            }
            Message::Answer(tag) => {
                let is_asked = |(asker, known, _): &(End, Tag, Request)| (*asker, *known) == (passage.destination, tag);
                let place = self.waiting.iter().position(is_asked)?;
                let (_, _, request) = self.waiting.remove(place);
                let found = passage.answers(&request, tag.kind(), !self.answered);
                self.answered |= found.is_some();
                found
            }
            Message::Unknown | Message::Other => None,
        }
    }

    /// A datagram of an unknown protocol: QUIC, or a turn.
    fn unknown(&mut self, passage: &Passage, payload: &[u8]) -> Option<Reference> {
        if self.handshake.is_none() && self.turn.is_none() {
            self.handshake = Handshake::begin(passage, payload).map(Box::new);
            if self.handshake.is_some() {
                return None;
            }
        }
        let found = match &mut self.handshake {
            Some(handshake) => handshake.go_on(passage, payload, !self.answered),
            None => self.take_turn(passage, payload),
        };
        self.answered |= found.is_some();
        found
    }

    fn take_turn(&mut self, passage: &Passage, payload: &[u8]) -> Option<Reference> {
        let is_first = !self.answered;
        let Passage { source, destination, bytes, .. } = *passage;
        let is_echo_service = [source.1, destination.1].contains(&ECHO_PORT);
        let content = || content(payload, bytes, if is_echo_service { 1 } else { FEWEST_COMPARED_BYTES });
        let turn = self.turn.get_or_insert(Turn { asker: source, request: None, content: None });
        if turn.asker == source {
            match &mut turn.request {
                Some(request) => request.repeat(passage),
                None => turn.request = Some(Request::new(passage)),
            }
            turn.content = content();
            return None;
        }
        let request = turn.request.take()?;
        let repeats = turn.content.is_some() && content() == turn.content;
        let kind = if repeats { ReferenceKind::UdpEcho } else { ReferenceKind::UdpTurn };
        passage.answers(&request, kind, is_first)
    }
}

/// Stands for the length and the first bytes of a datagram; `None` where too few were captured.
fn content(payload: &[u8], bytes: u32, fewest_bytes: usize) -> Option<u64> {
    let compared = &payload[..payload.len().min(COMPARED_BYTES)];
    if compared.len() < fewest_bytes {
        return None;
    }
    let words = compared.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let start = u64::from(bytes) << 32 | compared.len() as u64;
    Some(words.fold(start, |mixed, word| folded_product(mixed ^ 0x9e37_79b9_7f4a_7c15, word ^ 0xa076_1d64_78bd_642f)))
}

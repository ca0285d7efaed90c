//! QUIC handshakes by their connection IDs (RFC 8999, RFC 9000 sections 7.2 and 17.2, RFC 9369).

use super::{Passage, Reference, ReferenceKind, Request};

const MOST_ID_BYTES: usize = 20;
/// A client's first connection ID for the server is random and at least this long (RFC 9000, section 7.2).
const FEWEST_FIRST_ID_BYTES: u8 = 8;
/// Datagrams with Initial packets are at least this long (RFC 9000, section 14.1).
const FEWEST_INITIAL_BYTES: u32 = 1200;
const LONG_HEADER: u8 = 0x80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionId {
    bytes: [u8; MOST_ID_BYTES],
    length: u8,
}

impl ConnectionId {
    /// The connection ID behind its length, and what follows.
    fn read(from: &[u8]) -> Option<(ConnectionId, &[u8])> {
        let (length, rest) = from.split_first()?;
        let mut bytes = [0; MOST_ID_BYTES];
        bytes.get_mut(..usize::from(*length))?.copy_from_slice(rest.get(..usize::from(*length))?);
        Some((ConnectionId { bytes, length: *length }, rest.get(usize::from(*length)..)?))
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length).min(MOST_ID_BYTES)]
    }
}

/// The part of a long header that all versions share.
#[derive(Clone, Copy, Debug)]
struct LongHeader {
    first_byte: u8,
    version: u32,
    destination: ConnectionId,
    source: ConnectionId,
}

impl LongHeader {
    fn read(payload: &[u8]) -> Option<LongHeader> {
        let ([first_byte, version @ ..], rest) = payload.split_first_chunk::<5>()?;
        if first_byte & LONG_HEADER == 0 {
            return None;
        }
        let (destination, rest) = ConnectionId::read(rest)?;
        let (source, _) = ConnectionId::read(rest)?;
        Some(LongHeader { first_byte: *first_byte, version: u32::from_be_bytes(*version), destination, source })
    }

    fn is_initial(&self) -> bool {
        const PACKET_TYPE: u8 = 0x30;
        match self.version {
            // Version 1, and the drafts from 27 on, which share its packet types.
            1 | 0xff00_001b..=0xff00_0022 => self.first_byte & PACKET_TYPE == 0,
            0x6b33_43cf => self.first_byte & PACKET_TYPE == 0x10,
            _ => false,
        }
    }
}

/// A handshake from the client's first Initial packet on.
#[derive(Debug)]
pub(super) struct Handshake {
    client: ([u8; 16], u16),
    client_id: ConnectionId,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The server has not answered.
    Asked(Request),
    /// The client has not used the connection ID that the server told.
    Answered {
        server_id: ConnectionId,
        request: Request,
    },
    Done,
}

impl Handshake {
    /// Begins where a flow's first datagram holds a client's first Initial packet.
    pub(super) fn begin(passage: &Passage, payload: &[u8]) -> Option<Handshake> {
        let header = LongHeader::read(payload)?;
        let is_first = header.is_initial()
            && passage.bytes >= FEWEST_INITIAL_BYTES
            && header.destination.length >= FEWEST_FIRST_ID_BYTES;
        is_first.then(|| Handshake {
            client: passage.source,
            client_id: header.source,
            state: State::Asked(Request::new(passage)),
        })
    }

    /// Takes in the next datagram of the flow.
    pub(super) fn go_on(&mut self, passage: &Passage, payload: &[u8], is_first: bool) -> Option<Reference> {
        let is_client = passage.source == self.client;
        match &mut self.state {
            State::Asked(request) if is_client => {
                request.repeat(passage);
                None
            }
            State::Asked(request) => {
                let header = LongHeader::read(payload).filter(|header| header.destination == self.client_id)?;
                let found = passage.answers(request, ReferenceKind::QuicInitial, is_first);
                let tells_id = header.version != 0 && header.source.length > 0;
                self.state = if tells_id {
                    let request = Request::new(passage);
                    State::Answered { server_id: header.source, request }
                } else {
                    State::Done
                };
                found
            }
            State::Answered { server_id, request } if is_client => {
                let used = match LongHeader::read(payload) {
                    Some(header) => header.destination == *server_id,
                    None => payload.get(1..).is_some_and(|rest| rest.starts_with(server_id.as_slice())),
                };
                if !used {
                    return None;
                }
                let found = passage.answers(request, ReferenceKind::QuicReturn, is_first);
                self.state = State::Done;
                found
            }
            State::Answered { request, .. } => {
                request.repeat(passage);
                None
            }
            State::Done => None,
        }
    }
}

//! Segments in, connections out.

use crate::connection::Connection;
use crate::key::Key;
use crate::missing::NotCaptured;
use crate::records::columns::Columns;
use crate::records::packet_store::{EncodedPackets, PacketStore};
use crate::records::payload_sample::{is_kept, PayloadPieces, PieceStore};
use crate::records::piece_choice::{Offered, Payload};
use crate::storage::in_time::Doubted;
use crate::stream::reading::Reading;
use crate::summary::ConnectionSummary;
use crate::table::{FlowTable, Place};
use pepscope_wire::segment::{flag, Segment};
use pepscope_wire::PlainSegment;

/// What to keep besides the summaries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Every packet, for columns; without it memory grows with connections only.
    pub columns: bool,
    /// Captured payload.
    pub payload: Payload,
}

impl Settings {
    /// Whether anything is kept of packets.
    pub(crate) fn keeps_packets(&self) -> bool {
        self.columns || self.payload.is_kept()
    }
}

/// Connections in the making. Push every segment in capture order (those between two end points may be in another, and
/// come after others), then finish.
///
/// With columns, one analysis holds at most 2^32 - 1 packets; beyond that, partition the capture (`spill`).
pub struct Analysis {
    settings: Settings,
    table: FlowTable,
    connections: Vec<Connection>,
    options_store: Vec<u8>,
    packets: PacketStore,
    pieces: PieceStore,
    /// The latest connection of each `Key::hint`, which saves most searches in the table.
    recent: [u32; 256],
}

impl Analysis {
    /// What a connection takes in memory, its place in the table included.
    pub const CONNECTION_BYTES: usize = size_of::<Connection>() + 32;

    pub fn new(settings: Settings) -> Self {
        Analysis {
            settings,
            table: FlowTable::new(),
            connections: Vec::new(),
            options_store: Vec::new(),
            packets: PacketStore::default(),
            pieces: PieceStore::of(settings.payload),
            recent: [0; 256],
        }
    }

    /// Connections seen so far.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Bytes that what was taken in so far occupies, roughly: packets, payload samples and connections.
    pub fn memory_bytes(&self) -> usize {
        self.packets.memory_bytes()
            + self.pieces.memory_bytes()
            + self.connections.len() * size_of::<Connection>()
            + self.options_store.len()
    }

    /// Take in the next segment of the capture.
    pub fn push(&mut self, segment: &Segment<'_>) {
        let key = Key::of(segment);
        let (index, side) = self.assign(&key, segment);
        let connection = &mut self.connections[index as usize];
        let reading = connection.handle_segment(side, segment, &mut self.options_store);
        self.offer_payload(index, side, (segment.flags, segment.payload, segment.payload_length), &reading);
        if self.settings.columns {
            self.packets.push(index, side, segment, &reading);
        }
    }

    /// Take in the next segment if it only continues a connection that was seen before; otherwise false, and nothing is
    /// changed. Where it is taken, that is what `push` would have done with it.
    ///
    /// `KEEPS` is `Settings::keeps_packets`: a loop over segments is compiled for each, since neither is fast in a loop
    /// that has room for both.
    #[inline(always)]
    pub fn push_plain<const KEEPS: bool>(&mut self, segment: &PlainSegment<'_>) -> bool {
        let key = Key::of_plain(segment);
        let hint = usize::from(key.hint());
        let recent = self.recent[hint];
        let is_recent = self.connections.get(recent as usize).and_then(|recent| recent.key.side_of(&key));
        let (index, side) = match is_recent {
            Some(side) => (recent, side),
            None => match self.find(&key) {
                Some(found) => found,
                None => return false,
            },
        };
        self.recent[hint] = index;
        let connection = &mut self.connections[index as usize];
        let Some(reading) = connection.continue_with(side, segment) else { return false };
        debug_assert_eq!(KEEPS, self.settings.keeps_packets());
        if KEEPS {
            self.keep_plain(index, side, segment, &reading);
        }
        true
    }

    #[inline(always)]
    fn keep_plain(&mut self, index: u32, side: usize, segment: &PlainSegment<'_>, reading: &Reading) {
        self.offer_payload(index, side, (segment.flags, segment.payload, segment.payload_length), reading);
        if self.settings.columns {
            self.packets.push_plain(index, side, segment, reading);
        }
    }

    #[inline(always)]
    fn offer_payload(&mut self, index: u32, side: usize, packet: (u16, &[u8], u32), reading: &Reading) {
        if !self.settings.payload.is_kept() {
            return;
        }
        if let Some(offered) = Offered::of(&self.connections[index as usize], side, packet, reading) {
            self.pieces.offer(index, side, &offered);
        }
    }

    /// The latest connection between these end points, and the side that sends.
    #[inline(never)]
    fn find(&self, key: &Key) -> Option<(u32, usize)> {
        let connections = &self.connections;
        match self.table.find(key.hash(), key, |index| &connections[index as usize].key) {
            Place::Found { connection, side, .. } => Some((connection, side)),
            Place::Vacant { .. } => None,
        }
    }

    /// Take in the next segment if it belongs to a connection between end points that were seen before.
    pub fn push_known(&mut self, segment: &Segment<'_>) -> bool {
        let known = self.find(&Key::of(segment)).is_some();
        if known {
            self.push(segment);
        }
        known
    }

    #[inline]
    fn assign(&mut self, key: &Key, segment: &Segment<'_>) -> (u32, usize) {
        let hint = usize::from(key.hint());
        if segment.flags & flag::SYN == 0 {
            let recent = self.recent[hint];
            if let Some(side) = self.connections.get(recent as usize).and_then(|recent| recent.key.side_of(key)) {
                return (recent, side);
            }
        }
        let (index, side) = self.look_up(key, segment);
        self.recent[hint] = index;
        (index, side)
    }

    fn look_up(&mut self, key: &Key, segment: &Segment<'_>) -> (u32, usize) {
        let hash = key.hash();
        let connections = &self.connections;
        match self.table.find(hash, key, |index| &connections[index as usize].key) {
            Place::Found { slot, connection, side } => {
                let is_syn = segment.flags & flag::SYN != 0;
                if is_syn && connections[connection as usize].is_succeeded_by(side, segment) {
                    let succeeded = &mut self.connections[connection as usize];
                    succeeded.note_next_time(segment.time_ns);
                    succeeded.release();
                    let successor = self.add(key, segment);
                    self.table.replace(slot, successor);
                    return (successor, 0);
                }
                (connection, side)
            }
            Place::Vacant { slot } => {
                let added = self.add(key, segment);
                let connections = &self.connections;
                self.table.insert(slot, hash, added, |index| connections[index as usize].key.hash());
                (added, 0)
            }
        }
    }

    fn add(&mut self, key: &Key, segment: &Segment<'_>) -> u32 {
        self.connections.push(Connection::new(*key, segment));
        (self.connections.len() - 1) as u32
    }

    /// End points of connections whose times fall back.
    pub(crate) fn doubted(&self) -> Doubted {
        Doubted::new(self.falling_back().map(|connection| connection.key))
    }

    /// Connections whose times fall back.
    pub(crate) fn falling_back(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(|connection| connection.falls_back)
    }

    /// The end of the capture.
    pub fn finish(mut self) -> Connections {
        drop(self.table);
        self.connections.iter_mut().for_each(Connection::release);
        if !self.connections.is_sorted_by_key(|connection| connection.first_frame) {
            let ranks = ranked(&mut self.connections);
            self.packets.rank(&ranks);
            self.pieces.rank(&ranks);
        }
        let packets = self.settings.columns.then(|| self.packets.finish(&self.connections));
        let connections = &self.connections;
        let payload = self.settings.payload.is_kept().then(|| {
            self.pieces.group(connections.len(), |piece| {
                let connection = &connections[piece.connection as usize];
                let offset = piece.offset - connection.sides[usize::from(piece.side)].origin;
                let direction = piece.side ^ connection.client_side().0 as u8;
                is_kept(offset).then_some((direction, offset))
            })
        });
        Connections { connections: self.connections, options_store: self.options_store, packets, payload }
    }
}

/// Sorts connections by the frame of their first packet; gives the new place of each.
fn ranked(connections: &mut [Connection]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..connections.len()).collect();
    order.sort_by_key(|&place| connections[place].first_frame);
    let mut ranks = vec![0; order.len()];
    for (rank, &place) in order.iter().enumerate() {
        ranks[place] = rank;
    }
    connections.sort_by_key(|connection| connection.first_frame);
    ranks
}

/// All connections of a capture (or of a part of it) in the order of their first packets.
#[derive(Clone, Debug)]
pub struct Connections {
    connections: Vec<Connection>,
    options_store: Vec<u8>,
    packets: Option<EncodedPackets>,
    payload: Option<PayloadPieces>,
}

impl Connections {
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// TCP packets of all connections.
    pub fn packet_count(&self) -> u64 {
        self.connections.iter().map(Connection::packets).sum()
    }

    /// TCP packets of one connection; `None` beyond the last.
    pub fn packet_count_of(&self, index: usize) -> Option<u64> {
        self.connections.get(index).map(Connection::packets)
    }

    /// Summary of one connection; `None` beyond the last.
    pub fn summary(&self, index: usize) -> Option<ConnectionSummary<'_>> {
        self.connections.get(index).map(|connection| ConnectionSummary::of(connection, &self.options_store))
    }

    /// Summaries in order.
    pub fn summaries(&self) -> impl ExactSizeIterator<Item = ConnectionSummary<'_>> {
        self.connections.iter().map(|connection| ConnectionSummary::of(connection, &self.options_store))
    }

    /// What was not captured of the connections.
    pub fn not_captured(&self) -> NotCaptured {
        NotCaptured::of(self.connections.iter())
    }

    /// Packets of all connections as columns, if they were asked for.
    pub fn columns(&self) -> Option<Columns> {
        self.packets.as_ref().map(|packets| packets.decode(0..packets.len()))
    }

    /// The stored packets, if they were requested.
    pub fn packets(&self) -> Option<&EncodedPackets> {
        self.packets.as_ref()
    }

    /// Hand the packets over.
    pub fn take_packets(&mut self) -> Option<EncodedPackets> {
        self.packets.take()
    }

    /// Bytes of the stored packets and payload samples.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let packets = self.packets.as_ref().map_or(0, EncodedPackets::memory_bytes);
        packets + self.payload.as_ref().map_or(0, PayloadPieces::memory_bytes)
    }

    /// Bytes of the stored packets and payload samples, and of the connections themselves.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let connections = self.connections.len() * Analysis::CONNECTION_BYTES + self.options_store.len();
        self.kept_bytes() + connections as u64
    }

    /// Payload samples, if they were asked for.
    pub fn payload(&self) -> Option<&PayloadPieces> {
        self.payload.as_ref()
    }

    /// Hand the payload samples over.
    pub fn take_payload(&mut self) -> Option<PayloadPieces> {
        self.payload.take()
    }
}

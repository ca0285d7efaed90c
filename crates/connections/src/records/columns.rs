//! Packets of connections: encoded while a capture is read, decoded into columns when they are requested.

use std::ops::Range;

use crate::connection::Connection;
use crate::records::chains::{Chain, Chains, Part};
use crate::records::frame_numbers::{frame_numbers, FrameNumberWriter};
use crate::records::packet_records::{RecordWriter, Row};
use crate::records::payload_sample::payload_hash;
use crate::records::record_reader::RecordReader;
use crate::stream::reading::{Reading, NO_ACKNOWLEDGEMENT};
use pepscope_wire::segment::{flag, Segment};
use pepscope_wire::PlainSegment;

/// A SACK block (RFC 2018) of one packet, as offsets in the stream that the packet acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlock {
    /// Row of its packet in the columns.
    pub packet: u32,
    pub left: i64,
    pub right: i64,
}

/// Packets of some connections; those of the `i`th are rows `starts[i]..starts[i + 1]`, in capture order. Every
/// column's meaning is that of `pepscope.captures.packets.PacketColumns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    pub starts: Vec<usize>,
    pub time_ns: Vec<i64>,
    /// 0 client to server, 1 server to client.
    pub direction: Vec<u8>,
    pub sequence_offset: Vec<i64>,
    pub acknowledgement_offset: Vec<i64>,
    pub payload_bytes: Vec<u32>,
    pub window_bytes: Vec<u32>,
    pub flags: Vec<u16>,
    pub tsval: Vec<u32>,
    pub tsecr: Vec<u32>,
    pub ip_id: Vec<u16>,
    pub ttl: Vec<u8>,
    pub payload_hash: Vec<u32>,
    pub marks: Vec<u16>,
    pub round_trip_time_ns: Vec<i64>,
    /// Ordered by packet.
    pub sack_blocks: Vec<SackBlock>,
}

/// A SACK block whose edges count from the stream's first known number, and the side that sent it.
#[derive(Clone, Copy, Debug)]
struct SentBlock {
    packet: u32,
    side: u8,
    left: i64,
    right: i64,
}

/// Packets of one connection in the making.
#[derive(Clone, Debug, Default)]
struct Track {
    writer: RecordWriter,
    words: Chain<u32>,
    frame_writer: FrameNumberWriter,
    frames: Chain<u8>,
    packets: u32,
    blocks: Vec<SentBlock>,
}

/// Packets of all connections in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketStore {
    tracks: Vec<Track>,
    words: Chains<u32>,
    frames: Chains<u8>,
    block_count: usize,
}

macro_rules! row_of {
    ($side:ident, $segment:ident, $timestamps:expr, $reading:ident) => {{
        let (tsval, tsecr) = $timestamps.unwrap_or((0, 0));
        Row {
            side: $side as u8,
            ttl: $segment.ttl,
            flags: $segment.flags,
            marks: $reading.marks,
            ip_id: $segment.ip_id,
            time_ns: $segment.time_ns,
            sequence_offset: $reading.sequence_offset,
            acknowledgement_offset: $reading.acknowledgement_offset,
            round_trip_ns: $reading.round_trip_ns,
            payload_bytes: $segment.payload_length,
            window_bytes: $reading.window_bytes,
            tsval,
            tsecr,
            payload_hash: payload_hash($segment.payload, $segment.payload_length),
        }
    }};
}

impl PacketStore {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.memory_bytes()
            + self.frames.memory_bytes()
            + self.block_count * size_of::<SentBlock>()
            + self.tracks.len() * size_of::<Track>()
    }

    #[inline]
    pub(crate) fn push(&mut self, connection: u32, side: usize, segment: &Segment<'_>, reading: &Reading) {
        if connection as usize >= self.tracks.len() {
            self.tracks.resize_with(connection as usize + 1, Track::default);
        }
        if segment.options.sack_count > 0 && reading.acknowledgement_offset != NO_ACKNOWLEDGEMENT {
            self.block_count += self.tracks[connection as usize].push_blocks(side, segment, reading);
        }
        self.add(connection, &row_of!(side, segment, segment.options.timestamps, reading), segment.frame_index);
    }

    /// The same for a segment that needs no more than these fields; its connection has packets.
    #[inline(always)]
    pub(crate) fn push_plain(&mut self, connection: u32, side: usize, segment: &PlainSegment<'_>, reading: &Reading) {
        self.add(connection, &row_of!(side, segment, segment.timestamps, reading), segment.frame_index);
    }

    #[inline]
    fn add(&mut self, connection: u32, row: &Row, frame: u64) {
        let track = &mut self.tracks[connection as usize];
        self.words.push(&mut track.words, |words| track.writer.write(row, words));
        self.frames.push(&mut track.frames, |bytes| track.frame_writer.write(frame, bytes));
        track.packets += 1;
    }

    /// Gives every connection another number.
    pub(crate) fn rank(&mut self, ranks: &[usize]) {
        let mut ranked = vec![Track::default(); self.tracks.len()];
        for (track, &rank) in self.tracks.drain(..).zip(ranks) {
            ranked[rank] = track;
        }
        self.tracks = ranked;
    }

    /// Nothing follows.
    pub(crate) fn finish(self, connections: &[Connection]) -> EncodedPackets {
        let PacketStore { tracks, mut words, frames, .. } = self;
        let encoded = |(track, connection): (Track, &Connection)| EncodedConnection {
            words: with_scaled_windows(&mut words, track.words, connection),
            frames: track.frames,
            packets: track.packets as usize,
            blocks: track.blocks,
            origins: [connection.sides[0].origin, connection.sides[1].origin],
            client: connection.client_side().0 as u8,
        };
        let connections = tracks.into_iter().zip(connections).map(encoded).collect();
        EncodedPackets { words, frames, connections }
    }
}

/// The records of a connection, with windows scaled that were captured before the SYNs that say by how much: file order
/// is not always the order of time.
fn with_scaled_windows(words: &mut Chains<u32>, chain: Chain<u32>, connection: &Connection) -> Chain<u32> {
    let mut left = connection.sides.each_ref().map(|side| side.window.unscaled_packets);
    if left == [0, 0] {
        return chain;
    }
    let copy: Vec<u32> = words.parts(&chain).flat_map(Part::in_use).copied().collect();
    let (mut writer, mut scaled) = (RecordWriter::default(), Chain::default());
    for mut row in RecordReader::new(std::iter::once(Part { elements: &copy, used: copy.len() })) {
        let side = usize::from(row.side & 1);
        if left[side] > 0 && row.flags & flag::SYN == 0 {
            left[side] -= 1;
            row.window_bytes <<= connection.sides[side].window.shift();
        }
        words.push(&mut scaled, |record| writer.write(&row, record));
    }
    scaled
}

impl Track {
    /// Edges are placed relative to the acknowledgement number. Gives how many blocks there were.
    #[cold]
    fn push_blocks(&mut self, side: usize, segment: &Segment<'_>, reading: &Reading) -> usize {
        let place =
            |edge: u32| reading.acknowledgement_offset + i64::from(edge.wrapping_sub(segment.acknowledgement) as i32);
        let before = self.blocks.len();
        for &(left, right) in segment.options.sack_blocks.iter().take(usize::from(segment.options.sack_count)) {
            let (left, right) = (place(left), place(right));
            self.blocks.push(SentBlock { packet: self.packets, side: side as u8, left, right });
        }
        self.blocks.len() - before
    }
}

/// So many rows are decoded before they are appended: one length to look after instead of one for each column.
const BLOCK_ROWS: usize = 64;

/// Rows on their way into columns.
struct Block {
    time_ns: [i64; BLOCK_ROWS],
    direction: [u8; BLOCK_ROWS],
    sequence_offset: [i64; BLOCK_ROWS],
    acknowledgement_offset: [i64; BLOCK_ROWS],
    payload_bytes: [u32; BLOCK_ROWS],
    window_bytes: [u32; BLOCK_ROWS],
    flags: [u16; BLOCK_ROWS],
    tsval: [u32; BLOCK_ROWS],
    tsecr: [u32; BLOCK_ROWS],
    ip_id: [u16; BLOCK_ROWS],
    ttl: [u8; BLOCK_ROWS],
    payload_hash: [u32; BLOCK_ROWS],
    marks: [u16; BLOCK_ROWS],
    round_trip_time_ns: [i64; BLOCK_ROWS],
}

impl Block {
    const EMPTY: Block = Block {
        time_ns: [0; BLOCK_ROWS],
        direction: [0; BLOCK_ROWS],
        sequence_offset: [0; BLOCK_ROWS],
        acknowledgement_offset: [0; BLOCK_ROWS],
        payload_bytes: [0; BLOCK_ROWS],
        window_bytes: [0; BLOCK_ROWS],
        flags: [0; BLOCK_ROWS],
        tsval: [0; BLOCK_ROWS],
        tsecr: [0; BLOCK_ROWS],
        ip_id: [0; BLOCK_ROWS],
        ttl: [0; BLOCK_ROWS],
        payload_hash: [0; BLOCK_ROWS],
        marks: [0; BLOCK_ROWS],
        round_trip_time_ns: [0; BLOCK_ROWS],
    };
}

/// Packets of one connection, with what turns sides into directions and offsets into stream offsets.
#[derive(Clone, Debug)]
struct EncodedConnection {
    words: Chain<u32>,
    frames: Chain<u8>,
    packets: usize,
    blocks: Vec<SentBlock>,
    origins: [i64; 2],
    client: u8,
}

impl EncodedConnection {
    /// Append the packets by way of `block`, whose first `filled` rows have still to be appended; gives how many then are.
    fn decode_into(&self, words: &Chains<u32>, block: &mut Block, mut filled: usize, columns: &mut Columns) -> usize {
        let origins = self.origins;
        for row in RecordReader::new(words.parts(&self.words)) {
            if filled >= BLOCK_ROWS {
                columns.append(block, filled);
                filled = 0;
            }
            let (place, own) = (filled, usize::from(row.side & 1));
            block.time_ns[place] = row.time_ns;
            block.direction[place] = row.side ^ self.client;
            block.sequence_offset[place] = row.sequence_offset - origins[own];
            block.acknowledgement_offset[place] = match row.acknowledgement_offset {
                NO_ACKNOWLEDGEMENT => NO_ACKNOWLEDGEMENT,
                offset => offset - origins[1 - own],
            };
            block.payload_bytes[place] = row.payload_bytes;
            block.window_bytes[place] = row.window_bytes;
            block.flags[place] = row.flags;
            block.tsval[place] = row.tsval;
            block.tsecr[place] = row.tsecr;
            block.ip_id[place] = row.ip_id;
            block.ttl[place] = row.ttl;
            block.payload_hash[place] = row.payload_hash;
            block.marks[place] = row.marks;
            block.round_trip_time_ns[place] = row.round_trip_ns;
            filled += 1;
        }
        filled
    }

    /// SACK blocks as stream offsets; the connection's first packet is row `first_row`.
    fn sack_blocks(&self, first_row: usize) -> impl Iterator<Item = SackBlock> + '_ {
        self.blocks.iter().map(move |block| {
            let origin = self.origins[usize::from(1 - block.side)];
            SackBlock {
                packet: first_row as u32 + block.packet,
                left: block.left - origin,
                right: block.right - origin,
            }
        })
    }
}

/// Packets of the connections of a capture, or of a part of it.
#[derive(Clone, Debug, Default)]
pub struct EncodedPackets {
    words: Chains<u32>,
    frames: Chains<u8>,
    connections: Vec<EncodedConnection>,
}

impl EncodedPackets {
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Stored bytes of the packets of one connection; 0 beyond the last.
    pub fn bytes_of(&self, connection: usize) -> u64 {
        self.connections.get(connection).map_or(0, |encoded| {
            let words = self.words.count(&encoded.words) * size_of::<u32>();
            (words + self.frames.count(&encoded.frames) + encoded.blocks.len() * size_of::<SentBlock>()) as u64
        })
    }

    /// Bytes that all of it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let of_one = |encoded: &EncodedConnection| {
            encoded.blocks.capacity() * size_of::<SentBlock>() + size_of::<EncodedConnection>()
        };
        let of_all: usize = self.connections.iter().map(of_one).sum();
        (of_all + self.words.memory_bytes() + self.frames.memory_bytes()) as u64
    }

    /// The columns of these connections; those beyond the last have no packets.
    pub fn decode(&self, range: Range<usize>) -> Columns {
        let wanted = self.connections.get(range.start.min(self.len())..range.end.min(self.len())).unwrap_or(&[]);
        let mut columns = Columns::with_capacity(wanted.iter().map(|encoded| encoded.packets).sum());
        columns.starts.push(0);
        let (mut block, mut filled) = (Block::EMPTY, 0);
        for encoded in wanted {
            columns.sack_blocks.extend(encoded.sack_blocks(columns.time_ns.len() + filled));
            filled = encoded.decode_into(&self.words, &mut block, filled, &mut columns);
            columns.starts.push(columns.time_ns.len() + filled);
        }
        columns.append(&block, filled);
        columns
    }

    /// Frames of one connection's packets in the capture, from 0 and packet by packet; none beyond the last connection.
    pub fn frame_indices(&self, connection: usize) -> impl Iterator<Item = u64> + '_ {
        let parts = self.connections.get(connection).into_iter().flat_map(|encoded| self.frames.parts(&encoded.frames));
        frame_numbers(parts.flat_map(Part::in_use).copied())
    }

    /// SACK blocks of one connection, rows counted from its first packet; none beyond the last.
    pub fn sack_blocks(&self, connection: usize) -> impl Iterator<Item = SackBlock> + '_ {
        self.connections.get(connection).into_iter().flat_map(|encoded| encoded.sack_blocks(0))
    }
}

impl Columns {
    fn with_capacity(packets: usize) -> Self {
        Columns {
            starts: Vec::new(),
            time_ns: Vec::with_capacity(packets),
            direction: Vec::with_capacity(packets),
            sequence_offset: Vec::with_capacity(packets),
            acknowledgement_offset: Vec::with_capacity(packets),
            payload_bytes: Vec::with_capacity(packets),
            window_bytes: Vec::with_capacity(packets),
            flags: Vec::with_capacity(packets),
            tsval: Vec::with_capacity(packets),
            tsecr: Vec::with_capacity(packets),
            ip_id: Vec::with_capacity(packets),
            ttl: Vec::with_capacity(packets),
            payload_hash: Vec::with_capacity(packets),
            marks: Vec::with_capacity(packets),
            round_trip_time_ns: Vec::with_capacity(packets),
            sack_blocks: Vec::new(),
        }
    }

    fn append(&mut self, block: &Block, count: usize) {
        self.time_ns.extend_from_slice(&block.time_ns[..count]);
        self.direction.extend_from_slice(&block.direction[..count]);
        self.sequence_offset.extend_from_slice(&block.sequence_offset[..count]);
        self.acknowledgement_offset.extend_from_slice(&block.acknowledgement_offset[..count]);
        self.payload_bytes.extend_from_slice(&block.payload_bytes[..count]);
        self.window_bytes.extend_from_slice(&block.window_bytes[..count]);
        self.flags.extend_from_slice(&block.flags[..count]);
        self.tsval.extend_from_slice(&block.tsval[..count]);
        self.tsecr.extend_from_slice(&block.tsecr[..count]);
        self.ip_id.extend_from_slice(&block.ip_id[..count]);
        self.ttl.extend_from_slice(&block.ttl[..count]);
        self.payload_hash.extend_from_slice(&block.payload_hash[..count]);
        self.marks.extend_from_slice(&block.marks[..count]);
        self.round_trip_time_ns.extend_from_slice(&block.round_trip_time_ns[..count]);
    }

    /// SACK blocks of one connection.
    pub fn sack_blocks_of(&self, connection: usize) -> &[SackBlock] {
        let bound = |row: usize| self.sack_blocks.partition_point(|block| (block.packet as usize) < row);
        match (self.starts.get(connection), self.starts.get(connection + 1)) {
            (Some(&start), Some(&end)) => &self.sack_blocks[bound(start)..bound(end)],
            _ => &[],
        }
    }
}

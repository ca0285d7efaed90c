//! Packets of connections: encoded while a capture is read, decoded into columns when they are requested.

use std::ops::Range;

use crate::connection::Connection;
use crate::records::chains::{Chain, Chains, Part};
use crate::records::columns::{Block, Columns, SackBlock, BLOCK_ROWS};
use crate::records::frame_numbers::{frame_numbers, FrameNumberWriter};
use crate::records::packet_records::{RecordWriter, Row};
use crate::records::payload_sample::payload_hash;
use crate::records::record_reader::RecordReader;
use crate::stream::reading::{Reading, NO_ACKNOWLEDGEMENT};
use pepscope_wire::segment::{flag, Segment};
use pepscope_wire::PlainSegment;

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
    /// The packets as columns have them: the side is the direction, and offsets are those in streams.
    #[inline(always)]
    fn rows<'a>(&'a self, words: &'a Chains<u32>) -> impl Iterator<Item = Row> + 'a {
        let (origins, client) = (self.origins, self.client);
        RecordReader::new(words.parts(&self.words)).map(move |row| {
            let own = usize::from(row.side & 1);
            Row {
                side: row.side ^ client,
                sequence_offset: row.sequence_offset - origins[own],
                acknowledgement_offset: match row.acknowledgement_offset {
                    NO_ACKNOWLEDGEMENT => NO_ACKNOWLEDGEMENT,
                    offset => offset - origins[1 - own],
                },
                ..row
            }
        })
    }

    /// Append the packets by way of `block`, whose first `filled` rows have still to be appended; gives how many then are.
    fn decode_into(&self, words: &Chains<u32>, block: &mut Block, mut filled: usize, columns: &mut Columns) -> usize {
        for row in self.rows(words) {
            if filled >= BLOCK_ROWS {
                columns.append(block, filled);
                filled = 0;
            }
            block.put(filled, &row);
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

    /// The packets of one connection, none of which is written anywhere; none beyond the last connection.
    #[inline]
    pub fn rows(&self, connection: usize) -> impl Iterator<Item = Row> + '_ {
        self.connections.get(connection).into_iter().flat_map(|encoded| encoded.rows(&self.words))
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

//! Packets of connections as columns, and rows on their way into these.

use crate::records::packet_records::Row;

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

/// So many rows are decoded before they are appended: one length to look after instead of one for each column.
pub(super) const BLOCK_ROWS: usize = 64;

/// Rows on their way into columns.
pub(super) struct Block {
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
    pub(super) const EMPTY: Block = Block {
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

    #[inline(always)]
    pub(super) fn put(&mut self, place: usize, row: &Row) {
        self.time_ns[place] = row.time_ns;
        self.direction[place] = row.side;
        self.sequence_offset[place] = row.sequence_offset;
        self.acknowledgement_offset[place] = row.acknowledgement_offset;
        self.payload_bytes[place] = row.payload_bytes;
        self.window_bytes[place] = row.window_bytes;
        self.flags[place] = row.flags;
        self.tsval[place] = row.tsval;
        self.tsecr[place] = row.tsecr;
        self.ip_id[place] = row.ip_id;
        self.ttl[place] = row.ttl;
        self.payload_hash[place] = row.payload_hash;
        self.marks[place] = row.marks;
        self.round_trip_time_ns[place] = row.round_trip_ns;
    }
}

impl Columns {
    pub(super) fn with_capacity(packets: usize) -> Self {
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

    pub(super) fn append(&mut self, block: &Block, count: usize) {
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

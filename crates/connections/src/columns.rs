//! Packets as columns: appended in capture order, grouped by connection at the end.

use crate::connection::Connection;
use crate::payload_sample::payload_hash;
use crate::reading::{Reading, NO_ACKNOWLEDGEMENT};
use pepscope_wire::segment::Segment;

/// A SACK block (RFC 2018) of one packet, as offsets in the stream that the packet acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlock {
    /// Row of its packet in the columns.
    pub packet: u32,
    pub left: i64,
    pub right: i64,
}

/// The packets of all connections; those of connection `i` are rows `starts[i]..starts[i + 1]`, in capture order.
/// Every column's meaning is that of `pepscope.packets.PacketColumns`.
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

/// Columns in capture order, with each packet's connection; 64 bytes a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnBuilder {
    connection: Vec<u32>,
    columns: Columns,
}

impl ColumnBuilder {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.connection.len() * size_of::<u32>() + self.columns.memory_bytes()
    }

    #[inline]
    pub(crate) fn push(&mut self, connection: u32, side: usize, segment: &Segment<'_>, reading: &Reading) {
        let (tsval, tsecr) = segment.options.timestamps.unwrap_or((0, 0));
        self.connection.push(connection);
        let columns = &mut self.columns;
        columns.time_ns.push(segment.time_ns);
        columns.direction.push(side as u8);
        columns.sequence_offset.push(reading.sequence_offset);
        columns.acknowledgement_offset.push(reading.acknowledgement_offset);
        columns.payload_bytes.push(segment.payload_length);
        columns.window_bytes.push(reading.window_bytes);
        columns.flags.push(segment.flags);
        columns.tsval.push(tsval);
        columns.tsecr.push(tsecr);
        columns.ip_id.push(segment.ip_id);
        columns.ttl.push(segment.ttl);
        columns.payload_hash.push(payload_hash(segment.payload, segment.payload_length));
        columns.marks.push(reading.marks);
        columns.round_trip_time_ns.push(reading.round_trip_ns);
        if segment.options.sack_count > 0 && reading.acknowledgement_offset != NO_ACKNOWLEDGEMENT {
            self.push_sack(segment, reading);
        }
    }

    /// Edges are placed relative to the acknowledgement number.
    fn push_sack(&mut self, segment: &Segment<'_>, reading: &Reading) {
        let packet = (self.connection.len() - 1) as u32;
        let place =
            |edge: u32| reading.acknowledgement_offset + i64::from(edge.wrapping_sub(segment.acknowledgement) as i32);
        for &(left, right) in segment.options.sack_blocks.iter().take(usize::from(segment.options.sack_count)) {
            self.columns.sack_blocks.push(SackBlock { packet, left: place(left), right: place(right) });
        }
    }

    /// Group by connection with a stable counting sort, one column at a time, so that at most one column exists twice.
    /// Sides become directions, and offsets count from each stream's beginning.
    pub(crate) fn group(self, connections: &[Connection]) -> Columns {
        let ColumnBuilder { connection, mut columns } = self;
        let mut starts = Vec::with_capacity(connections.len() + 1);
        let mut next = Vec::with_capacity(connections.len());
        let mut total = 0;
        for connection in connections {
            starts.push(total);
            next.push(total as u32);
            total += connection.packets() as usize;
        }
        starts.push(total);
        let mut row_of = connection;
        for place in &mut row_of {
            let cursor = &mut next[*place as usize];
            *place = *cursor;
            *cursor += 1;
        }
        drop(next);
        if connections.len() > 1 {
            columns.scatter(&row_of);
        }
        drop(row_of);
        columns.starts = starts;
        columns.settle(connections);
        columns
    }
}

/// Put each value of `column` at its row. The old buffer becomes the `spare` for the next column of that type: fresh
/// pages cost more than the sorting.
fn scatter<T: Copy + Default>(column: &mut Vec<T>, row_of: &[u32], spare: &mut Vec<T>) {
    spare.resize(column.len(), T::default());
    for (value, &row) in column.iter().zip(row_of) {
        spare[row as usize] = *value;
    }
    std::mem::swap(column, spare);
}

impl Columns {
    fn scatter(&mut self, row_of: &[u32]) {
        let mut spare = Vec::new();
        scatter(&mut self.time_ns, row_of, &mut spare);
        scatter(&mut self.sequence_offset, row_of, &mut spare);
        scatter(&mut self.acknowledgement_offset, row_of, &mut spare);
        scatter(&mut self.round_trip_time_ns, row_of, &mut spare);
        let mut spare = Vec::new();
        scatter(&mut self.payload_bytes, row_of, &mut spare);
        scatter(&mut self.window_bytes, row_of, &mut spare);
        scatter(&mut self.tsval, row_of, &mut spare);
        scatter(&mut self.tsecr, row_of, &mut spare);
        scatter(&mut self.payload_hash, row_of, &mut spare);
        let mut spare = Vec::new();
        scatter(&mut self.flags, row_of, &mut spare);
        scatter(&mut self.ip_id, row_of, &mut spare);
        scatter(&mut self.marks, row_of, &mut spare);
        let mut spare = Vec::new();
        scatter(&mut self.direction, row_of, &mut spare);
        scatter(&mut self.ttl, row_of, &mut spare);
        for block in &mut self.sack_blocks {
            block.packet = row_of[block.packet as usize];
        }
        self.sack_blocks.sort_by_key(|block| block.packet);
    }

    fn settle(&mut self, connections: &[Connection]) {
        let mut block = 0;
        for (index, connection) in connections.iter().enumerate() {
            let rows = self.starts[index]..self.starts[index + 1];
            let origins = [connection.sides[0].origin, connection.sides[1].origin];
            let (client, _) = connection.client_side();
            if origins != [0, 0] {
                for row in rows.clone() {
                    let side = usize::from(self.direction[row]);
                    self.sequence_offset[row] -= origins[side];
                    if self.acknowledgement_offset[row] != NO_ACKNOWLEDGEMENT {
                        self.acknowledgement_offset[row] -= origins[1 - side];
                    }
                }
                while let Some(sack) = self.sack_blocks.get_mut(block).filter(|sack| (sack.packet as usize) < rows.end)
                {
                    let origin = origins[1 - usize::from(self.direction[sack.packet as usize])];
                    sack.left -= origin;
                    sack.right -= origin;
                    block += 1;
                }
            } else {
                block += self.sack_blocks[block..].partition_point(|sack| (sack.packet as usize) < rows.end);
            }
            if client == 1 {
                self.direction[rows].iter_mut().for_each(|direction| *direction ^= 1);
            }
        }
    }

    /// Bytes that the columns take in memory.
    pub fn memory_bytes(&self) -> usize {
        self.time_ns.len() * 60 + self.sack_blocks.len() * size_of::<SackBlock>()
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

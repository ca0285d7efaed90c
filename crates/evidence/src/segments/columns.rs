//! Segments of a connection's two flows at one capture point, read from its packets.

use crate::packets::{flag, mark, Packets, NO_ACKNOWLEDGEMENT};

/// Bits of the offsets within a region of a stream (64 KiB).
const REGION_BITS: u32 = 16;
/// Odd, from the golden ratio: the top bits of its products are as good as random.
const MIX: i64 = -7_046_029_254_386_353_131;

/// One segment. Offsets are in the emitting side's stream coordinates; `tsval` and `tsecr` are 0 without timestamps,
/// which are absent only where `stamps_captured` holds without `has_timestamps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    pub start: i64,
    pub length: i64,
    pub acknowledgement: i64,
    pub window: i64,
    pub tsval: i64,
    pub tsecr: i64,
    pub ip_id: i64,
    pub ttl: i64,
    pub push: bool,
    pub first_copy: bool,
    pub has_timestamps: bool,
    pub stamps_captured: bool,
}

impl Segment {
    /// The offset after the last payload byte.
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.length)
    }

    /// Both timestamps as one number: different ones seldom coincide in it, and then count for one less.
    pub(crate) fn stamp_number(&self) -> i64 {
        self.tsval.wrapping_mul(1 << 20) ^ self.tsecr
    }
}

/// The segments of one flow, in capture order: those with data, and pure acknowledgements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    pub data: Vec<Segment>,
    pub acknowledgements: Vec<Segment>,
}

impl Flow {
    pub fn all(&self) -> impl Iterator<Item = &Segment> + Clone {
        self.data.iter().chain(&self.acknowledgements)
    }
}

/// Both flows of a connection, by direction.
pub type Flows = [Flow; 2];

/// One capture of a connection; the pairs are by direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vantage<'a> {
    pub packets: Packets<'a>,
    /// Powers of two by which windows are divided: those that scaled them where they are compared as on the wire.
    pub window_shifts: [u32; 2],
    /// When the sender of the flow first reset the connection.
    pub reset_times_ns: [Option<i64>; 2],
}

/// How large connections are sampled: every `every`-th region of a stream is kept, the same ones in every capture,
/// unless fewer than `fewest` segments lie there.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    pub every: u64,
    pub fewest: usize,
}

impl Vantage<'_> {
    /// Reads the segments without SYN and RST, which all kinds of middleboxes make or change, without those to a host
    /// that has reset the connection: what is still in flight may be routed past a split point then, and without packets
    /// that the capture holds again (`mark::DUPLICATE`), which were sent once.
    ///
    /// `shifts` are added to the offsets of each stream. Data are sampled by their own offset, pure acknowledgements by
    /// what they acknowledge.
    pub fn read(&self, shifts: [i64; 2], sampling: Sampling) -> Flows {
        if sampling.every > 1 {
            let limit = ((1_u128 << 64) / u128::from(sampling.every)) as u64;
            let is_kept = |row: usize| (self.region(row, shifts).wrapping_mul(MIX) as u64) < limit;
            let flows = self.read_those(Flows::default(), shifts, is_kept);
            if flows.iter().map(|flow| flow.all().count()).sum::<usize>() >= sampling.fewest {
                return flows;
            }
        }
        self.read_those(self.room_for_all(), shifts, |_| true)
    }

    fn read_those(&self, mut flows: Flows, shifts: [i64; 2], is_kept: impl Fn(usize) -> bool) -> Flows {
        for row in 0..self.packets.len() {
            if is_kept(row) && self.is_wanted(row) {
                let flow = &mut flows[self.way(row)];
                let segment = self.segment(row, shifts);
                if segment.length > 0 { &mut flow.data } else { &mut flow.acknowledgements }.push(segment);
            }
        }
        flows
    }

    /// Flows without segments that have room for those of all packets.
    fn room_for_all(&self) -> Flows {
        let mut counts = [[0; 2]; 2];
        for (&direction, &payload_bytes) in self.packets.direction.iter().zip(self.packets.payload_bytes) {
            counts[usize::from(direction == 1)][usize::from(payload_bytes > 0)] += 1;
        }
        counts.map(|[pure, data]| Flow { data: Vec::with_capacity(data), acknowledgements: Vec::with_capacity(pure) })
    }

    fn way(&self, row: usize) -> usize {
        usize::from(self.packets.direction[row] == 1)
    }

    fn is_wanted(&self, row: usize) -> bool {
        let packets = &self.packets;
        let reset_ns = self.reset_times_ns[1 - self.way(row)];
        packets.flags[row] & (flag::SYN | flag::RST) == 0
            && packets.marks[row] & mark::DUPLICATE == 0
            && packets.acknowledgement_offset[row] != NO_ACKNOWLEDGEMENT
            && reset_ns.is_none_or(|reset_ns| packets.time_ns[row] <= reset_ns)
    }

    /// The number of the region by which a packet is sampled.
    fn region(&self, row: usize, shifts: [i64; 2]) -> i64 {
        let (packets, way) = (&self.packets, self.way(row));
        let place = if packets.payload_bytes[row] > 0 {
            packets.sequence_offset[row].wrapping_add(shifts[way])
        } else {
            packets.acknowledgement_offset[row].wrapping_add(shifts[1 - way])
        };
        place >> REGION_BITS
    }

    fn segment(&self, row: usize, shifts: [i64; 2]) -> Segment {
        let (packets, way) = (&self.packets, self.way(row));
        let (flags, marks) = (packets.flags[row], packets.marks[row]);
        let has_timestamps = marks & mark::HAS_TIMESTAMPS != 0;
        let stamp = |value: u32| if has_timestamps { i64::from(value) } else { 0 };
        Segment {
            start: packets.sequence_offset[row].wrapping_add(shifts[way]),
            length: packets.payload_bytes[row].into(),
            acknowledgement: packets.acknowledgement_offset[row].wrapping_add(shifts[1 - way]),
            window: packets.window_bytes[row].checked_shr(self.window_shifts[way]).unwrap_or(0).into(),
            tsval: stamp(packets.tsval[row]),
            tsecr: stamp(packets.tsecr[row]),
            ip_id: packets.ip_id[row].into(),
            ttl: packets.ttl[row].into(),
            push: flags & flag::PSH != 0,
            first_copy: marks & mark::RETRANSMISSION == 0,
            has_timestamps,
            stamps_captured: has_timestamps || marks & mark::OPTIONS_TRUNCATED == 0,
        }
    }
}

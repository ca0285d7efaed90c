//! UDP flows with samples of their datagrams: a split may carry a TCP stream's bytes over UDP on one leg.
//!
//! The protocol inside is unknown, so beginnings of datagrams are stored, most of them from the beginning of the flow
//! and from the places that `payload_sample` keeps of TCP streams. Memory is bounded: where the samples outgrow their
//! share, flows too short for a comparison are dropped first, then every flow keeps half as many datagrams.

use std::collections::HashMap;

use pepscope_wire::Datagram;

use crate::records::payload_sample::is_kept;

/// The first datagrams of each side are kept whole, so that they overlap any other segmentation of the same bytes.
const WHOLE_DATAGRAMS: usize = 64;
const WHOLE_BYTES: usize = 1536;
/// Of later ones, as much as of a TCP segment, and room for an unknown header before it.
const LATER_BYTES: usize = 320;
/// Most datagrams kept of one side, and what that falls to where memory is short.
const MOST_KEPT: usize = 1024;
const FEWEST_KEPT: usize = 32;
/// Flows with fewer datagrams are the first to go: a query and its answer are no transfer.
const FEW_DATAGRAMS: u64 = 8;
/// A short flow without packets for this time counts as ended.
const SILENT_NS: i64 = 10_000_000_000;
const MOST_FLOWS: usize = 1 << 16;
/// Datagrams left out between two looks for room.
const DATAGRAMS_BETWEEN_LOOKS: u64 = 1 << 16;
/// Memory of a flow and of a stored datagram besides their bytes.
const FLOW_OVERHEAD_BYTES: usize = 256;

/// A datagram with stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptDatagram {
    /// Its rank among the datagrams with payload of its side, from 0.
    pub number: u64,
    /// Its frame in the capture, from 0.
    pub frame_index: u64,
    pub time_ns: i64,
    /// Bytes of its payload on the wire.
    pub payload_length: u32,
    /// Where its bytes stand in `DatagramSide::bytes`, and how many there are.
    position: u32,
    length: u32,
}

/// What one side of a flow sent.
#[derive(Clone, Debug, Default)]
pub struct DatagramSide {
    /// Datagrams with payload.
    pub datagrams: u64,
    pub payload_bytes: u64,
    kept: Vec<KeptDatagram>,
    bytes: Vec<u8>,
}

impl DatagramSide {
    fn take(&mut self, datagram: &Datagram<'_>, most_kept: usize) {
        let wanted = self.kept.len() < most_kept && is_kept(self.payload_bytes as i64);
        if wanted {
            let limit = if self.kept.len() < WHOLE_DATAGRAMS { WHOLE_BYTES } else { LATER_BYTES };
            let piece = &datagram.payload[..datagram.payload.len().min(limit)];
            self.kept.push(KeptDatagram {
                number: self.datagrams,
                frame_index: datagram.frame_index,
                time_ns: datagram.time_ns,
                payload_length: datagram.payload_length,
                position: self.bytes.len() as u32,
                length: piece.len() as u32,
            });
            self.bytes.extend_from_slice(piece);
        }
        self.datagrams += 1;
        self.payload_bytes += u64::from(datagram.payload_length);
    }

    fn keep_at_most(&mut self, most_kept: usize) {
        if let Some(first_gone) = self.kept.get(most_kept) {
            self.bytes.truncate(first_gone.position as usize);
            self.bytes.shrink_to_fit();
            self.kept.truncate(most_kept);
            self.kept.shrink_to_fit();
        }
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.kept.len() * size_of::<KeptDatagram>()
    }

    /// Datagrams with stored bytes.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = (&KeptDatagram, &[u8])> {
        self.kept.iter().map(|kept| {
            let start = kept.position as usize;
            (kept, self.bytes.get(start..start + kept.length as usize).unwrap_or_default())
        })
    }
}

/// UDP datagrams between two end points; side 0 sent the first of them.
#[derive(Clone, Debug)]
pub struct DatagramFlow {
    pub first_frame: u64,
    pub ip_version: u8,
    pub addresses: [[u8; 16]; 2],
    pub ports: [u16; 2],
    pub first_time_ns: i64,
    pub last_time_ns: i64,
    pub sides: [DatagramSide; 2],
}

impl DatagramFlow {
    fn memory_bytes(&self) -> usize {
        FLOW_OVERHEAD_BYTES + self.sides.iter().map(DatagramSide::memory_bytes).sum::<usize>()
    }

    fn is_short(&self, now_ns: i64) -> bool {
        self.sides.iter().all(|side| side.datagrams < FEW_DATAGRAMS)
            && now_ns.saturating_sub(self.last_time_ns) > SILENT_NS
    }
}

/// The lower end point first.
type FlowKey = [([u8; 16], u16); 2];

/// UDP flows in the making. Push every datagram in capture order, then finish.
pub struct DatagramFlows {
    memory_limit: usize,
    memory_bytes: usize,
    most_kept: usize,
    flows: HashMap<FlowKey, DatagramFlow>,
    left_out: u64,
}

impl DatagramFlows {
    /// Samples and flows take at most about `memory_limit` bytes.
    pub fn new(memory_limit: usize) -> Self {
        DatagramFlows { memory_limit, memory_bytes: 0, most_kept: MOST_KEPT, flows: HashMap::new(), left_out: 0 }
    }

    /// Bytes that the flows and samples take, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Datagrams of flows for which there was no room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Take in the next datagram of the capture.
    pub fn push(&mut self, datagram: &Datagram<'_>) {
        let ends = [(datagram.source, datagram.source_port), (datagram.destination, datagram.destination_port)];
        let key = if ends[0] <= ends[1] { ends } else { [ends[1], ends[0]] };
        if !self.flows.contains_key(&key) {
            // Looking through all flows for each new one would cost too much where they are here to stay.
            if self.is_full() && self.left_out % DATAGRAMS_BETWEEN_LOOKS == 0 {
                self.make_room(datagram.time_ns);
            }
            if self.is_full() {
                self.left_out += 1;
                return;
            }
            self.memory_bytes += FLOW_OVERHEAD_BYTES;
        }
        let flow = self.flows.entry(key).or_insert_with(|| DatagramFlow {
            first_frame: datagram.frame_index,
            ip_version: datagram.ip_version,
            addresses: [datagram.source, datagram.destination],
            ports: [datagram.source_port, datagram.destination_port],
            first_time_ns: datagram.time_ns,
            last_time_ns: datagram.time_ns,
            sides: Default::default(),
        });
        flow.last_time_ns = flow.last_time_ns.max(datagram.time_ns);
        let sent_first = (flow.addresses[0], flow.ports[0]) == ends[0];
        let side = &mut flow.sides[usize::from(!sent_first)];
        let before = side.memory_bytes();
        side.take(datagram, if self.memory_bytes > self.memory_limit { 0 } else { self.most_kept });
        self.memory_bytes += side.memory_bytes() - before;
        if self.memory_bytes > self.memory_limit && self.most_kept > FEWEST_KEPT {
            self.make_room(datagram.time_ns);
        }
    }

    fn is_full(&self) -> bool {
        self.flows.len() >= MOST_FLOWS || self.memory_bytes > self.memory_limit
    }

    /// Drops short flows; where that is not enough, stores less of every flow.
    fn make_room(&mut self, now_ns: i64) {
        self.flows.retain(|_, flow| !flow.is_short(now_ns));
        self.measure();
        while self.memory_bytes > self.memory_limit / 2 && self.most_kept > FEWEST_KEPT {
            self.most_kept /= 2;
            for side in self.flows.values_mut().flat_map(|flow| &mut flow.sides) {
                side.keep_at_most(self.most_kept);
            }
            self.measure();
        }
    }

    fn measure(&mut self) {
        self.memory_bytes = self.flows.values().map(DatagramFlow::memory_bytes).sum();
    }

    /// The end of the capture: the flows in the order of their first datagrams.
    pub fn finish(self) -> Vec<DatagramFlow> {
        let mut flows: Vec<DatagramFlow> = self.flows.into_values().collect();
        flows.sort_unstable_by_key(|flow| flow.first_frame);
        flows
    }
}

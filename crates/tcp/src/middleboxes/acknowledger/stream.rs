//! One direction of a connection: what has come from its sender, and what the middlebox acknowledges in the receiver's name.

use pepscope_path::{Nanoseconds, NEVER};

use super::held::Held;
use super::AcknowledgerSettings;
use crate::packets::segment::{Flags, SackBlocks, Segment, Timestamps};
use crate::packets::sequence::{number, position};
use crate::receiving::intervals::Intervals;

/// A sender that had filled the window gets a window update once this many segments fit (RFC 1122, section 4.2.3.3).
const SEGMENTS_TO_REOPEN: u64 = 2;
const SACK_BLOCKS_BESIDE_TIMESTAMPS: usize = 3;

/// What is known of a stream's receiver, whose acknowledgements are imitated.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    pub flow: u32,
    pub user: u16,
    pub version_6: bool,
    pub time_to_live: u8,
    pub scale: u8,
    pub window_bytes: u64,
    pub timestamp: Option<u32>,
    pub sack_permitted: bool,
    /// Its next sequence number.
    pub next_number: u32,
}

impl End {
    /// Notes the header of a segment that it sent.
    pub fn note(&mut self, segment: &Segment, scale: u8) {
        (self.flow, self.user, self.version_6) = (segment.flow, segment.user, segment.version_6);
        self.time_to_live = segment.time_to_live;
        self.scale = if segment.flags.has(Flags::SYN) { 0 } else { scale };
        self.window_bytes = u64::from(segment.window) << self.scale;
        self.sack_permitted |= segment.sack_permitted;
        self.timestamp = segment.timestamps.map(|timestamps| timestamps.value).or(self.timestamp);
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    is_served: bool,
    buffer_bytes: u64,
    passes_receivers: bool,
    counts_identifications: bool,
    identification: u16,
    pub receiver: End,
    initial: Option<u32>,
    sender_scale: Option<u8>,
    sender_sack_permitted: bool,
    /// The position expected next; 1 is the first byte.
    expected: u64,
    early: Intervals,
    latest_early: (u64, u64),
    fin: Option<u64>,
    /// Data have come: the receiver's acknowledgements are replaced.
    is_active: bool,
    is_due: bool,
    /// TS.Recent and Last.ACK.sent of RFC 7323, section 4.3.
    recent_timestamp: u32,
    last_acknowledged: u64,
    offered_bytes: u64,
    held: Held,
}

impl Stream {
    pub fn new(settings: &AcknowledgerSettings, is_served: bool, identification: u16) -> Self {
        Self {
            is_served,
            buffer_bytes: settings.buffer_bytes,
            passes_receivers: settings.passes_receivers,
            counts_identifications: settings.counts_identifications,
            identification,
            receiver: End::default(),
            initial: None,
            sender_scale: None,
            sender_sack_permitted: false,
            expected: 1,
            early: Intervals::default(),
            latest_early: (0, 0),
            fin: None,
            is_active: false,
            is_due: false,
            recent_timestamp: 0,
            last_acknowledged: 1,
            offered_bytes: 0,
            held: Held::new(settings.control),
        }
    }

    /// The sender's SYN.
    pub fn begin(&mut self, syn: &Segment) {
        self.initial = Some(syn.sequence);
        self.sender_scale = syn.window_scale;
        self.sender_sack_permitted = syn.sack_permitted;
        self.recent_timestamp = syn.timestamps.map_or(0, |timestamps| timestamps.value);
    }

    /// The scale of windows that the sender of this stream offered for its own.
    pub fn offered_scale(&self) -> Option<u8> {
        self.sender_scale
    }

    /// The sequence number after all that was passed on to the receiver, which takes no later ones for granted.
    pub fn next_number(&self) -> u32 {
        let next = if self.is_served && self.is_active {
            self.held.highest_sent().max(1)
        } else {
            self.expected + u64::from(self.fin == Some(self.expected))
        };
        number(next, self.initial.unwrap_or_default())
    }

    /// Notes a segment of the sender that is passed on as it came.
    pub fn note_passed(&mut self, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps {
            self.held.note_timestamp(timestamps.value);
        }
    }

    /// The newest timestamp of what was passed on, where something may be held back: later ones would make that look old
    /// (PAWS).
    pub fn passed_timestamp(&self) -> Option<u32> {
        self.held.highest_timestamp().filter(|_| self.is_served)
    }

    pub fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Takes data or a FIN from the sender; whether the segment was taken in, and is not for the host to pass on.
    pub fn take(&mut self, now: Nanoseconds, segment: &Segment) -> bool {
        let Some(initial) = self.initial else { return false };
        let start = position(segment.sequence, initial, self.expected);
        let payload_end = start + u64::from(segment.payload_bytes);
        let end = payload_end + u64::from(segment.flags.has(Flags::FIN));
        if let Some(timestamps) = segment.timestamps.filter(|_| start <= self.last_acknowledged) {
            self.recent_timestamp = timestamps.value;
        }
        if self.fin.is_some_and(|fin| self.held.acknowledged() > fin) {
            return false; // the receiver has it all, and acknowledges a repeated FIN itself
        }
        if self.is_served {
            self.is_active = true;
            self.is_due = true;
            if self.held.bytes() + (end - start) > self.buffer_bytes + u64::from(u16::MAX) {
                return true; // its sender pays no heed to the window
            }
        }
        if self.note(start, payload_end, end) && self.is_served {
            self.held.push(now, *segment, start, end);
        }
        self.is_served
    }

    /// Notes that `start` .. `end` has come; whether any of it is new.
    fn note(&mut self, start: u64, payload_end: u64, end: u64) -> bool {
        let mut is_new = false;
        let first = start.max(self.expected);
        if self.fin == Some(self.expected) {
            return false; // nothing is missing
        }
        if first < end {
            let merged = self.early.insert(first, end, |_, _| is_new = true);
            if merged.0 <= self.expected {
                self.expected = merged.1;
                self.early.remove_below(self.expected);
            } else {
                self.latest_early = merged;
            }
        }
        if end > payload_end {
            self.fin = Some(payload_end);
        }
        match self.fin {
            Some(fin) if self.expected > fin => self.expected = fin, // the receiver acknowledges the FIN itself
            _ => {}
        }
        is_new
    }

    /// Takes an acknowledgement by the receiver; whether the sender need not see it, if it carries nothing else.
    pub fn handle_acknowledgement(&mut self, now: Nanoseconds, segment: &Segment) -> bool {
        let Some(initial) = self.initial.filter(|_| self.is_active) else { return false };
        let acknowledged = position(segment.acknowledgement, initial, self.expected);
        let edge = acknowledged + self.receiver.window_bytes;
        let blocks =
            segment.sack.as_slice().iter().map(|(left, right)| {
                (position(*left, initial, self.expected), position(*right, initial, self.expected))
            });
        self.held.acknowledge(now, acknowledged, edge, blocks);
        let enough = (SEGMENTS_TO_REOPEN * self.held.largest_bytes()).min(self.buffer_bytes / 2);
        let window = self.window_bytes();
        if window >= enough && self.offered_bytes < enough && self.fin.is_none() {
            self.is_due = true;
        }
        let acknowledges_fin = self.fin.is_some_and(|fin| acknowledged > fin);
        !self.passes_receivers && !acknowledges_fin
    }

    fn window_bytes(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.held.bytes()).min(u64::from(u16::MAX) << self.receiver.scale)
    }

    /// The acknowledgement that is due, as the receiver, whose own data have come up to `receiver`, would send it.
    pub fn poll_acknowledgement(&mut self, now: Nanoseconds, receiver: &End) -> Option<Segment> {
        let initial = self.initial.filter(|_| core::mem::take(&mut self.is_due))?;
        self.last_acknowledged = self.expected;
        self.offered_bytes = self.window_bytes();
        let mut sack = SackBlocks::default();
        if receiver.sack_permitted && self.sender_sack_permitted && !self.early.is_empty() {
            let others = self.early.descending().filter(|block| *block != self.latest_early);
            let latest = Some(self.latest_early).filter(|latest| latest.0 > self.expected);
            for (left, right) in latest.into_iter().chain(others).take(SACK_BLOCKS_BESIDE_TIMESTAMPS) {
                sack.push(number(left, initial), number(right, initial));
            }
        }
        if self.counts_identifications {
            self.identification = self.identification.wrapping_add(1);
        }
        Some(Segment {
            flow: receiver.flow,
            user: receiver.user,
            version_6: receiver.version_6,
            time_to_live: receiver.time_to_live,
            flags: Flags::ACK,
            sequence: receiver.next_number,
            acknowledgement: number(self.expected, initial),
            window: (self.offered_bytes >> receiver.scale) as u16,
            timestamps: receiver.timestamp.map(|value| Timestamps { value, echo_reply: self.recent_timestamp }),
            sack,
            ip_identification: if self.counts_identifications { self.identification } else { 0 },
            sent_ns: now,
            ..Segment::default()
        })
    }

    /// A segment for the receiver that may leave now, and whether it left before.
    pub fn poll_data(&mut self, now: Nanoseconds) -> Option<(Segment, bool)> {
        self.held.poll(now)
    }

    pub fn poll_timeout(&self) -> Nanoseconds {
        if self.is_active {
            self.held.deadline()
        } else {
            NEVER
        }
    }

    pub fn handle_timeout(&mut self, now: Nanoseconds) {
        self.held.handle_timeout(now);
    }
}

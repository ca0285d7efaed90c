//! One connection's state machine: segments in, marks and samples out.
//!
//! Sides are numbered by who sent the first captured packet (0); who is the client is decided at the end.

use crate::key::Key;
use crate::mark;
use crate::stream::reading::{
    count_marks, initial_marks, note_close, read_acknowledgement, read_sequence, Reading, NO_ACKNOWLEDGEMENT,
};
use crate::stream::retransmission::{Repeat, ASSUMED_ROUND_TRIP_NS};
use crate::stream::side::{Side, NEVER};
use pepscope_wire::segment::{flag, Segment, TunnelKind};

/// While a SYN is missing, the lowest number of so many packets is taken for the stream's beginning.
pub(crate) const FIRST_PACKETS: u64 = 64;
/// How far a late SYN may lie below the first captured numbers, in bytes.
const LATE_SYN_BYTES: i64 = 1 << 16;
/// How many packets may overtake a SYN.
const LATE_SYN_PACKETS: u64 = 16;
/// First port of no well-known service.
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;
/// First of the ports that the common systems give to clients.
const FIRST_EPHEMERAL_PORT: u16 = 32768;

/// Interrupts that a network card collects, and the queues that they fill, put packets out of order by less.
pub(crate) const OUT_OF_ORDER_NS: i64 = 1_000_000;

/// How a connection ended within the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    Fin,
    Reset,
    Open,
}

#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) key: Key,
    pub(crate) sides: [Side; 2],
    pub(crate) first_frame: u64,
    pub(crate) first_time_ns: i64,
    pub(crate) last_time_ns: i64,
    /// Times fell by more than `OUT_OF_ORDER_NS`, within the connection or to the one that succeeded it.
    pub(crate) falls_back: bool,
    pub(crate) syn_ack_ns: Option<i64>,
    pub(crate) handshake_ack_ns: Option<i64>,
    pub(crate) tunnel: TunnelKind,
    pub(crate) ip_version: u8,
    /// The side that sent the first SYN, and the one that sent the first SYN-ACK.
    syn_side: Option<u8>,
    syn_ack_side: Option<u8>,
    pub(crate) first_data_side: Option<u8>,
    pub(crate) handshake_acknowledged: bool,
    /// See `is_under_way`; as the latest packet that `handle_segment` took left it.
    pub(crate) under_way: bool,
}

impl Connection {
    pub(crate) fn new(key: Key, segment: &Segment<'_>) -> Self {
        Connection {
            key,
            sides: [Side::new(), Side::new()],
            first_frame: segment.frame_index,
            first_time_ns: segment.time_ns,
            last_time_ns: segment.time_ns,
            falls_back: false,
            syn_ack_ns: None,
            handshake_ack_ns: None,
            tunnel: segment.tunnel.kind,
            ip_version: segment.ip_version,
            syn_side: None,
            syn_ack_side: None,
            first_data_side: None,
            handshake_acknowledged: false,
            under_way: false,
        }
    }

    /// Whether a packet with SYN from `side` opens another connection between the same endpoints (port reuse).
    ///
    /// A SYN with the initial sequence number already seen is a retransmission; with another one it is a new
    /// connection. Where this side's SYN was not captured, one that the other side's SYN-ACK answers, or that fits just
    /// below the first numbers, came late.
    pub(crate) fn is_succeeded_by(&self, side: usize, segment: &Segment<'_>) -> bool {
        let (own, other) = (&self.sides[side], &self.sides[1 - side]);
        if own.opening.initial_sequence_number() == Some(segment.sequence) {
            return false;
        }
        if segment.flags & flag::ACK == 0 {
            return own.opening.seen() || !(is_answered(own, segment) || self.may_be_late_syn(own, segment));
        }
        match other.opening.initial_sequence_number() {
            Some(number) => {
                let beyond = segment.acknowledgement.wrapping_sub(number.wrapping_add(1));
                let answers = beyond <= other.opening.payload_bytes;
                let unused = own.data_packets == 0 && !self.is_closed();
                !answers || (own.opening.seen() && !unused)
            }
            None => own.opening.seen() || !self.may_be_late_syn(own, segment),
        }
    }

    /// A few packets may overtake a SYN. Any number stand before a SYN that was captured before them: in a file with one
    /// direction behind the other.
    fn may_be_late_syn(&self, own: &Side, segment: &Segment<'_>) -> bool {
        let is_earliest = segment.time_ns < self.first_time_ns && own.sequence.anchored();
        if !is_earliest && (self.is_closed() || self.packets() > LATE_SYN_PACKETS) {
            return false;
        }
        if !own.sequence.anchored() {
            return true;
        }
        let below = own.origin - own.sequence.offset(segment.sequence.wrapping_add(1));
        (0..=LATE_SYN_BYTES).contains(&below)
    }

    fn is_closed(&self) -> bool {
        self.close() != Close::Open
    }

    /// A reset ends a connection unless both sides had sent FIN before it.
    pub(crate) fn close(&self) -> Close {
        let [first, second] = &self.sides;
        let reset_ns = match (first.reset_time_ns, second.reset_time_ns) {
            (NEVER, time_ns) | (time_ns, NEVER) => time_ns,
            (one, other) => one.min(other),
        };
        let finished =
            (first.packets == 0 || first.fin_time_ns != NEVER) && (second.packets == 0 || second.fin_time_ns != NEVER);
        let finished_ns = first.fin_time_ns.max(second.fin_time_ns);
        if reset_ns != NEVER && !(finished && finished_ns <= reset_ns) {
            Close::Reset
        } else if finished && finished_ns != NEVER {
            Close::Fin
        } else {
            Close::Open
        }
    }

    /// The side that is the client, and whether that is a guess.
    ///
    /// Who sent the SYN; where no SYN was captured, who received the SYN-ACK; else the other side of the well-known
    /// port; else the side with a port from the range that systems give to clients; else the side with the higher
    /// port; else who sent data first; else who sent the first packet.
    pub(crate) fn client_side(&self) -> (usize, bool) {
        if let Some(side) = self.syn_side {
            return (usize::from(side), false);
        }
        if let Some(side) = self.syn_ack_side {
            return (usize::from(1 - side), false);
        }
        let (first, second) = (self.key.sender.port(), self.key.receiver.port());
        for boundary in [FIRST_UNPRIVILEGED_PORT, FIRST_EPHEMERAL_PORT] {
            if (first < boundary) != (second < boundary) {
                return (usize::from(first < boundary), true);
            }
        }
        if first != second {
            return (usize::from(first < second), true);
        }
        (usize::from(self.first_data_side.unwrap_or(0)), true)
    }

    pub(crate) fn packets(&self) -> u64 {
        self.sides[0].packets + self.sides[1].packets
    }

    /// Take in one packet that `side` sent.
    #[inline]
    pub(crate) fn handle_segment(
        &mut self,
        side: usize,
        segment: &Segment<'_>,
        options_store: &mut Vec<u8>,
    ) -> Reading {
        self.note_next_time(segment.time_ns);
        self.last_time_ns = self.last_time_ns.max(segment.time_ns);
        let repeats = match self.sides[side].count(segment) {
            Repeat::No => false,
            Repeat::Yes => true,
            Repeat::ByTime => {
                let parts = self.syn_ack_ns.zip(self.handshake_ack_ns);
                let round_trip_ns = parts.map(|(far, near)| far.saturating_add(near));
                self.sides[side].recent.repeats_by_time(segment, round_trip_ns)
            }
        };
        let young = self.packets() <= FIRST_PACKETS;
        if self.tunnel == TunnelKind::None {
            self.tunnel = segment.tunnel.kind;
        }
        if segment.flags & flag::SYN != 0 {
            self.open(side, segment, repeats, options_store);
        }
        let round_trip_to_sender_ns = self.round_trip_to_ns(side);

        let [first, second] = &mut self.sides;
        let (own, other) = if side == 0 { (first, second) } else { (second, first) };

        let mut reading = Reading {
            sequence_offset: 0,
            acknowledgement_offset: NO_ACKNOWLEDGEMENT,
            window_bytes: own.window.scaled(segment.window),
            marks: initial_marks(segment),
            round_trip_ns: -1,
            payload_offset: 0,
            payload_is_new: false,
        };
        if segment.flags & flag::SYN != 0 {
            reading.window_bytes = u32::from(segment.window); // RFC 7323 section 2.2: never scaled
        }
        if repeats {
            reading.marks |= mark::DUPLICATE;
        }
        read_sequence(own, other, segment, young, repeats, round_trip_to_sender_ns, &mut reading);
        if segment.payload_length > 0 && self.first_data_side.is_none() {
            self.first_data_side = Some(side as u8);
        }
        if segment.flags & flag::ACK != 0 {
            read_acknowledgement(own, other, segment, young, repeats, &mut reading);
        }
        if segment.flags & (flag::SYN | flag::RST) == 0 {
            own.window.advertise(reading.window_bytes);
            if reading.window_bytes == 0 {
                reading.marks |= mark::ZERO_WINDOW;
            }
        }
        count_marks(own, segment, reading.marks);
        if segment.flags & (flag::FIN | flag::RST) != 0 {
            note_close(own, segment);
        }
        let over = segment.flags & flag::RST != 0 || (own.finished() && other.finished());
        if !self.handshake_acknowledged {
            self.note_handshake_acknowledgement(side, segment);
        }
        if over {
            self.release();
        }
        self.under_way = self.is_under_way();
        reading
    }

    /// The time of the next packet between the same end points, of this connection or of its successor.
    pub(crate) fn note_next_time(&mut self, time_ns: i64) {
        self.falls_back |= time_ns < self.last_time_ns.saturating_sub(OUT_OF_ORDER_NS);
    }

    pub(crate) fn release(&mut self) {
        self.sides.iter_mut().for_each(Side::release);
    }

    #[cold]
    fn open(&mut self, side: usize, segment: &Segment<'_>, repeats: bool, options_store: &mut Vec<u8>) {
        let tsecr = segment.options.timestamps.map(|(_, tsecr)| tsecr);
        if segment.flags & flag::ACK != 0 {
            if self.syn_ack_side.is_none() {
                self.syn_ack_side = Some(side as u8);
                let request = &self.sides[1 - side].opening;
                if request.seen() {
                    self.syn_ack_ns = request.answered_after_ns(segment.time_ns, tsecr);
                }
            }
        } else if self.syn_side.is_none() {
            self.syn_side = Some(side as u8);
        }
        let own = &mut self.sides[side];
        let first = !own.opening.seen();
        own.opening.note(segment, repeats, options_store);
        if first {
            let begin = segment.sequence.wrapping_add(1);
            own.sequence.anchor(begin);
            own.begin(own.sequence.offset(begin));
        }
        let other = &mut self.sides[1 - side];
        if segment.flags & flag::ACK != 0 && !other.origin_known && segment.acknowledgement != 0 {
            other.sequence.anchor(segment.acknowledgement);
            other.begin(other.sequence.offset(segment.acknowledgement));
        }
        self.settle_window_scales(side, segment.flags & flag::ACK != 0);
    }

    /// Windows are scaled if both sides offered it (RFC 7323 section 2.2). A SYN-ACK that offers it answers a SYN that
    /// did, so its sender's windows are scaled even where the options of that SYN were not captured; the other side's
    /// are then left as they are on the wire.
    fn settle_window_scales(&mut self, side: usize, is_answer: bool) {
        let offers = [self.sides[0].opening.window_scale, self.sides[1].opening.window_scale];
        if let [Some(first), Some(second)] = offers {
            self.sides[0].scale_windows_by(first);
            self.sides[1].scale_windows_by(second);
        } else if is_answer && !self.sides[1 - side].opening.options_captured() {
            if let Some(shift) = offers[side] {
                self.sides[side].scale_windows_by(shift);
            }
        }
    }

    /// By how much a side's windows were shifted; `None` where the options that settle it were not captured, and the
    /// windows are as on the wire.
    pub(crate) fn window_shift(&self, side: usize) -> Option<u8> {
        let (own, other) = (&self.sides[side].opening, &self.sides[1 - side].opening);
        let refused = [own, other].iter().any(|it| it.options_captured() && it.window_scale.is_none());
        let answered = other.window_scale.is_some() || self.syn_ack_side == Some(side as u8);
        let settled = refused || (own.window_scale.is_some() && answered);
        settled.then_some(self.sides[side].window.shift())
    }

    /// Round trip between this point and the sender, as the handshake showed it.
    fn round_trip_to_ns(&self, side: usize) -> i64 {
        let known = if self.syn_ack_side == Some(side as u8) { self.syn_ack_ns } else { self.handshake_ack_ns };
        known.unwrap_or(ASSUMED_ROUND_TRIP_NS)
    }

    /// Times the acknowledgement of the SYN-ACK by the first one after it. One that stands before it (stamped in
    /// another order, or an answer to a SYN-ACK that was not captured) leaves the time unknown: a later one answers
    /// something else. So does one of later data, before which the handshake's own was lost or not captured.
    fn note_handshake_acknowledgement(&mut self, side: usize, segment: &Segment<'_>) {
        if segment.flags & (flag::SYN | flag::ACK | flag::RST) != flag::ACK {
            return;
        }
        let Some(server) = self.syn_ack_side else {
            self.handshake_acknowledged = true;
            return;
        };
        if side == usize::from(server) {
            return;
        }
        self.handshake_acknowledged = true;
        let opening = &self.sides[usize::from(server)].opening;
        if opening.is_acknowledged_with_more(segment.acknowledgement) {
            return;
        }
        let tsecr = segment.options.timestamps.map(|(_, tsecr)| tsecr);
        self.handshake_ack_ns = opening.answered_after_ns(segment.time_ns, tsecr);
    }
}

/// Whether a SYN-ACK of the other side, captured before this SYN, answers it: alone or with what the SYN carries.
fn is_answered(own: &Side, segment: &Segment<'_>) -> bool {
    let acknowledged = own.origin - own.sequence.offset(segment.sequence.wrapping_add(1));
    own.origin_known && (0..=i64::from(segment.payload_length)).contains(&acknowledged)
}

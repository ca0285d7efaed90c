//! What one packet does to its sender's stream and to the stream that it acknowledges.

use crate::mark;
use crate::stream::sequence::Sighting;
use crate::stream::side::{Side, NEVER};
use pepscope_wire::segment::{flag, Segment};

/// Acknowledgement offset of a packet that carries no ACK flag.
pub const NO_ACKNOWLEDGEMENT: i64 = -(1 << 62);
/// What one packet means for the columns; offsets are relative to each side's first known number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) sequence_offset: i64,
    pub(crate) acknowledgement_offset: i64,
    pub(crate) window_bytes: u32,
    pub(crate) marks: u16,
    /// -1 where none.
    pub(crate) round_trip_ns: i64,
    /// Offset of the first payload byte.
    pub(crate) payload_offset: i64,
    /// The payload lies in the stream and holds bytes not captured before.
    pub(crate) payload_is_new: bool,
}

pub(crate) fn initial_marks(segment: &Segment<'_>) -> u16 {
    let mut marks = 0;
    if segment.options.timestamps.is_some() {
        marks |= mark::HAS_TIMESTAMPS;
    }
    if segment.options.sack_count > 0 {
        marks |= mark::HAS_SACK;
    }
    if segment.header_truncated {
        marks |= mark::HEADER_TRUNCATED;
    }
    if segment.options_truncated {
        marks |= mark::OPTIONS_TRUNCATED;
    }
    marks
}

#[inline]
pub(crate) fn read_sequence(
    own: &mut Side,
    other: &mut Side,
    segment: &Segment<'_>,
    young: bool,
    repeats: bool,
    round_trip_ns: i64,
    reading: &mut Reading,
) {
    let (syn, reset) = (segment.flags & flag::SYN != 0, segment.flags & flag::RST != 0);
    if !own.sequence.anchored() {
        if reset {
            return; // a reset's number may be anything (RFC 9293 section 3.5.2)
        }
        own.sequence.anchor(segment.sequence);
    }
    let offset = own.sequence.offset(segment.sequence);
    let start = offset + i64::from(syn);
    let end = start + i64::from(segment.payload_length);
    reading.sequence_offset = offset;
    reading.payload_offset = start;
    if reset {
        return;
    }
    if syn && own.opening.syn_packets > 1 {
        if !repeats {
            reading.marks |= mark::RETRANSMISSION;
        }
        return;
    }
    if let Some(kind) = probe(own, other, segment, offset) {
        reading.marks |= kind;
        if segment.payload_length == 1 && offset == own.coverage.highest() {
            own.probe_with(offset);
        }
        return;
    }
    let sighting = own.sequence.advance(start, end, other.window.maximum_bytes());
    if sighting == Sighting::Doubtful {
        return;
    }
    own.confirm(sighting, segment.time_ns);
    if young {
        own.may_begin(start);
    }
    if segment.payload_length > 0 || segment.flags & flag::FIN != 0 {
        let (marks, is_new) = own.occupy(segment, start, end, repeats, round_trip_ns);
        reading.marks |= marks;
        reading.payload_is_new = is_new;
    }
}

/// A packet with at most one byte, just below what was sent or acknowledged last: a keep-alive, or a probe where the
/// other side's window is zero; a byte just above into a zero window is a probe too.
#[inline]
fn probe(own: &Side, other: &Side, segment: &Segment<'_>, offset: i64) -> Option<u16> {
    if segment.payload_length > 1 || segment.flags & (flag::SYN | flag::FIN) != 0 {
        return None;
    }
    let highest = if own.coverage.started() { own.coverage.highest() } else { return None };
    let below = offset == highest - 1 || (segment.payload_length == 0 && offset + 1 == own.acknowledged);
    if below {
        return Some(if other.window.is_zero() { mark::ZERO_WINDOW_PROBE } else { mark::KEEP_ALIVE });
    }
    (segment.payload_length == 1 && offset == highest && other.window.is_zero()).then_some(mark::ZERO_WINDOW_PROBE)
}

#[inline]
pub(crate) fn read_acknowledgement(
    own: &mut Side,
    other: &mut Side,
    segment: &Segment<'_>,
    young: bool,
    repeats: bool,
    reading: &mut Reading,
) {
    let reset = segment.flags & flag::RST != 0;
    if !other.sequence.anchored() {
        if reset {
            return;
        }
        other.sequence.anchor(segment.acknowledgement);
    }
    let offset = other.sequence.offset(segment.acknowledgement);
    reading.acknowledgement_offset = offset;
    if reset {
        return;
    }
    let sighting = other.sequence.advance(offset, offset, own.window.maximum_bytes());
    if sighting == Sighting::Doubtful {
        return;
    }
    other.confirm(sighting, segment.time_ns);
    if young {
        other.may_begin(offset);
    }
    let plain = segment.payload_length == 0 && segment.flags & (flag::SYN | flag::FIN) == 0;
    let probing = mark::KEEP_ALIVE | mark::ZERO_WINDOW_PROBE;
    if offset == other.acknowledged && plain && !repeats && reading.marks & probing == 0 {
        let same_window = reading.window_bytes == own.window.latest_bytes();
        let outstanding = other.coverage.started() && other.coverage.highest() > offset;
        if outstanding && (same_window || segment.options.sack_count > 0) {
            reading.marks |= mark::DUPLICATE_ACK;
        } else if !same_window {
            reading.marks |= mark::WINDOW_UPDATE;
        }
    }
    let tsecr = segment.options.timestamps.map(|(_, tsecr)| tsecr);
    if let Some(round_trip_ns) = other.acknowledge(offset, segment.time_ns, tsecr) {
        reading.round_trip_ns = round_trip_ns;
    }
}

#[inline]
pub(crate) fn count_marks(own: &mut Side, segment: &Segment<'_>, marks: u16) {
    let counted = mark::RETRANSMISSION | mark::REORDERED | mark::DUPLICATE | mark::ZERO_WINDOW_PROBE;
    if marks & counted == 0 {
        return;
    }
    if marks & mark::DUPLICATE != 0 {
        own.duplicate_packets += 1;
    } else if marks & mark::RETRANSMISSION != 0 {
        own.retransmitted_packets += 1;
        own.retransmitted_bytes += u64::from(segment.payload_length);
    } else if marks & mark::REORDERED != 0 {
        own.reordered_packets += 1;
    }
    if marks & (mark::ZERO_WINDOW_PROBE | mark::DUPLICATE) == mark::ZERO_WINDOW_PROBE {
        own.zero_window_probes = own.zero_window_probes.saturating_add(1);
    }
}

pub(crate) fn note_close(own: &mut Side, segment: &Segment<'_>) {
    if segment.flags & flag::FIN != 0 && own.fin_time_ns == NEVER {
        own.fin_time_ns = segment.time_ns;
    }
    if segment.flags & flag::RST != 0 && own.reset_time_ns == NEVER {
        own.reset_time_ns = segment.time_ns;
    }
}

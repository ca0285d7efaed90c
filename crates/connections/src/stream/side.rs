//! One side of a connection: what it sent, and what the other side made of it.

use crate::mark;
use crate::stream::coverage::{Coverage, Novelty};
use crate::stream::opening::Opening;
use crate::stream::retransmission::{was_overtaken, RecentPackets, Repeat};
use crate::stream::round_trip::{Outstanding, RoundTrips};
use crate::stream::sequence::{Sequence, Sighting};
use crate::stream::window::Window;
use pepscope_wire::segment::{flag, Segment};
use pepscope_wire::PlainSegment;

/// Stands for a time that was not seen.
pub(crate) const NEVER: i64 = i64::MIN;
/// Stands for an offset that was not seen.
pub(crate) const NOWHERE: i64 = i64::MIN;

#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) sequence: Sequence,
    pub(crate) coverage: Coverage,
    /// Furthest acknowledgement by the other side; `NOWHERE` before the first.
    pub(crate) acknowledged: i64,
    /// First acknowledgement by the other side.
    first_acknowledged: i64,
    /// Where the stream begins, and whether that is known (a SYN or its acknowledgement) or only the lowest number
    /// of the first packets.
    pub(crate) origin: i64,
    pub(crate) origin_known: bool,
    outstanding: Outstanding,
    pub(crate) round_trips: RoundTrips,
    pub(crate) window: Window,
    pub(crate) opening: Opening,
    pub(crate) recent: RecentPackets,
    pub(crate) ttl: u8,
    timestamps_seen: bool,
    fin_offset: i64,
    /// Latest byte sent into a zero window; part of the stream only if it is acknowledged.
    probed: i64,
    pub(crate) packets: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) data_packets: u64,
    pub(crate) pure_acknowledgements: u64,
    pub(crate) options_truncated_packets: u64,
    pub(crate) retransmitted_packets: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) reordered_packets: u64,
    pub(crate) duplicate_packets: u64,
    pub(crate) zero_window_probes: u32,
    pub(crate) tunnel_identifier: u32,
    pub(crate) first_time_ns: i64,
    last_time_ns: i64,
    pub(crate) first_data_time_ns: i64,
    pub(crate) last_data_time_ns: i64,
    pub(crate) fin_time_ns: i64,
    pub(crate) reset_time_ns: i64,
}

impl Side {
    pub(crate) fn new() -> Self {
        Side {
            sequence: Sequence::default(),
            coverage: Coverage::default(),
            acknowledged: NOWHERE,
            first_acknowledged: NOWHERE,
            origin: 0,
            origin_known: false,
            outstanding: Outstanding::default(),
            round_trips: RoundTrips::default(),
            window: Window::default(),
            opening: Opening::default(),
            recent: RecentPackets::default(),
            ttl: 0,
            timestamps_seen: false,
            fin_offset: NOWHERE,
            probed: NOWHERE,
            packets: 0,
            payload_bytes: 0,
            data_packets: 0,
            pure_acknowledgements: 0,
            options_truncated_packets: 0,
            retransmitted_packets: 0,
            retransmitted_bytes: 0,
            reordered_packets: 0,
            duplicate_packets: 0,
            zero_window_probes: 0,
            tunnel_identifier: 0,
            first_time_ns: NEVER,
            last_time_ns: NEVER,
            first_data_time_ns: NEVER,
            last_data_time_ns: NEVER,
            fin_time_ns: NEVER,
            reset_time_ns: NEVER,
        }
    }

    /// Count a packet of this side, and say whether it is a copy of one of the last few.
    #[inline]
    pub(crate) fn count(&mut self, segment: &Segment<'_>) -> Repeat {
        if self.packets == 0 {
            self.first_time_ns = segment.time_ns;
            self.last_time_ns = segment.time_ns;
            self.ttl = segment.ttl;
            self.tunnel_identifier = segment.tunnel.identifier;
        }
        self.packets += 1;
        let since_previous_ns = segment.time_ns.saturating_sub(self.last_time_ns);
        self.last_time_ns = segment.time_ns;
        self.timestamps_seen |= segment.options.timestamps.is_some();
        if segment.payload_length > 0 {
            self.data_packets += 1;
            self.payload_bytes += u64::from(segment.payload_length);
            if self.first_data_time_ns == NEVER {
                self.first_data_time_ns = segment.time_ns;
            }
            self.last_data_time_ns = segment.time_ns;
        } else {
            let opens_or_ends = flag::SYN | flag::FIN | flag::RST;
            self.pure_acknowledgements += u64::from(segment.flags & (opens_or_ends | flag::ACK) == flag::ACK);
        }
        self.options_truncated_packets += u64::from(segment.options_truncated);
        self.recent.note(segment, since_previous_ns)
    }

    /// Count a packet of this side that is not its first one and is no copy.
    #[inline(always)]
    pub(crate) fn count_plain(&mut self, segment: &PlainSegment<'_>) {
        self.packets += 1;
        self.last_time_ns = segment.time_ns;
        self.timestamps_seen |= segment.timestamps.is_some();
        if segment.payload_length == 0 {
            self.pure_acknowledgements += 1;
            return;
        }
        self.data_packets += 1;
        self.payload_bytes += u64::from(segment.payload_length);
        if self.first_data_time_ns == NEVER {
            self.first_data_time_ns = segment.time_ns;
        }
        self.last_data_time_ns = segment.time_ns;
    }

    /// Data from `start` to `end` continue the stream.
    #[inline(always)]
    pub(crate) fn send_next(&mut self, start: i64, end: i64, segment: &PlainSegment<'_>) {
        self.coverage.continue_to(end);
        let tsval = segment.timestamps.map(|(tsval, _)| tsval);
        self.outstanding.sent(start, end, segment.time_ns, tsval, false);
    }

    /// No byte was sent into a zero window of which it is open whether the stream holds it.
    pub(crate) fn has_no_probe(&self) -> bool {
        self.probed == NOWHERE
    }

    /// All of its windows are scaled, also those captured before the SYNs that say so.
    pub(crate) fn scale_windows_by(&mut self, shift: u8) {
        self.window.scale_by(shift, self.packets - u64::from(self.opening.syn_packets));
    }

    /// Its FIN was seen.
    pub(crate) fn has_ended(&self) -> bool {
        self.fin_offset != NOWHERE
    }

    /// The stream is known to begin at `offset`.
    pub(crate) fn begin(&mut self, offset: i64) {
        self.origin = offset;
        self.origin_known = true;
        self.coverage.start(offset);
    }

    /// The number of this side's SYN, or, where only its answer was captured, of the byte before those it asked for.
    pub(crate) fn initial_sequence_number(&self) -> Option<u32> {
        let answered = self.origin_known.then(|| self.sequence.number(self.origin - 1));
        self.opening.initial_sequence_number().or(answered)
    }

    /// While the beginning is unknown, it is the lowest number of the first packets.
    #[inline]
    pub(crate) fn may_begin(&mut self, offset: i64) {
        if !self.origin_known {
            self.origin = self.origin.min(offset);
        }
    }

    /// The segment occupies `start` up to `end` of the stream (bytes, without SYN and FIN). Gives its marks, and whether
    /// it brought bytes that the capture had not seen.
    pub(crate) fn occupy(
        &mut self,
        segment: &Segment<'_>,
        start: i64,
        end: i64,
        repeats: bool,
        round_trip_ns: i64,
    ) -> (u16, bool) {
        if segment.flags & flag::FIN != 0 {
            if self.fin_offset == NOWHERE {
                self.fin_offset = end;
            } else if start == end {
                return (if repeats { mark::DUPLICATE } else { mark::RETRANSMISSION }, false);
            }
        }
        let tsval = segment.options.timestamps.map(|(tsval, _)| tsval);
        let before = self.coverage.highest();
        if start == end {
            let gap = self.coverage.started() && start > before;
            if gap {
                self.coverage.add(start, end, segment.time_ns, tsval, self.acknowledged);
            }
            return (if gap { mark::GAP_BEFORE } else { 0 }, false);
        }
        if self.origin_known && end <= self.origin {
            return (0, false); // of an earlier connection
        }
        match self.coverage.add(start, end, segment.time_ns, tsval, self.acknowledged) {
            Novelty::Next => {
                self.outstanding.sent(start, end, segment.time_ns, tsval, false);
                (0, true)
            }
            Novelty::Ahead => {
                self.outstanding.sent(start, end, segment.time_ns, tsval, false);
                (mark::GAP_BEFORE, true)
            }
            Novelty::Fills(hole) => {
                self.outstanding.filled(end);
                let overtaken = was_overtaken(&hole, segment.time_ns, tsval, round_trip_ns);
                (if overtaken { mark::REORDERED } else { mark::RETRANSMISSION }, true)
            }
            Novelty::Overlaps => {
                self.outstanding.sent_again(start, end, tsval);
                self.outstanding.filled(end);
                if end > before {
                    self.outstanding.sent(before, end, segment.time_ns, tsval, true);
                }
                (mark::RETRANSMISSION, true)
            }
            Novelty::Repeated if repeats => (mark::DUPLICATE, false),
            Novelty::Repeated => {
                self.outstanding.sent_again(start, end, tsval);
                (mark::RETRANSMISSION, false)
            }
        }
    }

    /// One new byte at `offset` went into a zero window.
    pub(crate) fn probe_with(&mut self, offset: i64) {
        self.probed = offset;
    }

    /// Take an earlier doubtful packet for real.
    pub(crate) fn confirm(&mut self, sighting: Sighting, time_ns: i64) {
        if let Sighting::Confirms { start, end } = sighting {
            if start < end {
                self.coverage.add(start, end, time_ns, None, self.acknowledged);
            }
        }
    }

    /// The other side acknowledged everything up to `offset`. Gives the round trip that this completes, if any.
    #[inline]
    pub(crate) fn acknowledge(&mut self, offset: i64, time_ns: i64, tsecr: Option<u32>) -> Option<i64> {
        if offset <= self.acknowledged {
            return None;
        }
        if self.acknowledged == NOWHERE {
            self.first_acknowledged = offset;
        }
        self.acknowledged = offset;
        if self.probed != NOWHERE && offset > self.probed {
            self.coverage.add(self.probed, self.probed + 1, time_ns, None, offset);
            self.probed = NOWHERE;
        }
        let sent_ns = self.outstanding.acknowledged(offset, tsecr)?;
        let round_trip_ns = time_ns.saturating_sub(sent_ns);
        if round_trip_ns < 0 {
            return None; // the capture's clock was set back
        }
        self.round_trips.add(round_trip_ns);
        Some(round_trip_ns)
    }

    /// Bytes that the other side acknowledged and this capture does not hold. Where the SYN is missing, what was
    /// acknowledged before the first packet is not asked for.
    pub(crate) fn missed_bytes(&self) -> u64 {
        if self.acknowledged == NOWHERE {
            return 0;
        }
        let begin = if self.origin_known { self.origin } else { self.first_acknowledged.max(self.origin) };
        let (first, highest) =
            if self.coverage.started() { (self.coverage.first(), self.coverage.highest()) } else { (begin, begin) };
        let before = (first.min(self.acknowledged) - begin).max(0);
        let after = (self.acknowledged - highest.max(begin)).max(0);
        // One more than the data is the acknowledgement of a FIN, captured or not.
        let after = if self.fin_offset != NOWHERE || after == 1 { (after - 1).max(0) } else { after };
        self.coverage.missed_bytes(self.acknowledged) + before as u64 + after as u64
    }

    /// Highest offset that captured data reached, from the stream's beginning.
    pub(crate) fn stream_bytes(&self) -> u64 {
        if self.coverage.started() {
            (self.coverage.highest() - self.origin).max(0) as u64
        } else {
            0
        }
    }

    /// Timestamps were offered in the SYN, or are in use where the SYN, or part of its options, was not captured.
    pub(crate) fn timestamps(&self) -> bool {
        self.opening.timestamps || (self.timestamps_seen && !self.opening.options_captured())
    }

    /// Everything sent has been acknowledged, the FIN too.
    pub(crate) fn finished(&self) -> bool {
        self.fin_offset != NOWHERE && self.acknowledged > self.fin_offset
    }

    /// Give back what only a live connection needs.
    pub(crate) fn release(&mut self) {
        self.outstanding.release();
        self.coverage.shrink();
    }
}

//! Segments that leave.

use pepscope_path::Nanoseconds;

use super::header_prediction::Transmission;
use super::Connection;
use crate::packets::segment::{Ecn, Flags, Segment};
use crate::packets::sequence::number;
use crate::sending::sender::Outgoing;
use crate::settings::{EcnMode, Stack};

/// Blocks that fit the option space with and without timestamps (RFC 2018, section 3).
const SACK_BLOCKS: usize = 4;
const SACK_BLOCKS_BESIDE_TIMESTAMPS: usize = 3;

impl Connection {
    /// The next segment that leaves at `now`.
    ///
    /// SACK blocks travel in pure ACKs only: an ACK for out-of-order data goes ahead of data that waits, so that data
    /// segments need no room for them.
    #[inline]
    pub fn poll_transmit(&mut self, now: Nanoseconds) -> Option<Segment> {
        if self.predicts() {
            match self.predict_transmission(now) {
                Transmission::Segment(segment) => return Some(segment),
                Transmission::Nothing => return None,
                Transmission::Unclear => {}
            }
        }
        self.poll_on_slow_path(now)
    }

    fn poll_on_slow_path(&mut self, now: Nanoseconds) -> Option<Segment> {
        if !self.state.is_synchronised() {
            return self.poll_unsynchronised(now);
        }
        if self.receiver.is_due_alone() {
            return Some(self.pure_acknowledgement(now));
        }
        if self.sender.may_transmit() && self.state.sends_data() {
            let mut outgoing = self.sender.poll_transmit(now, &mut self.statistics);
            if outgoing.is_none() && self.sender.release_fin() {
                outgoing = self.sender.poll_transmit(now, &mut self.statistics);
            }
            if let Some(outgoing) = outgoing {
                return Some(self.data_segment(now, &outgoing));
            }
            if let Some(probe) = self.sender.poll_probe(now, &mut self.statistics) {
                return Some(self.data_segment(now, &probe));
            }
            self.sender.rest();
        }
        if self.receiver.is_due() {
            return Some(self.pure_acknowledgement(now));
        }
        None
    }

    /// RST, SYN or SYN-ACK.
    #[cold]
    fn poll_unsynchronised(&mut self, now: Nanoseconds) -> Option<Segment> {
        let mut segment = match self.reset_due.take() {
            Some(reset) => reset,
            None if self.handshake.is_due => self.handshake_segment(now),
            None => return None,
        };
        self.statistics.segments_sent += 1;
        // Linux has no state yet when it sends a SYN-ACK, and none of its packets may be fragmented.
        let is_stateless =
            self.settings.stack == Stack::Linux && segment.flags.has(Flags::SYN) && segment.flags.has(Flags::ACK);
        segment.ip_identification = if is_stateless { 0 } else { self.next_identification() };
        Some(segment)
    }

    #[inline]
    fn data_segment(&mut self, now: Nanoseconds, outgoing: &Outgoing) -> Segment {
        self.statistics.data_segments_sent += 1;
        self.statistics.payload_bytes_sent += u64::from(outgoing.payload_bytes);
        let mut flags = Flags::ACK;
        if outgoing.has_push {
            flags |= Flags::PSH;
        }
        if outgoing.has_fin {
            flags |= Flags::FIN;
        }
        if outgoing.announces_reduction {
            flags |= Flags::CWR;
        }
        // Retransmissions and probes must not be marked (RFC 3168, sections 6.1.5 and 6.1.6).
        let is_capable = outgoing.is_new && outgoing.payload_bytes > 0 && self.sender.ecn != EcnMode::Off;
        self.receiver.note_data_sent(now);
        let mut segment = self.acknowledging_segment(now, flags, number(outgoing.start, self.sender.initial));
        segment.payload_bytes = outgoing.payload_bytes;
        segment.content = outgoing.content;
        segment.content_offset = outgoing.content_offset;
        if is_capable {
            segment.ecn = Ecn::Capable;
        }
        segment
    }

    #[inline]
    fn pure_acknowledgement(&mut self, now: Nanoseconds) -> Segment {
        let mut segment = self.acknowledging_segment(now, Flags::ACK, self.sender.next_number());
        if self.receiver.has_blocks() {
            let limit = if self.timestamps.is_active { SACK_BLOCKS_BESIDE_TIMESTAMPS } else { SACK_BLOCKS };
            segment.sack = self.receiver.sack_blocks(limit);
        }
        segment
    }

    #[inline(always)]
    pub(super) fn acknowledging_segment(&mut self, now: Nanoseconds, flags: Flags, sequence: u32) -> Segment {
        self.statistics.segments_sent += 1;
        Segment { sequence, ip_identification: self.next_identification(), ..self.acknowledging_header(now, flags) }
    }

    /// What all segments have in common that leave one after the other at `now`.
    #[inline(always)]
    pub(super) fn acknowledging_header(&mut self, now: Nanoseconds, mut flags: Flags) -> Segment {
        self.receiver.acknowledged();
        self.last_acknowledgement = self.receiver.next();
        if self.receiver.echo() {
            flags |= Flags::ECE;
        }
        Segment {
            flow: self.flow,
            user: self.user,
            flags,
            acknowledgement: self.receiver.acknowledgement(),
            window: self.receiver.offer_window(self.receiver.window_shift),
            timestamps: if self.timestamps.is_active { Some(self.timestamps.option(now)) } else { None },
            time_to_live: self.settings.time_to_live,
            version_6: self.settings.version_6,
            ..Segment::default()
        }
    }

    pub(super) fn blank_segment(&self) -> Segment {
        Segment {
            flow: self.flow,
            user: self.user,
            time_to_live: self.settings.time_to_live,
            version_6: self.settings.version_6,
            ..Segment::default()
        }
    }

    #[inline(always)]
    pub(super) fn next_identification(&mut self) -> u16 {
        let identification = self.ip_identification;
        self.ip_identification = identification.wrapping_add(self.identification_step);
        identification
    }

    /// The RST of an abort.
    pub(super) fn abort_segment(&mut self, now: Nanoseconds) -> Segment {
        Segment {
            flags: Flags::RST | Flags::ACK,
            sequence: self.sender.next_number(),
            acknowledgement: self.receiver.acknowledgement(),
            timestamps: self.timestamps.is_active.then(|| self.timestamps.option(now)),
            ..self.blank_segment()
        }
    }

    /// The RST that answers a segment for which there is no connection (RFC 9293, section 3.10.7.1).
    pub(super) fn refusal(&self, segment: &Segment) -> Option<Segment> {
        if segment.flags.has(Flags::RST) {
            return None;
        }
        Some(if segment.flags.has(Flags::ACK) {
            Segment { flags: Flags::RST, sequence: segment.acknowledgement, ..self.blank_segment() }
        } else {
            Segment {
                flags: Flags::RST | Flags::ACK,
                acknowledgement: segment.sequence.wrapping_add(segment.sequence_length()),
                ..self.blank_segment()
            }
        })
    }
}

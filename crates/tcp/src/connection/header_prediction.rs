//! Header prediction (Jacobson, "4BSD header prediction", 1990): the fast path of a connection.
//!
//! Nearly every segment is either the next data of a transfer or the cumulative ACK for it. A few comparisons recognise
//! both, and short functions do for them what the general code would do. Every other segment goes to the general code.

use pepscope_path::Nanoseconds;

use super::Connection;
use crate::packets::packet::Packet;
use crate::packets::packet_sink::PacketSink;
use crate::packets::run::Run;
use crate::packets::segment::{Ecn, Flags, Segment};
use crate::packets::sequence::number;
use crate::sending::sender::Burst;
use crate::settings::EcnMode;
use crate::state::State;

impl Connection {
    /// Takes a predicted segment; does nothing with any other. With `reads`, its payload counts as read.
    #[inline(always)]
    pub(super) fn take_predicted(&mut self, now: Nanoseconds, segment: &Segment, reads: bool) -> Taken {
        if segment.payload_bytes > 0 {
            self.take_predicted_data(now, segment, reads).map_or(Taken::Not, Taken::Data)
        } else {
            let writable = self.take_predicted_acknowledgement(now, segment);
            writable.map_or(Taken::Not, |writable| Taken::Acknowledgement { writable })
        }
    }

    /// Whether a segment begins where the next one is expected and has nothing special about it.
    #[inline(always)]
    pub(super) fn is_usual(&self, now: Nanoseconds, segment: &Segment) -> bool {
        self.state == State::Established
            && segment.sequence == self.receiver.acknowledgement()
            && segment.flags.is_ack_alone()
            && segment.sack.is_empty()
            && segment.ecn != Ecn::Congestion
            && !(self.timestamps.is_active
                && segment.timestamps.is_some_and(|timestamps| self.timestamps.is_stale(now, timestamps)))
    }

    /// Notes the timestamps of a segment that was taken.
    #[inline(always)]
    pub(super) fn note_timestamps(&mut self, now: Nanoseconds, segment: &Segment, start: u64) {
        if let (true, Some(timestamps)) = (self.timestamps.is_active, segment.timestamps) {
            let end = start + u64::from(segment.payload_bytes);
            if start <= self.last_acknowledgement && end >= self.last_acknowledgement {
                self.timestamps.note(now, timestamps);
            }
        }
    }

    #[inline(always)]
    fn take_predicted_data(&mut self, now: Nanoseconds, segment: &Segment, reads: bool) -> Option<Run> {
        let start = self.receiver.next();
        let is_predicted = self.is_usual(now, segment)
            && self.sender.is_repeated(segment.acknowledgement)
            && self.receiver.predicts(start + u64::from(segment.payload_bytes));
        if !is_predicted {
            return None;
        }
        self.sender.predict_repeated(segment.window, start);
        let run = Run {
            content: segment.content,
            content_offset: segment.content_offset,
            bytes: u64::from(segment.payload_bytes),
        };
        self.receiver.take_predicted(now, run, reads);
        self.note_timestamps(now, segment, start);
        Some(run)
    }

    #[inline(always)]
    fn take_predicted_acknowledgement(&mut self, now: Nanoseconds, segment: &Segment) -> Option<bool> {
        if !self.is_usual(now, segment) {
            return None;
        }
        let start = self.receiver.next();
        let writable = self.sender.predict_acknowledgement(now, segment, start)?;
        self.note_timestamps(now, segment, start);
        Some(writable)
    }

    /// [`Connection::handle_segment`] for a predicted segment with payload, which counts as read, without an event.
    /// Does nothing if events or bytes to be read wait, or with any other segment.
    #[inline(always)]
    pub(crate) fn accept_data(&mut self, now: Nanoseconds, segment: &Segment) -> Option<Run> {
        debug_assert!(self.predicts());
        if !self.events.is_empty() || self.readable() > 0 {
            return None;
        }
        let run = self.take_predicted_data(now, segment, true)?;
        self.statistics.segments_received += 1;
        Some(run)
    }

    /// [`Connection::handle_segment`] for a predicted ACK where no event waits. Returns, instead of an event, whether
    /// the application waits for room in the send buffer and there is room again.
    #[inline(always)]
    pub(crate) fn accept_acknowledgement(&mut self, now: Nanoseconds, segment: &Segment) -> Option<bool> {
        debug_assert!(self.predicts());
        if !self.events.is_empty() {
            return None;
        }
        let writable = self.take_predicted_acknowledgement(now, segment)?;
        self.statistics.segments_received += 1;
        Some(writable)
    }

    /// Sends predicted segments at `now` to `sink`, and returns whether these are all segments to send. `is_orderly`: a
    /// predicted ACK has just arrived.
    #[inline(always)]
    pub(crate) fn transmit_predicted(
        &mut self,
        now: Nanoseconds,
        is_orderly: bool,
        sink: &mut impl PacketSink,
    ) -> bool {
        if self.state != State::Established || self.receiver.is_due_alone() {
            return false;
        }
        if self.sender.may_transmit() {
            if self.receiver.echoes_once() {
                return false;
            }
            let Some(burst) = self.sender.predict_burst(now, usize::MAX, is_orderly) else { return false };
            if burst.segments > 0 {
                self.transmit_burst(now, &burst, sink);
            }
            if !burst.is_all {
                return false;
            }
        }
        self.acknowledge_predicted(now, sink)
    }

    /// Whether anything but an ACK may leave.
    #[inline(always)]
    pub(crate) fn may_send_data(&self) -> bool {
        self.sender.may_transmit()
    }

    /// Sends an ACK to `sink` if one is due. Returns `false` and does nothing if the ACK is not a predicted one.
    #[inline(always)]
    pub(crate) fn acknowledge_predicted(&mut self, now: Nanoseconds, sink: &mut impl PacketSink) -> bool {
        if self.receiver.is_due() {
            if self.receiver.is_due_alone() || self.receiver.has_blocks() {
                return false;
            }
            let acknowledgement = self.acknowledging_segment(now, Flags::ACK, self.sender.next_number());
            let bytes = acknowledgement.length_bytes();
            sink.send_stamped(bytes, &Packet::Tcp(Segment { sent_ns: now, ..acknowledgement }));
        }
        true
    }

    /// When an acknowledgement is due.
    #[inline(always)]
    pub(crate) fn acknowledgement_timeout(&self) -> Nanoseconds {
        self.receiver.deadline()
    }

    /// [`Connection::poll_timeout`] after a predicted segment was taken and predicted ones were sent.
    #[inline(always)]
    pub(crate) fn predicted_timeout(&self) -> Nanoseconds {
        self.sender.poll_timeout().min(self.receiver.deadline())
    }

    #[inline(always)]
    fn transmit_burst(&mut self, now: Nanoseconds, burst: &Burst, sink: &mut impl PacketSink) {
        let first = Segment {
            sequence: number(burst.start, self.sender.initial),
            content_offset: burst.content_offset,
            ip_identification: self.next_identification(),
            sent_ns: now,
            ..self.predicted_header(now, burst)
        };
        let bytes = first.length_bytes();
        let mut packet = Packet::Tcp(first);
        sink.send_stamped(bytes, &packet);
        for _ in 1..burst.segments {
            if let Packet::Tcp(segment) = &mut packet {
                segment.sequence = segment.sequence.wrapping_add(u32::from(segment.payload_bytes));
                segment.content_offset = segment.content_offset.wrapping_add(u64::from(segment.payload_bytes));
                segment.ip_identification = self.next_identification();
            }
            sink.send_stamped(bytes, &packet);
        }
    }

    /// What the segments of a burst have in common.
    #[inline(always)]
    fn predicted_header(&mut self, now: Nanoseconds, burst: &Burst) -> Segment {
        let payload_bytes = self.sender.segment_bytes as u16;
        self.statistics.segments_sent += burst.segments as u64;
        self.statistics.data_segments_sent += burst.segments as u64;
        self.statistics.payload_bytes_sent += burst.segments as u64 * u64::from(payload_bytes);
        let is_capable = self.sender.ecn != EcnMode::Off;
        Segment {
            payload_bytes,
            content: burst.content,
            ecn: if is_capable { Ecn::Capable } else { Ecn::NotCapable },
            ..self.acknowledging_header(now, Flags::ACK)
        }
    }

    /// The next segment that leaves an established connection where that is new data without anything special, or an
    /// ACK without SACK blocks.
    #[inline(always)]
    pub(super) fn predict_transmission(&mut self, now: Nanoseconds) -> Transmission {
        if self.state != State::Established || self.receiver.is_due_alone() {
            return Transmission::Unclear;
        }
        if self.sender.may_transmit() {
            match self.sender.predict_burst(now, 1, false) {
                Some(burst) if burst.segments > 0 => {
                    let ip_identification = self.next_identification();
                    return Transmission::Segment(Segment {
                        sequence: number(burst.start, self.sender.initial),
                        content_offset: burst.content_offset,
                        ip_identification,
                        ..self.predicted_header(now, &burst)
                    });
                }
                Some(burst) if burst.is_all => {}
                _ => return Transmission::Unclear,
            }
        }
        if !self.receiver.is_due() {
            return Transmission::Nothing;
        }
        if self.receiver.has_blocks() {
            return Transmission::Unclear;
        }
        Transmission::Segment(self.acknowledging_segment(now, Flags::ACK, self.sender.next_number()))
    }
}

/// What header prediction did with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is not a predicted one.
    Not,
    Data(Run),
    Acknowledgement {
        /// The application waits for room in the send buffer, and there is room again.
        writable: bool,
    },
}

/// What leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transmission {
    Segment(Segment),
    Nothing,
    /// The general code decides.
    Unclear,
}

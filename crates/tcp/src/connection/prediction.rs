//! Header prediction (Jacobson, "4BSD header prediction", 1990): nearly every segment is either the next data of a
//! transfer one way or the ACK for it. Both are recognised by a few comparisons and dealt with by what is left of the
//! general code where nothing else can be the case. Everything else is left to the general code, which would do the same
//! with these.

use pepscope_path::Nanoseconds;

use super::Connection;
use crate::outlet::Outlet;
use crate::packet::Packet;
use crate::run::Run;
use crate::segment::{ContentId, Ecn, Flags, Segment};
use crate::sender::Prediction;
use crate::sequence::number;
use crate::settings::EcnMode;
use crate::state::State;

impl Connection {
    /// Takes a segment that is as predicted, and leaves what it brings to be read or not; nothing is done with others.
    #[inline(always)]
    pub(super) fn take_predicted(&mut self, now: Nanoseconds, segment: &Segment, reads: bool) -> Taken {
        let is_usual = self.state == State::Established
            && segment.sequence == self.receiver.acknowledgement()
            && segment.flags.is_ack_alone()
            && segment.sack.is_empty()
            && segment.ecn != Ecn::Congestion;
        if !is_usual {
            return Taken::Not;
        }
        let timestamps = if self.timestamps.is_active { segment.timestamps } else { None };
        if timestamps.is_some_and(|timestamps| self.timestamps.is_stale(now, timestamps)) {
            return Taken::Not;
        }
        let start = self.receiver.next();
        let end = start + u64::from(segment.payload_bytes);
        let taken = if segment.payload_bytes > 0 {
            if !self.sender.is_repeated(segment.acknowledgement) || !self.receiver.predicts(end) {
                return Taken::Not;
            }
            self.sender.predict_repeated(segment.window, start);
            let run = Run {
                content: segment.content,
                content_offset: segment.content_offset,
                bytes: u64::from(segment.payload_bytes),
            };
            self.receiver.take_predicted(now, run, reads);
            Taken::Data(run)
        } else {
            match self.sender.predict_acknowledgement(now, segment, start) {
                None => return Taken::Not,
                Some(writable) => Taken::Acknowledgement { writable },
            }
        };
        if let Some(timestamps) = timestamps {
            if start <= self.last_acknowledgement && end >= self.last_acknowledgement {
                self.timestamps.note(now, timestamps);
            }
        }
        taken
    }

    /// [`Connection::handle_segment`] for a segment that is as predicted: its payload is read at once, and no event is
    /// left. Nothing is done if `can_read` is false and there is payload, if events wait or bytes wait to be read, or
    /// with any other segment.
    #[inline(always)]
    pub(crate) fn accept(&mut self, now: Nanoseconds, segment: &Segment, can_read: bool) -> Taken {
        let is_quiet = self.events.is_empty() && (segment.payload_bytes == 0 || can_read && self.readable() == 0);
        if !is_quiet || !self.predicts() {
            return Taken::Not;
        }
        let taken = self.take_predicted(now, segment, true);
        self.statistics.segments_received += u64::from(taken != Taken::Not);
        taken
    }

    /// Hands what leaves at `now` to `outlet` as far as it is as predicted; whether that is all.
    #[inline(always)]
    pub(crate) fn transmit_predicted(&mut self, now: Nanoseconds, outlet: &mut impl Outlet) -> bool {
        if self.state != State::Established || self.receiver.is_due_alone() {
            return false;
        }
        if self.sender.may_transmit() {
            let Some(mut burst) = self.sender.predict_burst() else { return false };
            loop {
                match self.sender.predict_segment(now, &mut burst) {
                    Prediction::Segment { start, content, content_offset } => {
                        outlet.send(Packet::Tcp(self.predicted_segment(now, start, content, content_offset)));
                    }
                    Prediction::Nothing => break,
                    Prediction::Unclear => return false,
                }
            }
        }
        if self.receiver.is_due() {
            if self.receiver.has_blocks() {
                return false;
            }
            outlet.send(Packet::Tcp(self.acknowledging_segment(now, Flags::ACK, self.sender.next_number())));
        }
        true
    }

    /// [`Connection::poll_timeout`] where the last two calls took and sent what was predicted.
    #[inline(always)]
    pub(crate) fn predicted_timeout(&self) -> Nanoseconds {
        self.sender.poll_timeout().min(self.receiver.deadline())
    }

    /// The next segment that leaves an established connection where that is new data without anything special, or an ACK
    /// without SACK blocks.
    #[inline(always)]
    pub(super) fn predict_transmission(&mut self, now: Nanoseconds) -> Transmission {
        if self.state != State::Established || self.receiver.is_due_alone() {
            return Transmission::Unclear;
        }
        if self.sender.may_transmit() {
            let Some(mut burst) = self.sender.predict_burst() else { return Transmission::Unclear };
            match self.sender.predict_segment(now, &mut burst) {
                Prediction::Segment { start, content, content_offset } => {
                    return Transmission::Segment(self.predicted_segment(now, start, content, content_offset));
                }
                Prediction::Nothing => {}
                Prediction::Unclear => return Transmission::Unclear,
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

    #[inline(always)]
    fn predicted_segment(&mut self, now: Nanoseconds, start: u64, content: ContentId, content_offset: u64) -> Segment {
        let payload_bytes = self.sender.segment_bytes as u16;
        self.statistics.data_segments_sent += 1;
        self.statistics.payload_bytes_sent += u64::from(payload_bytes);
        let is_capable = self.sender.ecn != EcnMode::Off;
        Segment {
            payload_bytes,
            content,
            content_offset,
            ecn: if is_capable { Ecn::Capable } else { Ecn::NotCapable },
            ..self.acknowledging_segment(now, Flags::ACK, number(start, self.sender.initial))
        }
    }
}

/// What was done with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing yet.
    Not,
    Data(Run),
    Acknowledgement {
        /// The application waits for room and has some.
        writable: bool,
    },
}

/// What leaves now, as far as that can be told easily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transmission {
    Segment(Segment),
    Nothing,
    /// The general code has to say.
    Unclear,
}

//! Header prediction for the connections of kernels, whose windows, delayed ACKs and bursts follow rules of their own.
//!
//! As [`super::header_prediction`] has it: next data in order and cumulative ACKs are recognised, everything else goes to
//! the general code.

use pepscope_path::Nanoseconds;

use super::Connection;
use crate::packets::packet::Packet;
use crate::packets::packet_sink::PacketSink;
use crate::packets::segment::{Ecn, Flags, Segment};
use crate::packets::sequence::number;
use crate::receiving::receiver::SenderTimes;
use crate::sending::sender::KernelBurst;
use crate::settings::{EcnMode, Stack};
use crate::state::{Event, State};

impl Connection {
    #[inline(always)]
    pub(crate) fn predicts_as_kernel(&self) -> bool {
        self.settings.header_prediction && self.settings.stack != Stack::Ideal
    }

    /// [`Connection::handle_segment`] for a predicted segment; `false` and nothing with any other.
    #[inline(always)]
    pub(crate) fn accept_as_kernel(&mut self, now: Nanoseconds, segment: &Segment) -> bool {
        if !self.predicts_as_kernel() || !self.is_usual(now, segment) {
            return false;
        }
        let start = self.receiver.next();
        if segment.payload_bytes > 0 {
            let is_predicted = self.receiver.predicts(start + u64::from(segment.payload_bytes))
                && self.sender.predict_repeated_as_kernel(segment, start);
            if is_predicted {
                self.take_data_as_kernel(now, segment, start);
            }
            return is_predicted;
        }
        let Some(writable) = self.sender.predict_acknowledgement_as_kernel(now, segment, start) else { return false };
        self.note_timestamps(now, segment, start);
        self.statistics.segments_received += 1;
        if writable {
            self.events.push(Event::Writable);
        }
        true
    }

    #[inline(always)]
    fn take_data_as_kernel(&mut self, now: Nanoseconds, segment: &Segment, start: u64) {
        self.statistics.segments_received += 1;
        self.note_timestamps(now, segment, start);
        let (clock, timer) = (&mut self.timestamps, &self.sender.timer);
        let round_trip = segment.timestamps.and_then(|timestamps| clock.round_trip_time(now, timestamps));
        self.receiver.note_sender(
            now,
            || round_trip,
            || SenderTimes { smoothed_round_trip: timer.smoothed(), timeout: timer.timeout() },
        );
        self.receiver.take_predicted_as_kernel(now, segment);
        self.events.push(Event::Readable);
    }

    /// Sends what there is to send at `now` to `sink`. Returns `false` where the general code has to go on.
    #[inline(always)]
    pub(crate) fn transmit_as_kernel(&mut self, now: Nanoseconds, sink: &mut impl PacketSink) -> bool {
        if self.state != State::Established || self.receiver.is_due_alone() || !self.predicts_as_kernel() {
            return false;
        }
        while self.sender.may_transmit() {
            if self.receiver.echoes_once() {
                return false;
            }
            let Some(burst) = self.sender.predict_kernel_burst(now) else { return false };
            if burst.segments > 0 {
                self.transmit_kernel_burst(now, &burst, sink);
            }
        }
        self.acknowledge_predicted(now, sink)
    }

    #[inline(always)]
    fn transmit_kernel_burst(&mut self, now: Nanoseconds, burst: &KernelBurst, sink: &mut impl PacketSink) {
        let payload_bytes = self.sender.segment_bytes as u16;
        self.statistics.segments_sent += burst.segments as u64;
        self.statistics.data_segments_sent += burst.segments as u64;
        self.statistics.payload_bytes_sent += burst.segments as u64 * u64::from(payload_bytes);
        self.receiver.note_data_sent(now);
        let mut start = burst.start;
        let mut packet = Packet::Tcp(Segment {
            sequence: number(start, self.sender.initial),
            payload_bytes,
            content: burst.content,
            content_offset: burst.content_offset,
            ecn: if self.sender.ecn == EcnMode::Off { Ecn::NotCapable } else { Ecn::Capable },
            sent_ns: now,
            ..self.acknowledging_header(now, Flags::ACK)
        });
        for _ in 0..burst.segments {
            let end = start + u64::from(payload_bytes);
            let Packet::Tcp(segment) = &mut packet else { return };
            segment.ip_identification = self.next_identification();
            if self.sender.pushes(start, end) {
                segment.flags |= Flags::PSH;
            }
            let bytes = segment.length_bytes();
            sink.send_stamped(bytes, &packet);
            let Packet::Tcp(segment) = &mut packet else { return };
            segment.flags = segment.flags.without_push();
            segment.sequence = segment.sequence.wrapping_add(u32::from(payload_bytes));
            segment.content_offset = segment.content_offset.wrapping_add(u64::from(payload_bytes));
            start = end;
        }
    }
}

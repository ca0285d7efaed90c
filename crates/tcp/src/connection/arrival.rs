//! Segments that arrive.

use pepscope_path::{Nanoseconds, NEVER};

use super::header_prediction::Taken;
use super::Connection;
use crate::packets::segment::{Flags, Segment};
use crate::packets::sequence::position;
use crate::receiving::receiver::SenderTimes;
use crate::sending::sender::AckOutcome;
use crate::settings::Stack;
use crate::state::{Event, State};

impl Connection {
    /// Takes a segment of the peer.
    #[inline]
    pub fn handle_segment(&mut self, now: Nanoseconds, segment: &Segment) {
        self.statistics.segments_received += 1;
        let taken = if self.predicts() { self.take_predicted(now, segment, false) } else { Taken::Not };
        match taken {
            Taken::Not => self.handle_on_slow_path(now, segment),
            Taken::Data(_) => self.events.push(Event::Readable),
            Taken::Acknowledgement { writable: true } => self.events.push(Event::Writable),
            Taken::Acknowledgement { writable: false } => {}
        }
    }

    /// [`Connection::handle_segment`] for a segment that header prediction did not take. Returns whether the application
    /// has nothing to do about it.
    pub(crate) fn handle_mispredicted(&mut self, now: Nanoseconds, segment: &Segment) -> bool {
        self.statistics.segments_received += 1;
        self.handle_on_slow_path(now, segment);
        self.state == State::Established && self.events.is_empty() && self.readable() == 0
    }

    fn handle_on_slow_path(&mut self, now: Nanoseconds, segment: &Segment) {
        match self.state {
            State::Closed => self.reset_due = self.refusal(segment),
            State::Listen => self.handle_listening(now, segment),
            State::SynSent => self.handle_syn_sent(now, segment),
            _ => self.handle_synchronised(now, segment),
        }
    }

    /// RFC 9293, section 3.10.7.4, in its order: sequence, RST, SYN, ACK, payload, FIN.
    #[inline]
    fn handle_synchronised(&mut self, now: Nanoseconds, segment: &Segment) {
        let start = self.receiver.position(segment.sequence);
        let end = start + u64::from(segment.sequence_length());
        let is_reset = segment.flags.has(Flags::RST);
        if let (true, Some(timestamps)) = (self.timestamps.is_active, segment.timestamps) {
            if !is_reset && self.timestamps.is_stale(now, timestamps) {
                self.statistics.stale_timestamps += 1;
                if self.settings.stack == Stack::Linux && segment.payload_bytes > 0 && end <= self.receiver.next() {
                    self.receiver.refuse_duplicate(start, end, true, &mut self.statistics);
                } else {
                    self.receiver.demand_acknowledgement();
                }
                return;
            }
            // From a segment that fits what was acknowledged, so that delayed ACKs are in the sample (RFC 7323, 4.3).
            if start <= self.last_acknowledgement && end >= self.last_acknowledgement {
                self.timestamps.note(now, timestamps);
            }
        }
        if is_reset {
            self.handle_reset(start);
            return;
        }
        let is_acceptable = self.receiver.accepts(start, end);
        if !is_acceptable && !self.refuse(segment, start, end) {
            return;
        }
        if segment.flags.has(Flags::SYN) && start > 0 {
            self.receiver.demand_acknowledgement(); // challenge (RFC 5961, section 4.2)
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        if self.state == State::SynReceived {
            if position(segment.acknowledgement, self.sender.initial, 1) != 1 {
                self.reset_due = self.refusal(segment);
                return;
            }
            self.establish(now);
        }
        match self.sender.acknowledge(now, segment, start, &mut self.timestamps, &mut self.statistics) {
            AckOutcome::NeverSent => {
                self.receiver.demand_acknowledgement();
                return;
            }
            AckOutcome::Accepted { writable: true } => self.events.push(Event::Writable),
            AckOutcome::Accepted { writable: false } | AckOutcome::Stale => {}
        }
        if self.sender.is_fin_acknowledged() {
            self.handle_fin_acknowledged(now);
        }
        if is_acceptable && end > start {
            self.receiver.note_marks(segment, &mut self.statistics);
            let is_open = self.state == State::Established;
            let (clock, timer) = (&mut self.timestamps, &self.sender.timer);
            self.receiver.note_sender(
                now,
                || segment.timestamps.and_then(|timestamps| clock.round_trip_time(now, timestamps)),
                || SenderTimes { smoothed_round_trip: timer.smoothed(), timeout: timer.timeout() },
            );
            let received = self.receiver.take(now, start, segment, is_open, &mut self.statistics);
            if received.readable {
                self.events.push(Event::Readable);
            }
            if received.finished {
                self.handle_fin(now);
            }
        }
    }

    /// Answers a segment outside the window; whether its acknowledgement may still be used.
    fn refuse(&mut self, segment: &Segment, start: u64, end: u64) -> bool {
        let next = self.receiver.next();
        if segment.flags.has(Flags::SYN) && self.state == State::SynReceived {
            if !segment.flags.has(Flags::ACK) {
                self.handshake.repeat();
                return false;
            }
            return true; // the SYN-ACK of a simultaneous opening
        }
        if start > next {
            self.statistics.outside_window += 1;
            self.receiver.demand_acknowledgement();
            return false;
        }
        // Old data is acknowledged again; a pure ACK that was overtaken is not, or two ends would answer each other.
        // One byte before the next is how keep-alives and some window probes ask for an answer.
        if end > start {
            self.receiver.refuse_duplicate(start, end, segment.payload_bytes > 0, &mut self.statistics);
        } else if start + 1 == next {
            self.receiver.demand_acknowledgement();
        }
        true
    }

    /// RST counts only exactly where the next segment would begin (RFC 5961, section 3.2).
    fn handle_reset(&mut self, start: u64) {
        if start == self.receiver.next() {
            let was_over = self.state == State::TimeWait;
            self.close_down();
            if !was_over {
                self.events.push(Event::Reset);
            }
        } else if self.receiver.accepts(start, start) {
            self.receiver.demand_acknowledgement();
        }
    }

    fn handle_fin_acknowledged(&mut self, now: Nanoseconds) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.wait_out(now),
            State::LastAck => {
                self.close_down();
                self.events.push(Event::Closed);
            }
            _ => {}
        }
    }

    fn handle_fin(&mut self, now: Nanoseconds) {
        self.events.push(Event::PeerFinished);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait_out(now),
            _ => {}
        }
    }

    fn wait_out(&mut self, now: Nanoseconds) {
        self.state = State::TimeWait;
        self.time_wait_until = now.saturating_add(self.settings.time_wait).min(NEVER - 1);
        self.events.push(Event::Closed);
    }
}

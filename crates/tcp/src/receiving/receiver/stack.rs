//! Where the receiving half asks a kernel's rules, and how it ends.

use pepscope_path::{Nanoseconds, NEVER};

use crate::packets::run::Run;
use crate::packets::segment::{ContentId, Flags, Segment};

use super::{Due, KernelReceiver, Receiver, SenderTimes};

impl Receiver {
    /// Both ends agreed on the options.
    pub fn establish(&mut self, now: Nanoseconds, has_timestamps: bool) {
        if let Some(kernel) = &mut self.kernel {
            kernel.establish(now, has_timestamps, self.window_shift);
        }
    }

    /// The window of a SYN, or of a SYN-ACK if it `is_reply`, with timestamps or without.
    pub fn opening_window(&mut self, is_reply: bool, has_timestamps: bool) -> u16 {
        match &mut self.kernel {
            Some(kernel) => {
                let window = kernel.opening_window(is_reply, has_timestamps);
                self.offered_window = window.into();
                self.offered_edge = self.offered_edge.max(self.next() + self.offered_window);
                window
            }
            None => self.offer_window(0),
        }
    }

    /// What the sending half knows at the time of a segment that arrives; `round_trip` by the echo of its timestamp.
    #[inline(always)]
    pub fn note_sender(
        &mut self,
        now: Nanoseconds,
        round_trip: impl FnOnce() -> Option<Nanoseconds>,
        sender: impl FnOnce() -> SenderTimes,
    ) {
        if let Some(kernel) = &mut self.kernel {
            kernel.note_sender(now, sender());
            if let Some(sample) = round_trip() {
                kernel.note_round_trip(sample);
            }
        }
    }

    /// [`Receiver::take`] for payload that [`Receiver::predicts`], where a kernel decides.
    #[inline(always)]
    pub fn take_predicted_as_kernel(&mut self, now: Nanoseconds, segment: &Segment) {
        let bytes = u64::from(segment.payload_bytes);
        self.buffer.append_plain(Run { content: segment.content, content_offset: segment.content_offset, bytes });
        if let Some(kernel) = &mut self.kernel {
            kernel.take(bytes, segment.flags.has(Flags::PSH));
        }
        self.acknowledge_in_order(now, false);
    }

    /// Payload leaves.
    #[inline]
    pub fn note_data_sent(&mut self, now: Nanoseconds) {
        if let Some(kernel) = &mut self.kernel {
            kernel.note_data_sent(now);
        }
    }

    /// Data arrived in order: whether the ACK leaves now, or when at the latest.
    pub(super) fn acknowledge_as_kernel(&mut self, now: Nanoseconds, had_gaps: bool) {
        let next = self.next();
        let Some(kernel) = &mut self.kernel else { return };
        if kernel.acknowledges_data(next, self.read, self.window_shift) || had_gaps {
            self.due = Due::Yes;
        } else {
            self.deadline = kernel.deadline(now, self.deadline);
        }
    }

    /// Data arrived out of order: the ACK leaves at once, but Linux's wait for one another where there are many.
    pub(super) fn acknowledge_out_of_order(&mut self, now: Nanoseconds) {
        let next = self.buffer.next();
        let wait = match &mut self.kernel {
            Some(KernelReceiver::Linux(linux)) => linux.compresses(next, self.read, self.window_shift),
            _ => None,
        };
        match wait {
            None => self.due = Due::Alone,
            Some(wait) => self.compressed_until = self.compressed_until.min(now.saturating_add(wait)),
        }
    }

    /// Linux expects its application to close, too, and has the ACK of the FIN wait for that (tcp_fin). Others' leaves at
    /// once.
    pub(super) fn acknowledge_fin(&mut self, now: Nanoseconds, is_open: bool) {
        match &mut self.kernel {
            Some(KernelReceiver::Linux(linux)) if is_open && self.due == Due::No && self.delayed.is_some() => {
                linux.expect_answer();
                if linux.acknowledges_now(self.buffer.next() + 1, self.read, self.window_shift) {
                    self.due = Due::Yes;
                } else {
                    self.deadline = linux.deadline(now, self.deadline);
                }
            }
            _ => self.due = Due::Yes,
        }
    }

    /// The content of the next byte to be read.
    pub fn next_content(&self) -> Option<ContentId> {
        self.buffer.next_content()
    }

    /// Drops what was not read.
    pub fn discard(&mut self) {
        self.buffer.clear();
        self.due = Due::No;
        (self.deadline, self.compressed_until) = (NEVER, NEVER);
    }

    pub(super) fn make_room_as_kernel(&mut self, bytes: u64, is_open: bool) {
        let (next, has_gaps) = (self.buffer.next(), self.buffer.has_gaps());
        let Some(kernel) = &mut self.kernel else { return };
        let is_due = kernel.read(bytes, self.read, next, has_gaps, self.window_shift);
        if is_due && is_open && !self.fin_taken {
            self.acknowledge_now();
        }
    }
}

//! The receiving half: what it takes, what it acknowledges and when, and the window that it offers.

mod blocks;
mod darwin;
mod kernel;
mod linux;
mod stack;
mod windows;

use pepscope_path::{Nanoseconds, NEVER};

use crate::packets::run::{PlacedRun, Run};
use crate::packets::segment::{Ecn, Flags, Segment};
use crate::packets::sequence::{number, position};
use crate::receiving::reassembly::Reassembly;
use crate::settings::{DelayedAcknowledgement, EcnMode, Settings};
use crate::statistics::Statistics;

use kernel::KernelReceiver;
pub(crate) use kernel::SenderTimes;

/// Which acknowledgement waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    No,
    /// Any segment may carry it.
    Yes,
    /// An ACK for out-of-order data, sent alone and with SACK blocks, so that the peer counts it as a duplicate ACK.
    Alone,
}

/// What a segment changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub readable: bool,
    pub finished: bool,
}

/// Receiving half of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    initial: u32,
    buffer: Reassembly,
    buffer_bytes: u64,
    /// Position up to which the application has read.
    read: u64,
    /// The farthest right edge that was offered: the window must not shrink (RFC 7323, section 2.4).
    offered_edge: u64,
    /// The window in the last ACK, in bytes.
    offered_window: u64,
    pub window_shift: u8,
    /// Growth of the window that is worth telling: a segment or half the buffer (RFC 9293, section 3.8.6.2.2).
    worthwhile_bytes: u64,
    due: Due,
    deadline: Nanoseconds,
    /// When ACKs for data out of order leave as one.
    compressed_until: Nanoseconds,
    delayed: Option<DelayedAcknowledgement>,
    quick: u32,
    unacknowledged_segments: u32,
    fin: Option<u64>,
    fin_taken: bool,
    pub sack: bool,
    report_duplicates: bool,
    duplicate: Option<(u64, u64)>,
    pub ecn: EcnMode,
    echo: bool,
    /// Decides on windows and delayed ACKs where the stack is a kernel's.
    kernel: Option<KernelReceiver>,
}

impl Receiver {
    pub fn new(settings: &Settings) -> Self {
        Self {
            initial: 0,
            buffer: Reassembly::new(1),
            buffer_bytes: settings.receive_buffer_bytes,
            read: 1,
            offered_edge: 1,
            offered_window: 0,
            window_shift: 0,
            worthwhile_bytes: u64::from(settings.announced_segment_size())
                .min(settings.receive_buffer_bytes / 2)
                .max(1),
            due: Due::No,
            deadline: NEVER,
            compressed_until: NEVER,
            delayed: settings.delayed_acknowledgement,
            quick: settings.quick_acknowledgements,
            unacknowledged_segments: 0,
            fin: None,
            fin_taken: false,
            sack: false,
            report_duplicates: settings.duplicate_sack,
            duplicate: None,
            ecn: EcnMode::Off,
            echo: false,
            kernel: KernelReceiver::new(settings),
        }
    }

    /// The peer's initial sequence number.
    pub fn begin(&mut self, initial: u32) {
        self.initial = initial;
    }

    #[inline]
    pub fn position(&self, wire: u32) -> u64 {
        position(wire, self.initial, self.buffer.next())
    }

    /// The position expected next, FIN counted.
    #[inline]
    pub fn next(&self) -> u64 {
        self.buffer.next() + u64::from(self.fin_taken)
    }

    #[inline]
    pub fn acknowledgement(&self) -> u32 {
        number(self.next(), self.initial)
    }

    #[inline]
    pub fn readable_bytes(&self) -> u64 {
        self.buffer.ready_bytes()
    }

    /// Payload received in order since the start.
    pub fn received_bytes(&self) -> u64 {
        self.buffer.next() - 1
    }

    /// The window that the last ACK offered, in bytes.
    pub fn offered_window(&self) -> u64 {
        self.offered_window
    }

    /// Whether `start` .. `end` touches what may be sent to us (RFC 9293, section 3.10.7.4).
    #[inline]
    pub fn accepts(&self, start: u64, end: u64) -> bool {
        let next = self.next();
        let edge = self.offered_edge.max(next);
        if start == end {
            start >= next && start <= edge
        } else {
            end > next && (start < edge || start == next)
        }
    }

    /// Takes the payload and FIN of a segment that starts at `start`; `is_open` while our own FIN is still to come.
    #[inline]
    pub fn take(
        &mut self,
        now: Nanoseconds,
        start: u64,
        segment: &Segment,
        is_open: bool,
        statistics: &mut Statistics,
    ) -> Received {
        let payload_end = start + u64::from(segment.payload_bytes);
        let edge = self.offered_edge;
        let had = self.buffer.next();
        if segment.flags.has(Flags::FIN) && self.fin.is_none() && payload_end <= edge {
            self.fin = Some(payload_end);
            if self.kernel.is_some() && payload_end > had {
                self.due = Due::Alone; // it is held and reported as data are
            }
        }
        if segment.payload_bytes > 0 && !self.fin_taken {
            let end = payload_end.min(edge).min(self.fin.unwrap_or(u64::MAX));
            if start >= end {
                statistics.outside_window += 1; // a probe of a closed window
                self.due = Due::Alone;
            } else if end <= had {
                self.note_duplicate(start, payload_end.min(had), statistics);
            } else {
                let run = PlacedRun { start, end, content: segment.content, content_offset: segment.content_offset };
                if start <= had {
                    let had_gaps = self.buffer.has_gaps();
                    self.buffer.append(run);
                    if let Some(kernel) = &mut self.kernel {
                        kernel.take(segment.payload_bytes.into(), segment.flags.has(Flags::PSH));
                    }
                    self.acknowledge_in_order(now, had_gaps);
                } else {
                    statistics.out_of_order_segments += 1;
                    if !self.buffer.hold(run) {
                        self.note_duplicate(start, end, statistics);
                    } else if let Some(kernel) = &mut self.kernel {
                        kernel.hold(segment.payload_bytes.into(), end);
                    }
                    self.acknowledge_out_of_order(now);
                }
            }
        } else if segment.payload_bytes > 0 {
            self.note_duplicate(start, payload_end, statistics);
        }
        let mut received = Received { readable: self.buffer.next() > had, finished: false };
        if self.fin == Some(self.buffer.next()) && !self.fin_taken {
            self.fin_taken = true;
            received.finished = true;
            self.acknowledge_fin(now, is_open);
        }
        received
    }

    /// Whether payload that begins at the next position and ends at `end` is taken whole, and completes nothing.
    #[inline]
    pub fn predicts(&self, end: u64) -> bool {
        end <= self.offered_edge && self.fin.is_none() && !self.buffer.has_gaps()
    }

    /// [`Receiver::take`] for such payload, and [`Receiver::read`] if the application `reads` it at once and nothing is
    /// before it.
    #[inline(always)]
    pub fn take_predicted(&mut self, now: Nanoseconds, run: Run, reads: bool) {
        if reads {
            self.buffer.pass(run.bytes);
        } else {
            self.buffer.append_plain(run);
        }
        self.acknowledge_in_order(now, false);
        if reads {
            self.make_room(run.bytes, true);
        }
    }

    #[inline(always)]
    fn acknowledge_in_order(&mut self, now: Nanoseconds, had_gaps: bool) {
        if self.kernel.is_some() && self.delayed.is_some() {
            self.acknowledge_as_kernel(now, had_gaps);
            return;
        }
        self.unacknowledged_segments += 1;
        match self.delayed {
            Some(delayed) if !had_gaps && self.quick == 0 && self.unacknowledged_segments < delayed.every => {
                if self.deadline == NEVER {
                    self.deadline = now.saturating_add(delayed.timeout);
                }
            }
            _ => {
                self.quick = self.quick.saturating_sub(1);
                self.due = Due::Yes;
            }
        }
    }

    fn note_duplicate(&mut self, start: u64, end: u64, statistics: &mut Statistics) {
        statistics.duplicate_segments += 1;
        if self.report_duplicates && self.sack && start < end {
            self.duplicate = Some((start, end));
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.take_duplicate();
        }
        self.due = Due::Alone;
    }

    /// Notes the marks of a segment for the echo.
    #[inline]
    pub fn note_marks(&mut self, segment: &Segment, statistics: &mut Statistics) {
        if self.ecn == EcnMode::Off {
            return;
        }
        if self.ecn == EcnMode::Standard && segment.flags.has(Flags::CWR) {
            self.echo = false;
        }
        if segment.ecn == Ecn::Congestion {
            statistics.marks_received += 1;
            self.echo = true;
        }
    }

    /// Answers data or a FIN that was received before.
    pub fn refuse_duplicate(&mut self, start: u64, end: u64, has_payload: bool, statistics: &mut Statistics) {
        if has_payload {
            self.note_duplicate(start, end, statistics);
        } else {
            self.due = Due::Alone;
        }
    }

    /// An ACK at once, for a segment that is not acceptable.
    pub fn demand_acknowledgement(&mut self) {
        self.due = Due::Alone;
    }

    /// The connection opened and its third segment is due.
    pub fn acknowledge_now(&mut self) {
        if self.due == Due::No {
            self.due = Due::Yes;
        }
    }

    #[inline]
    pub fn is_due_alone(&self) -> bool {
        self.due == Due::Alone
    }

    #[inline]
    pub fn is_due(&self) -> bool {
        self.due != Due::No
    }

    #[inline]
    pub fn deadline(&self) -> Nanoseconds {
        self.deadline.min(self.compressed_until)
    }

    pub fn handle_timeout(&mut self, now: Nanoseconds) {
        if now >= self.compressed_until {
            self.due = Due::Alone;
        }
        if now >= self.deadline {
            self.deadline = NEVER;
            self.acknowledge_now();
            if let Some(kernel) = &mut self.kernel {
                kernel.delay_passed();
            }
        }
    }

    /// Reads, and offers the room if that at least doubles what the peer may send and is worth a segment or half the
    /// buffer (RFC 9293, section 3.8.6.2.2; the doubling keeps a fast reader from sending an ACK a segment).
    #[inline]
    pub fn read(&mut self, limit: u64, is_open: bool) -> Option<Run> {
        let run = self.buffer.read(limit)?;
        self.make_room(run.bytes, is_open);
        Some(run)
    }

    /// The application took `bytes`.
    #[inline(always)]
    fn make_room(&mut self, bytes: u64, is_open: bool) {
        self.read += bytes;
        if self.kernel.is_some() {
            self.make_room_as_kernel(bytes, is_open);
            return;
        }
        // An ACK that is due announces the window, too.
        if self.due == Due::No && is_open && !self.fin_taken {
            let edge = self.read + self.buffer_bytes;
            let growth = edge.saturating_sub(self.offered_edge);
            let remaining = self.offered_edge.saturating_sub(self.next());
            if growth >= self.worthwhile_bytes && growth >= remaining && (edge - self.next()) >> self.window_shift > 0 {
                self.acknowledge_now();
            }
        }
    }

    /// The window field for a segment that leaves now: the right edge moves only by a worthwhile step and never back.
    #[inline(always)]
    pub fn offer_window(&mut self, shift: u8) -> u16 {
        let next = self.next();
        if let Some(kernel) = &mut self.kernel {
            self.offered_window = kernel.offer(next, self.read, shift);
            self.offered_edge = self.offered_edge.max(next + self.offered_window);
            return (self.offered_window >> shift) as u16;
        }
        let target = self.read + self.buffer_bytes;
        let edge = if target >= self.offered_edge + self.worthwhile_bytes { target } else { self.offered_edge };
        let field = (edge.saturating_sub(next) >> shift).min(u64::from(u16::MAX));
        self.offered_window = field << shift;
        self.offered_edge = self.offered_edge.max(next + self.offered_window);
        field as u16
    }

    /// ECE for a segment that leaves now.
    #[inline]
    pub fn echo(&mut self) -> bool {
        let echo = self.echo;
        if self.ecn == EcnMode::EveryPacket {
            self.echo = false;
        }
        echo
    }

    /// Whether the next segment carries ECE and those behind it do not.
    #[inline]
    pub fn echoes_once(&self) -> bool {
        self.echo && self.ecn == EcnMode::EveryPacket
    }

    /// A segment that leaves carries the acknowledgement.
    #[inline]
    pub fn acknowledged(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            kernel.acknowledged(self.buffer.next() + u64::from(self.fin_taken));
        }
        self.due = Due::No;
        (self.deadline, self.compressed_until) = (NEVER, NEVER);
        self.unacknowledged_segments = 0;
    }
}

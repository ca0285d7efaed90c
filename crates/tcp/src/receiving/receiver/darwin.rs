//! The receive window and the delayed ACKs of macOS and iOS (bsd/netinet/tcp_input.c, tcp_output.c and tcp_cc.c of xnu
//! 11417).

use pepscope_path::{Nanoseconds, MILLISECOND};

use super::kernel::SenderTimes;
use crate::settings::{DelayedAcknowledgement, Settings};

/// The buffer of a connection that opens, before it is rounded up to whole segments (net.inet.tcp.recvspace): captures
/// show 2058 steps of 64 bytes with segments of 1,448 bytes, 2070 with 1,440.
const INITIAL_BUFFER_BYTES: u64 = 131_072;
const INITIAL_WINDOW_SEGMENTS: u64 = 10;
/// ACKs that are not delayed at the start, after a loss and after a delayed one (TCP_FORCED_ACKS_COUNT).
const FORCED: u32 = 16;
const MOST_DELAYED_SEGMENTS: u64 = 256;
const TIMESTAMPS_OPTION_BYTES: u64 = 12;

/// State of the receiving half; the names in brackets are the kernel's.
#[derive(Clone, Debug)]
pub(super) struct DarwinReceiver {
    most_bytes: u64,
    /// so_rcv.sb_hiwat, and what it is at first.
    buffer_bytes: u64,
    initial_bytes: u64,
    /// t_maxseg.
    segment_bytes: u64,
    delay: Nanoseconds,
    has_timestamps: bool,
    shift: u8,
    /// rcv_adv, last_ack_sent and t_last_recwin.
    edge: u64,
    acknowledged: u64,
    last_window_bytes: u64,
    /// The last segment with payload, and whether it was pushed (TF_LAST_IS_PSH).
    taken_bytes: u64,
    is_pushed: bool,
    /// t_forced_acks.
    forced: u32,
    now: Nanoseconds,
    round_trip: Option<Nanoseconds>,
    /// When that left which the last segment's timestamp answers.
    echoed_at: Nanoseconds,
    /// rfbuf_ts, rfbuf_cnt and rfbuf_space.
    measured_since: Nanoseconds,
    measured_bytes: u64,
    space_bytes: u64,
}

impl DarwinReceiver {
    pub fn new(settings: &Settings) -> Self {
        let segment_bytes = u64::from(settings.announced_segment_size()).max(1);
        let delay =
            settings.delayed_acknowledgement.unwrap_or(DelayedAcknowledgement { every: 2, timeout: 100 * MILLISECOND });
        let mut new = Self {
            most_bytes: settings.receive_buffer_bytes,
            buffer_bytes: 0,
            initial_bytes: 0,
            segment_bytes,
            delay: delay.timeout,
            has_timestamps: false,
            shift: 0,
            edge: 1,
            acknowledged: 1,
            last_window_bytes: 0,
            taken_bytes: 0,
            is_pushed: false,
            forced: FORCED,
            now: 0,
            round_trip: None,
            echoed_at: 0,
            measured_since: 0,
            measured_bytes: 0,
            space_bytes: 0,
        };
        new.set_initial_buffer(INITIAL_BUFFER_BYTES);
        new
    }

    /// Whole segments (tcp_mss).
    fn set_initial_buffer(&mut self, bytes: u64) {
        self.initial_bytes = bytes.next_multiple_of(self.segment_bytes).min(self.most_bytes);
        self.buffer_bytes = self.initial_bytes;
    }

    pub fn opening_window(&mut self) -> u16 {
        let window_bytes = self.buffer_bytes.min(u64::from(u16::MAX));
        self.edge = 1 + window_bytes;
        self.last_window_bytes = window_bytes;
        window_bytes as u16
    }

    /// Without timestamps the buffer is twice as large (tcp_sbrcv_tstmp_check).
    pub fn establish(&mut self, now: Nanoseconds, has_timestamps: bool, shift: u8) {
        (self.has_timestamps, self.shift, self.measured_since) = (has_timestamps, shift, now);
        if has_timestamps {
            self.segment_bytes = self.segment_bytes.saturating_sub(TIMESTAMPS_OPTION_BYTES).max(1);
            self.set_initial_buffer(INITIAL_BUFFER_BYTES);
        } else {
            self.set_initial_buffer(2 * INITIAL_BUFFER_BYTES);
        }
        self.space_bytes = INITIAL_WINDOW_SEGMENTS * self.segment_bytes;
    }

    pub fn note_sender(&mut self, now: Nanoseconds, sender: SenderTimes) {
        self.now = now;
        if !self.has_timestamps {
            self.round_trip = sender.smoothed_round_trip;
        }
    }

    pub fn note_round_trip(&mut self, sample: Nanoseconds) {
        self.echoed_at = self.now.saturating_sub(sample);
    }

    pub fn take(&mut self, payload_bytes: u64, is_pushed: bool) {
        (self.taken_bytes, self.is_pushed) = (payload_bytes, is_pushed);
    }

    pub fn hold(&mut self, payload_bytes: u64) {
        self.force_acknowledgements();
        self.grow(payload_bytes);
    }

    pub fn force_acknowledgements(&mut self) {
        self.forced = FORCED;
    }

    /// tcp_cc_delay_ack in the present strategy: an ACK is delayed only while earlier data wait for the application and the
    /// window does not grow, and up to a quarter of the window once that is large.
    pub fn acknowledges_data(&mut self, next: u64, read: u64, shift: u8) -> bool {
        let before = next - self.taken_bytes;
        let unread_bytes = before.saturating_sub(read);
        let window_bytes = self.space(before, read).min(u64::from(u16::MAX) << shift);
        let unacknowledged_bytes = before.saturating_sub(self.acknowledged);
        let delays = self.last_window_bytes > 0
            && self.forced == 0
            && unread_bytes > 1
            && window_bytes <= self.last_window_bytes
            && (unacknowledged_bytes <= self.segment_bytes
                || window_bytes > self.initial_bytes + self.initial_bytes / 2)
            && unacknowledged_bytes < window_bytes / 4
            && unacknowledged_bytes < MOST_DELAYED_SEGMENTS * self.segment_bytes;
        self.grow(self.taken_bytes);
        !delays
    }

    pub fn delay(&self) -> Nanoseconds {
        self.delay
    }

    /// tcp_sbspace.
    fn space(&self, next: u64, read: u64) -> u64 {
        self.buffer_bytes.saturating_sub(next.saturating_sub(read))
    }

    /// tcp_sbrcv_grow: once a round trip, to four times what arrived in it where that was half more than in the one before,
    /// else to twice.
    fn grow(&mut self, payload_bytes: u64) {
        if self.buffer_bytes >= self.most_bytes {
            return;
        }
        self.measured_bytes += payload_bytes;
        let has_passed = if self.has_timestamps {
            self.echoed_at >= self.measured_since
        } else {
            self.round_trip.is_some_and(|round_trip| self.now >= self.measured_since.saturating_add(round_trip))
        };
        if !has_passed {
            return;
        }
        if self.measured_bytes > self.space_bytes {
            let is_rising = self.measured_bytes > self.space_bytes + self.space_bytes / 2;
            let ideal_bytes = self.measured_bytes * if is_rising { 4 } else { 2 };
            let growth = ideal_bytes.saturating_sub(self.buffer_bytes);
            let growth = growth - growth % self.segment_bytes;
            let most_bytes = self.most_bytes.min(u64::from(u16::MAX) << self.shift);
            self.buffer_bytes = self.buffer_bytes.max((self.buffer_bytes + growth).min(most_bytes));
            self.space_bytes = self.measured_bytes;
        }
        self.measured_bytes = 0;
        self.measured_since = self.now;
    }

    /// The window that would be announced (tcp_output).
    fn selected(&self, next: u64, read: u64, shift: u8) -> u64 {
        let mut window_bytes = self.space(next, read);
        if window_bytes < self.buffer_bytes / 4 && window_bytes < self.segment_bytes {
            window_bytes = 0;
        }
        let most_bytes = u64::from(u16::MAX) << shift;
        let remaining = self.edge.saturating_sub(next);
        window_bytes.min(most_bytes).max(remaining).next_multiple_of(1 << shift).min(most_bytes)
    }

    /// Whether reading makes an ACK leave (tcp_output): every second segment that is read whole, what was pushed, and a
    /// quarter of the buffer.
    pub fn read(&mut self, read: u64, next: u64, shift: u8) -> bool {
        let window_bytes = self.selected(next, read, shift);
        let known_bytes = self.edge.saturating_sub(next);
        let growth = window_bytes.saturating_sub(known_bytes);
        if window_bytes == 0 {
            return false;
        }
        let (is_drained, is_news) = (read == next, self.acknowledged != next);
        let answers = if growth >= 2 * self.segment_bytes {
            is_drained && (is_news || (known_bytes + growth) >> shift > known_bytes >> shift)
        } else {
            is_drained && is_news && self.is_pushed
        };
        answers || growth > 0 && 4 * growth >= self.buffer_bytes
    }

    pub fn offer(&mut self, next: u64, read: u64, shift: u8) -> u64 {
        let window_bytes = self.selected(next, read, shift);
        self.edge = self.edge.max(next + window_bytes);
        self.last_window_bytes = window_bytes;
        window_bytes
    }

    pub fn acknowledged(&mut self, next: u64) {
        if next > self.acknowledged {
            self.forced = self.forced.saturating_sub(1);
        }
        self.acknowledged = next;
    }
}

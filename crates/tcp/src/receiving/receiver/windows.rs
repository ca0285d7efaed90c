//! The receive window and the delayed ACKs of Windows 10 and 11, as Microsoft's documents and captures have them; what
//! neither says is marked as an assumption (docs/models/hosts.md).

use pepscope_path::Nanoseconds;

use super::kernel::SenderTimes;
use crate::settings::{DelayedAcknowledgement, Settings};

/// The buffer of a connection that opens, before it is rounded up to whole segments: captures show 1026 steps of 256
/// bytes with segments of 1,460 bytes, 1029 with 1,440.
const INITIAL_BUFFER_BYTES: u64 = 256 << 10;
const TIMESTAMPS_OPTION_BYTES: u64 = 12;

#[derive(Clone, Debug)]
pub(super) struct WindowsReceiver {
    most_bytes: u64,
    buffer_bytes: u64,
    /// Announced, and without timestamps once the connection is open.
    segment_bytes: u64,
    delayed: DelayedAcknowledgement,
    /// Segments in order since the last ACK.
    segments: u32,
    /// The right edge that the peer knows.
    edge: u64,
    now: Nanoseconds,
    round_trip: Option<Nanoseconds>,
    /// What the application has read since a time.
    measured_from: u64,
    measured_since: Nanoseconds,
}

impl WindowsReceiver {
    pub fn new(settings: &Settings) -> Self {
        let segment_bytes = u64::from(settings.announced_segment_size()).max(1);
        let initial_bytes = INITIAL_BUFFER_BYTES.next_multiple_of(segment_bytes);
        Self {
            most_bytes: settings.receive_buffer_bytes,
            buffer_bytes: initial_bytes.min(settings.receive_buffer_bytes),
            segment_bytes,
            delayed: settings.delayed_acknowledgement.unwrap_or_default(),
            segments: 0,
            edge: 1,
            now: 0,
            round_trip: None,
            measured_from: 1,
            measured_since: 0,
        }
    }

    /// Whole segments in a SYN (64,240 bytes), the largest unscaled window in a SYN-ACK.
    pub fn opening_window(&mut self, is_reply: bool) -> u16 {
        let most_bytes = self.buffer_bytes.min(u64::from(u16::MAX));
        let whole = most_bytes - most_bytes % self.segment_bytes;
        let window = if is_reply || whole == 0 { most_bytes } else { whole };
        self.edge = 1 + window;
        window as u16
    }

    pub fn establish(&mut self, now: Nanoseconds, has_timestamps: bool) {
        if has_timestamps {
            self.segment_bytes = self.segment_bytes.saturating_sub(TIMESTAMPS_OPTION_BYTES).max(1);
        }
        self.measured_since = now;
    }

    pub fn note_sender(&mut self, now: Nanoseconds, sender: SenderTimes) {
        self.now = now;
        self.round_trip = sender.smoothed_round_trip;
    }

    pub fn take(&mut self) {
        self.segments += 1;
    }

    /// Every second segment (DelayedAckFrequency).
    pub fn acknowledges_data(&self) -> bool {
        self.segments >= self.delayed.every
    }

    /// DelayedAckTimeout.
    pub fn delay(&self) -> Nanoseconds {
        self.delayed.timeout
    }

    /// Assumption: an ACK is due where the peer may send twice as much as it knows, at least a segment or half the buffer
    /// (RFC 9293, section 3.8.6.2.2).
    pub fn read(&mut self, read: u64, next: u64, shift: u8) -> bool {
        self.adjust(read);
        let growth = (read + self.buffer_bytes).saturating_sub(self.edge);
        let remaining = self.edge.saturating_sub(next);
        growth >= self.worthwhile_bytes() && growth >= remaining && (remaining + growth) >> shift > 0
    }

    /// Assumption: the buffer grows to twice what the application took in a round trip, as in dynamic right-sizing (Fisk and
    /// Feng, 2001). Microsoft says that the window follows the product of bandwidth and delay and how fast the application
    /// reads.
    fn adjust(&mut self, read: u64) {
        let Some(round_trip) = self.round_trip else { return };
        if self.now.saturating_sub(self.measured_since) < round_trip {
            return;
        }
        let wanted_bytes = (2 * (read - self.measured_from)).next_multiple_of(self.segment_bytes);
        self.buffer_bytes = self.buffer_bytes.max(wanted_bytes.min(self.most_bytes));
        self.measured_from = read;
        self.measured_since = self.now;
    }

    fn worthwhile_bytes(&self) -> u64 {
        self.segment_bytes.min(self.buffer_bytes / 2).max(1)
    }

    /// The right edge moves by worthwhile steps only and never back; whole steps of the scale.
    pub fn offer(&mut self, next: u64, read: u64, shift: u8) -> u64 {
        let target = read + self.buffer_bytes;
        let edge = if target >= self.edge + self.worthwhile_bytes() { target } else { self.edge };
        let window_bytes = (edge.saturating_sub(next) >> shift).min(u64::from(u16::MAX)) << shift;
        self.edge = self.edge.max(next + window_bytes);
        window_bytes
    }

    pub fn acknowledged(&mut self) {
        self.segments = 0;
    }
}

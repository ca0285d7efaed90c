//! The receive window and the delayed ACKs of Linux (net/ipv4/tcp_input.c, tcp_output.c and tcp.c of 6.18).
//!
//! The buffer is memory, of which a share that is measured from arriving packets is window. The window begins at what
//! half of 131072 bytes holds, grows by two segments for each one that arrives as far as the buffer goes
//! (`tcp_grow_window`), and the buffer grows to twice what the application took in a round trip
//! (`tcp_rcv_space_adjust`), up to the largest.

mod acknowledgements;

use pepscope_path::{Nanoseconds, MILLISECOND};

use crate::packets::segment::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, TCP_HEADER_BYTES};
use crate::settings::Settings;

use super::kernel::SenderTimes;

/// The buffer at first (tcp_rmem[1]).
const INITIAL_MEMORY_BYTES: u64 = 131_072;
/// Shares of memory are in units of 1/256 (TCP_RMEM_TO_WIN_SCALE).
const RATIO_BITS: u32 = 8;
const INITIAL_RATIO: u64 = 128;
/// What a packet takes beside its bytes: room before its headers and `skb_shared_info` behind, in one piece whose length
/// is a power of two, and `struct sk_buff`.
const PACKET_MARGIN_BYTES: u64 = 64 + 320;
const PACKET_RECORD_BYTES: u64 = 256;
const TIMESTAMPS_OPTION_BYTES: u64 = 12;
/// A segment's size before any arrived (TCP_MSS_DEFAULT), and the least (TCP_MIN_MSS).
const DEFAULT_SEGMENT_BYTES: u64 = 536;
const LEAST_SEGMENT_BYTES: u64 = 88;
/// Shorter segments do not open the window.
const LEAST_OPENING_BYTES: u64 = 128;
const INITIAL_WINDOW_SEGMENTS: u64 = 10;
/// TCP_ATO_MIN and TCP_DELACK_MIN.
const LEAST_DELAY: Nanoseconds = 40 * MILLISECOND;

/// State of the receiving half; the names in brackets are the kernel's.
#[derive(Clone, Debug)]
pub(super) struct LinuxReceiver {
    /// Largest buffer (tcp_rmem[2]), and the buffer now (sk_rcvbuf).
    most_memory_bytes: u64,
    memory_bytes: u64,
    /// Memory of what waits for the application or for a gap to close (sk_rmem_alloc).
    held_bytes: u64,
    /// End of the farthest data that arrived out of order.
    farthest: u64,
    /// scaling_ratio
    ratio: u64,
    /// window_clamp, rcv_ssthresh, rcv_wnd and rcv_wup.
    clamp_bytes: u64,
    threshold_bytes: u64,
    window_bytes: u64,
    window_from: u64,
    header_bytes: u64,
    /// advmss, rcv_mss and last_seg_size.
    announced_segment_bytes: u64,
    peer_segment_bytes: u64,
    last_small_bytes: u64,
    /// rcvq_space: seq, time and space; rcv_rtt_est.
    measured_from: u64,
    measured_since: Nanoseconds,
    measured_bytes: u64,
    round_trip: Option<Nanoseconds>,
    now: Nanoseconds,
    sender: SenderTimes,
    /// icsk_ack: quick, ato, lrcvtime, pingpong, and how many of ICSK_ACK_PUSHED and ICSK_ACK_PUSHED2 are set.
    quick: u64,
    delay: Nanoseconds,
    last_received: Nanoseconds,
    is_interactive: bool,
    pushes: u8,
    /// compressed_ack, compressed_ack_rcv_nxt and dup_ack_counter.
    compressed: u32,
    compressed_at_position: u64,
    duplicates: u32,
    /// An ACK that is to leave reports data out of order.
    reports_held: bool,
}

impl LinuxReceiver {
    pub fn new(settings: &Settings) -> Self {
        let ip_bytes = if settings.version_6 { IPV6_HEADER_BYTES } else { IPV4_HEADER_BYTES };
        let memory_bytes = INITIAL_MEMORY_BYTES.min(settings.receive_buffer_bytes);
        Self {
            most_memory_bytes: settings.receive_buffer_bytes,
            memory_bytes,
            held_bytes: 0,
            farthest: 0,
            ratio: INITIAL_RATIO,
            clamp_bytes: 0,
            threshold_bytes: 0,
            window_bytes: 0,
            window_from: 1,
            header_bytes: u64::from(ip_bytes + TCP_HEADER_BYTES),
            announced_segment_bytes: u64::from(settings.announced_segment_size()),
            peer_segment_bytes: DEFAULT_SEGMENT_BYTES,
            last_small_bytes: 0,
            measured_from: 1,
            measured_since: 0,
            measured_bytes: 0,
            round_trip: None,
            now: 0,
            sender: SenderTimes::default(),
            quick: 0,
            delay: 0,
            last_received: 0,
            is_interactive: false,
            pushes: 0,
            compressed: 0,
            compressed_at_position: 0,
            duplicates: 0,
            reports_held: false,
        }
    }

    fn window_of(&self, memory_bytes: u64) -> u64 {
        (memory_bytes * self.ratio) >> RATIO_BITS
    }

    /// tcp_space.
    fn free_bytes(&self) -> u64 {
        self.window_of(self.memory_bytes.saturating_sub(self.held_bytes))
    }

    /// The memory that a packet takes (truesize).
    fn memory_of(&self, payload_bytes: u64) -> u64 {
        let piece_bytes = payload_bytes + self.header_bytes + PACKET_MARGIN_BYTES;
        piece_bytes.next_power_of_two() + PACKET_RECORD_BYTES
    }

    /// The window of a SYN, or of a SYN-ACK where timestamps are agreed: whole segments (tcp_select_initial_window).
    pub fn opening_window(&mut self, is_reply: bool, has_timestamps: bool) -> u16 {
        let segment_bytes = self
            .announced_segment_bytes
            .saturating_sub(if is_reply && has_timestamps { TIMESTAMPS_OPTION_BYTES } else { 0 })
            .max(1);
        let space = self.window_of(self.memory_bytes);
        let whole = if space > segment_bytes { space - space % segment_bytes } else { space };
        self.window_bytes = whole.min(u64::from(u16::MAX));
        self.threshold_bytes = self.window_bytes;
        self.window_bytes as u16
    }

    /// The connection opened (tcp_init_buffer_space).
    pub fn establish(&mut self, now: Nanoseconds, has_timestamps: bool) {
        if has_timestamps {
            self.announced_segment_bytes = self.announced_segment_bytes.saturating_sub(TIMESTAMPS_OPTION_BYTES).max(1);
            self.header_bytes += TIMESTAMPS_OPTION_BYTES;
        }
        let (space, segment_bytes) = (self.window_of(self.memory_bytes), self.announced_segment_bytes);
        self.clamp_bytes = space.saturating_sub(segment_bytes).max((2 * segment_bytes).min(space));
        self.threshold_bytes = self.threshold_bytes.min(self.clamp_bytes);
        self.measured_bytes =
            self.threshold_bytes.min(self.window_bytes).min(INITIAL_WINDOW_SEGMENTS * segment_bytes).max(1);
        self.measured_since = now;
        self.peer_segment_bytes =
            segment_bytes.min(self.window_bytes / 2).clamp(LEAST_SEGMENT_BYTES, DEFAULT_SEGMENT_BYTES);
    }

    /// Takes note of a round trip that the echo of a timestamp gives (tcp_rcv_rtt_update).
    pub fn note_round_trip(&mut self, sample: Nanoseconds) {
        self.round_trip = Some(match self.round_trip {
            Some(smoothed) => smoothed - smoothed / 8 + sample / 8,
            None => sample,
        });
    }

    pub fn note_sender(&mut self, now: Nanoseconds, sender: SenderTimes) {
        self.now = now;
        self.sender = sender;
    }

    /// A segment with payload was queued (tcp_event_data_recv); `is_pushed` if it has PSH.
    pub fn take(&mut self, payload_bytes: u64, is_pushed: bool) {
        self.held_bytes += self.memory_of(payload_bytes);
        self.measure_segment(payload_bytes, is_pushed);
        if self.delay == 0 {
            self.raise_quick();
            self.delay = LEAST_DELAY;
        } else {
            let pause = self.now - self.last_received;
            if pause <= LEAST_DELAY / 2 {
                self.delay = self.delay / 2 + LEAST_DELAY / 2;
            } else if pause < self.delay {
                self.delay = (self.delay / 2 + pause).min(self.sender.timeout);
            } else if pause > self.sender.timeout {
                self.raise_quick();
            }
        }
        self.last_received = self.now;
        if payload_bytes >= LEAST_OPENING_BYTES {
            self.grow(payload_bytes);
        }
    }

    /// A segment with payload was held for a gap (tcp_data_queue_ofo).
    pub fn hold(&mut self, payload_bytes: u64, end: u64) {
        self.farthest = self.farthest.max(end);
        self.held_bytes += self.memory_of(payload_bytes);
        self.grow(payload_bytes);
    }

    /// tcp_measure_rcv_mss.
    fn measure_segment(&mut self, payload_bytes: u64, is_pushed: bool) {
        let last_small_bytes = std::mem::take(&mut self.last_small_bytes);
        if payload_bytes >= self.peer_segment_bytes {
            if payload_bytes != self.peer_segment_bytes {
                self.measure_ratio(payload_bytes);
            }
            self.peer_segment_bytes = payload_bytes.min(self.announced_segment_bytes).max(1);
            if is_pushed && payload_bytes == self.peer_segment_bytes {
                self.pushes = self.pushes.max(1);
            }
            return;
        }
        if payload_bytes >= DEFAULT_SEGMENT_BYTES || payload_bytes >= LEAST_SEGMENT_BYTES && !is_pushed {
            self.last_small_bytes = payload_bytes;
            if payload_bytes == last_small_bytes {
                self.peer_segment_bytes = payload_bytes;
                return;
            }
        }
        self.pushes = (self.pushes + 1).min(2);
    }

    /// The share of memory that is window, from a segment larger than those before.
    fn measure_ratio(&mut self, payload_bytes: u64) {
        let ratio = ((payload_bytes << RATIO_BITS) / self.memory_of(payload_bytes)).max(1);
        if ratio == self.ratio {
            return;
        }
        self.ratio = ratio;
        let clamp_bytes = self.window_of(self.memory_bytes);
        if clamp_bytes < self.clamp_bytes {
            self.threshold_bytes = self.threshold_bytes.min(clamp_bytes);
        } else {
            self.threshold_bytes = self.threshold_bytes.max(self.window_bytes.min(clamp_bytes));
        }
        self.clamp_bytes = clamp_bytes;
        self.measured_bytes = self.measured_bytes.min(clamp_bytes).max(1);
    }

    /// tcp_grow_window.
    fn grow(&mut self, payload_bytes: u64) {
        let room = self.clamp_bytes.min(self.free_bytes()).saturating_sub(self.threshold_bytes);
        if room == 0 {
            return;
        }
        let step = self.step_bytes(payload_bytes);
        if step > 0 {
            self.threshold_bytes += room.min(step.max(2 * payload_bytes));
            self.quick |= 1;
        }
    }

    fn step_bytes(&self, payload_bytes: u64) -> u64 {
        let mut packet_bytes = self.window_of(self.memory_of(payload_bytes));
        if packet_bytes <= payload_bytes {
            return 2 * self.announced_segment_bytes;
        }
        let mut window_bytes = self.window_of(self.most_memory_bytes) / 2;
        packet_bytes /= 2;
        while self.threshold_bytes <= window_bytes && window_bytes > 0 {
            if packet_bytes <= payload_bytes {
                return 2 * self.peer_segment_bytes;
            }
            packet_bytes /= 2;
            window_bytes /= 2;
        }
        0
    }

    /// The application read up to `read`, of what has arrived in order up to `next`; whether an ACK is due
    /// (tcp_rcv_space_adjust, tcp_cleanup_rbuf).
    pub fn read(&mut self, bytes: u64, read: u64, next: u64, has_gaps: bool, shift: u8) -> bool {
        let unread = next - read;
        let out_of_order_bytes = self.farthest.saturating_sub(next);
        if unread == 0 && !has_gaps {
            self.held_bytes = 0;
        } else {
            let kept = unread + out_of_order_bytes;
            let held = u128::from(self.held_bytes) * u128::from(kept) / u128::from((kept + bytes).max(1));
            self.held_bytes = held as u64;
        }
        self.adjust(read, out_of_order_bytes);
        if next > self.window_from {
            let is_drained = unread == 0 && !has_gaps;
            let is_pushed = self.pushes > 1 || self.pushes > 0 && !self.is_interactive;
            if next - self.window_from > self.peer_segment_bytes || is_pushed && is_drained {
                return true;
            }
        }
        let remaining = (self.window_from + self.window_bytes).saturating_sub(next);
        2 * remaining <= self.clamp_bytes && {
            let selected = self.selected(shift);
            selected > 0 && selected >= 2 * remaining
        }
    }

    /// Dynamic right-sizing: once a round trip, by what was read in it.
    fn adjust(&mut self, read: u64, out_of_order_bytes: u64) {
        let Some(round_trip) = self.round_trip.or(self.sender.smoothed_round_trip) else { return };
        if self.now - self.measured_since < round_trip {
            return;
        }
        let copied_bytes = read - self.measured_from;
        if copied_bytes > self.measured_bytes {
            let growth = u128::from(2 * copied_bytes) * u128::from(copied_bytes - self.measured_bytes);
            let growth = u64::try_from(growth / u128::from(self.measured_bytes)).unwrap_or(u64::MAX / 8);
            let window_bytes = (2 * copied_bytes).saturating_add(2 * growth).saturating_add(out_of_order_bytes);
            let memory_bytes = (u128::from(window_bytes) << RATIO_BITS) / u128::from(self.ratio);
            let memory_bytes = u64::try_from(memory_bytes).unwrap_or(u64::MAX).min(self.most_memory_bytes);
            self.measured_bytes = copied_bytes;
            if memory_bytes > self.memory_bytes {
                self.memory_bytes = memory_bytes;
                self.clamp_bytes = self.window_of(memory_bytes);
            }
        }
        self.measured_from = read;
        self.measured_since = self.now;
    }

    /// __tcp_select_window.
    fn selected(&self, shift: u8) -> u64 {
        let full = self.window_of(self.memory_bytes).min(self.clamp_bytes);
        let segment_bytes = self.peer_segment_bytes.min(full);
        let mut free = self.free_bytes();
        if free < full / 2 {
            let allowed = free;
            free = free >> shift << shift;
            if free < allowed >> 4 || free < segment_bytes {
                return 0;
            }
        }
        free = free.min(self.threshold_bytes);
        if shift > 0 {
            return free.div_ceil(1 << shift) << shift;
        }
        let window_bytes = self.window_bytes;
        if window_bytes + segment_bytes <= free || window_bytes > free {
            free - free % segment_bytes.max(1)
        } else {
            window_bytes
        }
    }

    /// The window for a segment that acknowledges up to `next` (tcp_select_window), in bytes.
    pub fn offer(&mut self, next: u64, shift: u8) -> u64 {
        let remaining = (self.window_from + self.window_bytes).saturating_sub(next);
        let selected = self.selected(shift);
        let window_bytes = if selected < remaining { remaining.div_ceil(1 << shift) << shift } else { selected };
        self.window_bytes = window_bytes;
        self.window_from = next;
        window_bytes.min(u64::from(u16::MAX) << shift)
    }
}

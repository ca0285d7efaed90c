//! SYN, SYN-ACK, and what their options agree on.

use pepscope_path::{Nanoseconds, NEVER};

use super::Connection;
use crate::packets::segment::{Ecn, Flags, Segment};
use crate::packets::sequence::{number, position};
use crate::settings::{EcnMode, Stack};
use crate::state::{Event, State};

/// Without the option (RFC 9293, section 3.7.1; RFC 8200 for IPv6: 1280 - 60).
const DEFAULT_SEGMENT_BYTES_V4: u16 = 536;
const DEFAULT_SEGMENT_BYTES_V6: u16 = 1220;
const TIMESTAMPS_OPTION_BYTES: u64 = 12;
const DARWIN_EVEN_RETRIES: u32 = 4;

/// Progress of the opening.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    is_used: bool,
    /// A SYN or SYN-ACK must leave.
    pub is_due: bool,
    deadline: Nanoseconds,
    sent_at: Nanoseconds,
    retries: u32,
    /// Sent more than once, so that an answer gives no round-trip time (Karn).
    is_ambiguous: bool,
    peer_options: PeerOptions,
}

/// What the peer's SYN offered.
#[derive(Clone, Copy, Debug, Default)]
struct PeerOptions {
    maximum_segment_size: Option<u16>,
    window_scale: Option<u8>,
    timestamps: bool,
    sack: bool,
    ecn: bool,
}

impl Default for Handshake {
    fn default() -> Self {
        Self {
            is_used: false,
            is_due: false,
            deadline: NEVER,
            sent_at: 0,
            retries: 0,
            is_ambiguous: false,
            peer_options: PeerOptions::default(),
        }
    }
}

impl Handshake {
    pub fn is_unused(&self) -> bool {
        !self.is_used
    }

    pub fn use_up(&mut self) {
        self.is_used = true;
    }

    pub fn begin(&mut self, now: Nanoseconds, timeout: Nanoseconds) {
        self.is_used = true;
        self.is_due = true;
        self.sent_at = now;
        self.deadline = now.saturating_add(timeout);
    }

    /// Sends again; `false` once `limit` is used up.
    pub fn retry(&mut self, now: Nanoseconds, timeout: Nanoseconds, limit: u32) -> bool {
        if self.retries >= limit {
            return false;
        }
        self.retries += 1;
        self.repeat();
        self.deadline = now.saturating_add(timeout);
        true
    }

    /// Whether the next wait is as long as this one: XNU sends a SYN five times a timeout apart (tcp_syn_backoff).
    pub fn keeps_interval(&self, stack: Stack) -> bool {
        stack == Stack::Darwin && self.retries < DARWIN_EVEN_RETRIES
    }

    /// Sends again because the peer did.
    pub fn repeat(&mut self) {
        self.is_due = true;
        self.is_ambiguous = true;
    }

    pub fn end(&mut self) {
        self.is_due = false;
        self.deadline = NEVER;
    }

    #[inline]
    pub fn deadline(&self) -> Nanoseconds {
        self.deadline
    }
}

impl Connection {
    /// A segment for an end that listens.
    pub(super) fn handle_listening(&mut self, now: Nanoseconds, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if segment.flags.has(Flags::ACK) || !segment.flags.has(Flags::SYN) {
            self.reset_due = self.refusal(segment);
            return;
        }
        self.take_syn(now, segment);
        self.state = State::SynReceived;
        self.handshake.begin(now, self.sender.timer.timeout());
    }

    /// A segment for an end that sent a SYN (RFC 9293, section 3.10.7.3).
    pub(super) fn handle_syn_sent(&mut self, now: Nanoseconds, segment: &Segment) {
        let has_ack = segment.flags.has(Flags::ACK);
        if has_ack && position(segment.acknowledgement, self.sender.initial, 1) != 1 {
            self.reset_due = self.refusal(segment);
            return;
        }
        if segment.flags.has(Flags::RST) {
            if has_ack {
                self.close_down();
                self.events.push(Event::Reset);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(now, segment);
        if has_ack {
            self.establish(now);
            self.sender.begin_window(segment.window, 1);
            self.receiver.acknowledge_now();
        } else {
            self.state = State::SynReceived;
            self.handshake.begin(now, self.sender.timer.timeout());
        }
    }

    fn take_syn(&mut self, now: Nanoseconds, segment: &Segment) {
        self.receiver.begin(segment.sequence);
        self.handshake.peer_options = PeerOptions {
            maximum_segment_size: segment.maximum_segment_size,
            window_scale: segment.window_scale,
            timestamps: segment.timestamps.is_some(),
            sack: segment.sack_permitted,
            ecn: if segment.flags.has(Flags::ACK) {
                segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR)
            } else {
                segment.flags.has(Flags::ECE) && segment.flags.has(Flags::CWR)
            },
        };
        if let Some(timestamps) = segment.timestamps {
            self.timestamps.is_active = self.settings.timestamps;
            self.timestamps.note(now, timestamps);
        }
        self.last_acknowledgement = self.receiver.next();
        self.sender.begin_window(segment.window, 1);
    }

    /// The handshake is complete: what both offered holds from here on.
    pub(super) fn establish(&mut self, now: Nanoseconds) {
        let peer = self.handshake.peer_options;
        if !self.handshake.is_ambiguous {
            let round_trip_time = now - self.handshake.sent_at;
            self.sender.timer.sample(round_trip_time, true);
            if self.settings.stack != Stack::Ideal {
                self.sender.shortest_round_trip = round_trip_time;
            }
        }
        let default = if self.settings.version_6 { DEFAULT_SEGMENT_BYTES_V6 } else { DEFAULT_SEGMENT_BYTES_V4 };
        let largest = self.settings.announced_segment_size().min(peer.maximum_segment_size.unwrap_or(default));
        let options = if self.timestamps.is_active { TIMESTAMPS_OPTION_BYTES } else { 0 };
        let sack = self.settings.sack && peer.sack;
        self.sender.begin(&self.settings, u64::from(largest).saturating_sub(options), sack, self.handshake.retries > 0);
        if let (Some(ours), Some(theirs)) = (self.settings.offered_window_scale(), peer.window_scale) {
            self.receiver.window_shift = ours;
            self.sender.window_shift = theirs.min(14);
        }
        self.receiver.sack = sack;
        self.receiver.establish(now, self.timestamps.is_active);
        if peer.ecn && self.settings.ecn != EcnMode::Off {
            self.receiver.ecn = self.settings.ecn;
            self.sender.ecn = self.settings.ecn;
        }
        self.handshake.end();
        self.reset_due = None;
        self.state = State::Established;
        self.events.push(Event::Connected);
        if self.sender.is_fin_requested() {
            self.state = State::FinWait1;
        }
    }

    /// The SYN or SYN-ACK.
    pub(super) fn handshake_segment(&mut self, now: Nanoseconds) -> Segment {
        let is_reply = self.state == State::SynReceived;
        let peer = self.handshake.peer_options;
        let offers = |ours: bool, theirs: bool| ours && (!is_reply || theirs);
        let mut flags = Flags::SYN;
        if is_reply {
            flags |= Flags::ACK;
        }
        if offers(self.settings.ecn != EcnMode::Off, peer.ecn) {
            flags |= if is_reply { Flags::ECE } else { Flags::ECE | Flags::CWR };
        }
        let has_timestamps =
            self.settings.timestamps && if is_reply { peer.timestamps } else { self.settings.timestamps_offered };
        let timestamps = has_timestamps.then(|| self.timestamps.option(now));
        self.handshake.is_due = false;
        if self.handshake.is_ambiguous {
            self.statistics.retransmitted_segments += 1;
        }
        self.receiver.acknowledged();
        let window = self.receiver.opening_window(is_reply, timestamps.is_some());
        Segment {
            flags,
            sequence: number(0, self.sender.initial),
            acknowledgement: if is_reply { self.receiver.acknowledgement() } else { 0 },
            window,
            timestamps,
            maximum_segment_size: Some(self.settings.announced_segment_size()),
            window_scale: self.settings.offered_window_scale().filter(|_| offers(true, peer.window_scale.is_some())),
            sack_permitted: offers(self.settings.sack, peer.sack),
            option_layout: self.settings.stack.option_layout(),
            ecn: Ecn::NotCapable,
            ..self.blank_segment()
        }
    }
}

//! What one end of a connection is configured to do.

use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};

use crate::control::ControlKind;
use crate::packets::segment::OptionLayout;

/// How congestion marks are echoed and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnMode {
    #[default]
    Off,
    /// Echoed until the sender signals its reduction (CWR), once in each window (RFC 3168, section 6.1).
    Standard,
    /// Each mark is echoed once and the congestion control decides what it means (TCP-Jersey's congestion warning).
    EveryPacket,
}

/// How losses are repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Fast retransmit, then slow start from one segment.
    Tahoe,
    /// Fast retransmit and fast recovery, which the first new ACK ends (RFC 5681, section 3.2).
    Reno,
    /// Fast recovery until all that was in flight is acknowledged (RFC 6582).
    NewReno,
    /// Recovery by the selective acknowledgements of the peer (RFC 6675); NewReno where the peer gives none.
    #[default]
    Sack,
    /// SACK recovery with PRR (RFC 6937) and RACK's loss detection by time (RFC 8985), as Linux has them.
    Rack,
}

/// What counts timestamps from one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimestampSource {
    /// Each connection, from a number of its own (RFC 7323, section 5.4).
    #[default]
    Connection,
    /// The machine, for all its connections: its uptime shows.
    Machine,
}

/// Whose choices an end makes where the RFCs leave some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stack {
    /// No kernel's: the whole receive buffer is window from the start, a segment leaves as soon as the windows have room
    /// for it, and only the end of a write is pushed.
    #[default]
    Ideal,
    /// Linux's: windows and delayed ACKs ([`Settings::receive_buffer_bytes`] is tcp_rmem\[2\]), Nagle's algorithm in
    /// Minshall's form, segmentation offload with its pushes, the retransmission timer's variance, IP identifications.
    Linux,
    /// Windows 10 and 11: the order of its options, windows, delayed ACKs, IP identifications that count by destination.
    Windows,
    /// macOS and iOS: likewise, from the sources of xnu; no IP identifications.
    Darwin,
}

impl Stack {
    /// The order of its options in a SYN.
    #[must_use]
    pub const fn option_layout(self) -> OptionLayout {
        match self {
            Self::Ideal | Self::Linux => OptionLayout::ScaleLast,
            Self::Windows => OptionLayout::ScaleSecond,
            Self::Darwin => OptionLayout::SackLast,
        }
    }
}

/// Acknowledging less often than every segment (RFC 5681, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DelayedAcknowledgement {
    /// The largest number of segments that one ACK may answer.
    pub every: u32,
    /// The longest time between a segment and its ACK.
    pub timeout: Nanoseconds,
}

impl Default for DelayedAcknowledgement {
    /// Two segments (RFC 5681) and Linux's 40 ms.
    fn default() -> Self {
        Self { every: 2, timeout: 40 * MILLISECOND }
    }
}

/// How the retransmission timeout follows from round-trip samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RetransmissionEstimator {
    /// From one sample a round trip; the least timeout bounds the sum.
    #[default]
    Rfc6298,
    /// From each ACK's; the least timeout bounds what is added to the smoothed round-trip time.
    Linux,
    /// From each ACK's; the least timeout is added to the sum.
    Darwin,
}

/// Bounds of the retransmission timeout (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetransmissionSettings {
    /// The timeout before the first round-trip sample.
    pub initial: Nanoseconds,
    pub minimum: Nanoseconds,
    pub maximum: Nanoseconds,
    /// G of RFC 6298: the least that is added to the smoothed round-trip time.
    pub clock_granularity: Nanoseconds,
    pub estimator: RetransmissionEstimator,
}

impl RetransmissionSettings {
    /// The values of the papers: 3 s, 1 s and 60 s (RFC 2988's initial value; seed 001, section 4).
    pub const CLASSIC: Self = Self {
        initial: 3 * SECOND,
        minimum: SECOND,
        maximum: 60 * SECOND,
        clock_granularity: MILLISECOND,
        estimator: RetransmissionEstimator::Rfc6298,
    };
}

impl Default for RetransmissionSettings {
    /// Today's: 1 s (RFC 6298), 200 ms (Linux) and 120 s (Linux).
    fn default() -> Self {
        Self {
            initial: SECOND,
            minimum: 200 * MILLISECOND,
            maximum: 120 * SECOND,
            clock_granularity: MILLISECOND,
            estimator: RetransmissionEstimator::default(),
        }
    }
}

/// Settings of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub stack: Stack,
    /// The machine and its programs take time (see [`crate::ProcessingSettings`]).
    pub takes_time: bool,
    /// Segments are spaced out whatever the control ([`Stack::Linux`] with the queueing discipline fq): twice, in congestion
    /// avoidance 1.2 times as fast as a window a round trip.
    pub pacing: bool,
    /// Announced in the SYN over IPv4, and the most that is sent: payload and TCP options. Over IPv6, whose header is 20
    /// bytes longer, it is that much less (see [`Settings::announced_segment_size`]).
    pub maximum_segment_size: u16,
    /// Data held for the application to read, out of order or in order.
    pub receive_buffer_bytes: u64,
    /// Data held that is not acknowledged or not sent yet.
    pub send_buffer_bytes: u64,
    pub initial_window_segments: u32,
    /// `u64::MAX` for none.
    pub initial_slow_start_threshold_bytes: u64,
    /// Offered in the SYN (RFC 7323, section 2) up to [`Settings::offered_window_scale`]; `None` offers none.
    pub window_scale: Option<u8>,
    pub timestamps: bool,
    /// They are offered in a SYN, too, not only where the peer offers them.
    pub timestamps_offered: bool,
    /// Selective acknowledgements are offered and, if both ends offer them, sent.
    pub sack: bool,
    /// Duplicates are reported in the first SACK block (RFC 2883).
    pub duplicate_sack: bool,
    pub ecn: EcnMode,
    /// `None` acknowledges every segment.
    pub delayed_acknowledgement: Option<DelayedAcknowledgement>,
    /// The number of segments at the start that are acknowledged at once, as Linux does while the peer is in slow
    /// start.
    pub quick_acknowledgements: u32,
    /// New data on the first two duplicates (RFC 3042).
    pub limited_transmit: bool,
    pub retransmission: RetransmissionSettings,
    pub recovery: Recovery,
    pub control: ControlKind,
    /// See [`crate::control::ControlSettings::byte_counting_limit_segments`].
    pub byte_counting_limit_segments: Option<u32>,
    /// Back to the initial window after an idle retransmission timeout (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
    /// SYNs (or SYN-ACKs) sent again before giving up.
    pub handshake_retries: u32,
    /// Times that the same data is sent again by the timer before giving up (R2 of RFC 9293, section 3.8.3).
    pub retransmission_retries: u32,
    /// How long the end that closed first keeps the connection (twice the segment lifetime; RFC 9293, section 3.6.1).
    pub time_wait: Nanoseconds,
    pub time_to_live: u8,
    pub version_6: bool,
    pub initial_sequence_number: u32,
    /// Whether each connection of a machine is to be given a `timestamp_offset` of its own.
    pub timestamp_source: TimestampSource,
    /// The timestamp clock's value at time 0.
    pub timestamp_offset: u32,
    /// One step of the timestamp clock: 1 ms to 1 s (RFC 7323, section 5.4).
    pub timestamp_tick: Nanoseconds,
    /// The IP identification of the first packet; each further packet adds 1.
    pub ip_identification: u16,
    /// Handles the commonest segments on the fast path (see [`crate::Connection`]). The packets are the same without
    /// it; it is off where tests and measurements compare both.
    pub header_prediction: bool,
}

impl Default for Settings {
    /// A host of today without CUBIC.
    fn default() -> Self {
        Self {
            stack: Stack::default(),
            takes_time: false,
            pacing: false,
            maximum_segment_size: 1460,
            receive_buffer_bytes: 4 << 20,
            send_buffer_bytes: 4 << 20,
            initial_window_segments: 10,
            initial_slow_start_threshold_bytes: u64::MAX,
            window_scale: Some(7),
            timestamps: true,
            timestamps_offered: true,
            sack: true,
            duplicate_sack: true,
            ecn: EcnMode::Off,
            delayed_acknowledgement: Some(DelayedAcknowledgement::default()),
            quick_acknowledgements: 16,
            limited_transmit: true,
            retransmission: RetransmissionSettings::default(),
            recovery: Recovery::default(),
            control: ControlKind::default(),
            byte_counting_limit_segments: None,
            restart_after_idle: true,
            handshake_retries: 6,
            retransmission_retries: 15,
            time_wait: 60 * SECOND,
            time_to_live: 64,
            version_6: false,
            initial_sequence_number: 0,
            timestamp_source: TimestampSource::default(),
            timestamp_offset: 0,
            timestamp_tick: MILLISECOND,
            ip_identification: 0,
            header_prediction: true,
        }
    }
}

/// What an IPv6 header takes more than one of IPv4.
const MORE_HEADER_BYTES: u16 = 20;
const LEAST_SEGMENT_SIZE: u16 = 64;

impl Settings {
    /// The maximum segment size over the connection's IP version, for packets of one length over both (RFC 8200, 8.3).
    #[must_use]
    pub fn announced_segment_size(&self) -> u16 {
        if self.version_6 {
            self.maximum_segment_size.saturating_sub(MORE_HEADER_BYTES).max(LEAST_SEGMENT_SIZE)
        } else {
            self.maximum_segment_size
        }
    }

    /// The scale that is offered: at most 14 (RFC 7323, section 2.3), and so that a step is at most an eighth of the
    /// buffer, because a window is rounded down to whole steps.
    #[must_use]
    pub fn offered_window_scale(&self) -> Option<u8> {
        let largest = (self.receive_buffer_bytes / 8).max(1).ilog2();
        self.window_scale.map(|scale| u32::from(scale).min(14).min(largest) as u8)
    }
}

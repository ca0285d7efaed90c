//! Congestion control: how much a sender may have in flight, behind one trait.
//!
//! The sender detects losses and repairs them (see [`crate::Recovery`]); a control only sets the window, the slow-start
//! threshold and, if it paces, the rate. Recovery inflates the window by itself where an algorithm asks for it (RFC 5681,
//! section 3.2, steps 4 and 5): a control's window never contains that inflation.

mod bandwidth_filter;
mod bbr;
mod cubic;
mod dispatch;
mod full_pipe;
mod hystart;
mod hystart_plus_plus;
mod jersey;
mod linux_cubic;
#[cfg(test)]
mod periodic_loss;
mod reno;
#[cfg(test)]
mod transfers;
mod unlimited;

use pepscope_path::Nanoseconds;

pub use bbr::{Bbr, BbrState};
pub use cubic::Cubic;
pub(crate) use dispatch::Control;
pub use jersey::{BandwidthEstimate, Jersey};
pub use linux_cubic::LinuxCubic;
pub use reno::Reno;
pub use unlimited::Unlimited;

/// What a control is built from once a connection is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlSettings {
    /// Payload of a full segment, options taken off.
    pub maximum_segment_size: u32,
    pub initial_window_bytes: u64,
    /// `u64::MAX` for none.
    pub initial_slow_start_threshold_bytes: u64,
    /// Segments by which one ACK may open the window in slow start, counting bytes as RFC 3465 has it; `None` counts
    /// ACKs, at most one segment each (RFC 5681, section 3.1), as ns-2 does, and with [`LinuxCubic`] all segments.
    pub byte_counting_limit_segments: Option<u32>,
}

/// How fast data was delivered to the peer (draft-cheng-iccrg-delivery-rate-estimation, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    pub delivery_rate_bytes_s: u64,
    /// The sender had nothing more to send when it sent the segment sampled: the rate is a lower bound.
    pub is_application_limited: bool,
    /// [`Acknowledged::delivered_bytes`] as it was when the segment was sent, which tells rounds apart.
    pub delivered_bytes_when_sent: u64,
}

/// What one ACK says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    pub now: Nanoseconds,
    /// By which the cumulative acknowledgement advanced; 0 for a duplicate.
    pub newly_acknowledged_bytes: u64,
    /// Acknowledged cumulatively or selectively for the first time; without SACK a duplicate counts for one segment.
    pub newly_delivered_bytes: u64,
    /// All that was delivered since the start.
    pub delivered_bytes: u64,
    /// In flight before this ACK.
    pub in_flight_bytes: u64,
    /// From the last transmission of the newest segment acknowledged, if that was not sent twice (Karn) or if
    /// timestamps tell which one arrived.
    pub round_trip_time: Option<Nanoseconds>,
    /// Given if [`CongestionControl::needs_rate_samples`].
    pub rate_sample: Option<RateSample>,
    /// The ACK echoes a congestion mark.
    pub marked: bool,
    /// The sender is in fast recovery.
    pub in_recovery: bool,
    /// The congestion window, not the application or the peer, limited what was in flight before this ACK.
    pub is_window_limited: bool,
}

/// Why a sender must slow down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Duplicate ACKs or SACK blocks reveal a loss and fast recovery begins.
    FastRetransmit,
    /// The same with a sender that has no fast recovery (Tahoe): it goes on from one segment.
    FastRetransmitWithoutRecovery,
    /// The retransmission timer expired.
    Timeout,
    /// The peer echoed a congestion mark; reported once a window in standard ECN (RFC 3168, section 6.1.2).
    Mark,
}

/// One reason to slow down, at most once a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    pub now: Nanoseconds,
    pub cause: Cause,
    /// Sent and not acknowledged, what is lost included (FlightSize of RFC 5681).
    pub in_flight_bytes: u64,
    /// The timer expired again for the same data: the threshold keeps its value (RFC 5681, section 3.1).
    pub is_repeated: bool,
}

/// What a control makes of a loss that duplicate ACKs reveal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossMeaning {
    /// [`CongestionControl::on_congestion`] follows.
    Congestion,
    /// The link corrupted it: it is retransmitted and the window stays.
    Corruption,
}

/// A congestion-control algorithm. All windows are in bytes and at least one segment.
pub trait CongestionControl: Send + core::fmt::Debug {
    /// An ACK advanced; in recovery too ([`Acknowledged::in_recovery`]).
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged);

    /// An ACK did not advance while data was in flight.
    fn on_duplicate(&mut self, _acknowledged: &Acknowledged) {}

    /// Asked when duplicates first reveal a loss, after [`CongestionControl::on_duplicate`] for the last of them.
    fn judge_loss(&self) -> LossMeaning {
        LossMeaning::Congestion
    }

    /// Slow down; [`Cause`] says why.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// All that was in flight when fast recovery began is acknowledged (or, in Reno's, the first of it).
    fn on_recovery_ended(&mut self, _now: Nanoseconds, _in_flight_bytes: u64) {}

    /// Nothing was sent for longer than the retransmission timeout (RFC 5681, section 4.1); only if so configured.
    fn on_idle(&mut self, _now: Nanoseconds) {}

    /// A segment leaves, `in_flight_bytes` before it.
    fn on_sent(&mut self, _now: Nanoseconds, _in_flight_bytes: u64, _payload_bytes: u32) {}

    /// The congestion window.
    fn window_bytes(&self) -> u64;

    /// `u64::MAX` until there was a loss.
    fn slow_start_threshold_bytes(&self) -> u64;

    /// The rate of payload to which sending is spaced out; `None` sends as fast as the window lets it.
    fn pacing_rate_bytes_s(&self) -> Option<u64> {
        None
    }

    /// What the control believes the path can deliver, if it estimates that.
    fn estimated_bandwidth_bytes_s(&self) -> Option<u64> {
        None
    }

    /// Whether [`Acknowledged::rate_sample`] is wanted, which takes more time and memory a segment.
    fn needs_rate_samples(&self) -> bool {
        false
    }

    /// Whether [`CongestionControl::on_sent`] is wanted.
    fn needs_sent(&self) -> bool {
        false
    }
}

/// The congestion controls that a connection can be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ControlKind {
    /// Additive increase, multiplicative decrease (RFC 5681).
    #[default]
    Reno,
    /// RFC 9438; with `hystart`, slow start as in RFC 9406.
    Cubic { hystart: bool },
    /// CUBIC with HyStart as Linux has them.
    LinuxCubic,
    /// BBR version 1, which paces.
    Bbr,
    /// TCP-Jersey (seed 002); wants [`crate::EcnMode::EveryPacket`] at both ends.
    Jersey,
    /// None: for a sender that is held back from outside.
    Unlimited,
}

impl ControlKind {
    /// A control of this kind at the start of a connection.
    #[must_use]
    pub fn build(self, settings: &ControlSettings) -> Box<dyn CongestionControl> {
        match self {
            Self::Reno => Box::new(Reno::new(settings)),
            Self::Cubic { hystart } => Box::new(Cubic::new(settings, hystart)),
            Self::LinuxCubic => Box::new(LinuxCubic::new(settings)),
            Self::Bbr => Box::new(Bbr::new(settings)),
            Self::Jersey => Box::new(Jersey::new(settings)),
            Self::Unlimited => Box::new(Unlimited),
        }
    }
}

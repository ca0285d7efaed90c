//! Congestion control: how much a sender may have in flight, behind one trait.
//!
//! The sender detects losses and repairs them (see [`crate::Recovery`]); a control only sets the window, the slow-start
//! threshold and, if it paces, the rate. Where an algorithm inflates the window in fast recovery (RFC 5681, section 3.2,
//! steps 4 and 5), the sender does it: the window of a control never contains that inflation.

mod bandwidth_filter;
mod dispatch;
mod full_pipe;
mod hystart;
#[cfg(test)]
mod ideal_path;
mod kind;
#[cfg(test)]
mod periodic_loss;
mod plug_ins;
#[cfg(test)]
mod transfers;
mod unlimited;

use pepscope_path::Nanoseconds;

pub use bbr::{Bbr, BbrState};
pub use bbr3::{Bbr3, Bbr3State};
pub use cubic::Cubic;
pub(crate) use dispatch::Control;
pub use jersey::{BandwidthEstimate, Jersey};
#[cfg(test)]
use kind::tests::kind;
pub use kind::ControlKind;
pub use plug_ins::{ControlFactory, PLUG_IN_PREFIX};
pub use reno::{Reno, RENO};
pub use unlimited::{Unlimited, UNLIMITED};

/// Lists the files of congestion controls. Each has a constant `KINDS` that names what it offers.
macro_rules! congestion_controls {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// The congestion controls that a scenario can name, the default first.
        pub const CONGESTION_CONTROLS: &[&[ControlKind]] = &[$($file::KINDS),*];
    };
}

congestion_controls! {
    cubic,
    reno,
    bbr,
    bbr3,
    jersey,
}

/// What a control is built from once a connection is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlSettings {
    /// Payload of a full segment, options taken off.
    pub maximum_segment_size: u32,
    pub initial_window_bytes: u64,
    /// `u64::MAX` for none.
    pub initial_slow_start_threshold_bytes: u64,
    /// Segments by which one ACK may open the window in slow start, counting bytes as RFC 3465 has it; `None` counts
    /// ACKs, at most one segment each (RFC 5681, section 3.1), as ns-2 does, and with [`Cubic::linux`] all segments.
    pub byte_counting_limit_segments: Option<u32>,
    /// The sender spaces segments out ([`crate::Settings::pacing`]).
    pub is_paced: bool,
}

/// How fast data was delivered to the peer (draft-cheng-iccrg-delivery-rate-estimation, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    pub delivery_rate_bytes_s: u64,
    /// The sender had nothing more to send when it sent the segment sampled: the rate is a lower bound.
    pub is_application_limited: bool,
    /// [`Acknowledged::delivered_bytes`] as it was when the segment was sent; rounds are counted by it.
    pub delivered_bytes_when_sent: u64,
    /// What was in flight once the segment was sent, itself included.
    pub in_flight_bytes_when_sent: u64,
    /// What was declared lost since.
    pub lost_bytes: u64,
}

/// What an ACK showed to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossSample {
    pub newly_lost_bytes: u64,
    /// Of the segment sent first of these: what was in flight once it was sent, itself included, and what was declared lost
    /// since.
    pub in_flight_bytes_when_sent: u64,
    pub lost_bytes: u64,
    pub is_application_limited: bool,
}

/// One ACK, as the sender understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    pub now: Nanoseconds,
    /// The bytes by which the cumulative acknowledgement advanced; 0 for a duplicate ACK.
    pub newly_acknowledged_bytes: u64,
    /// The bytes acknowledged for the first time, cumulatively or by SACK; without SACK a duplicate ACK counts for one
    /// segment.
    pub newly_delivered_bytes: u64,
    /// The bytes delivered since the start.
    pub delivered_bytes: u64,
    /// The bytes in flight before this ACK.
    pub in_flight_bytes: u64,
    /// From the last transmission of the newest segment acknowledged, if that was sent once (Karn) or if
    /// timestamps show which transmission arrived.
    pub round_trip_time: Option<Nanoseconds>,
    /// Given if the control needs it ([`Needs::rate_samples`]).
    pub rate_sample: Option<RateSample>,
    /// Given if the control needs rate samples and something was declared lost since the last ACK.
    pub loss_sample: Option<LossSample>,
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
    /// Duplicate ACKs reveal a loss to a sender without fast recovery (Tahoe), which goes on from one segment.
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

/// How a control interprets a loss that duplicate ACKs reveal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossMeaning {
    /// The path is congested: [`CongestionControl::on_congestion`] follows.
    Congestion,
    /// The link corrupted the segment: it is retransmitted and the window stays.
    Corruption,
}

/// What a control needs besides ACKs and losses. A sender whose control needs any of it has no header prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Delivery rates ([`Acknowledged::rate_sample`]), which take more time and memory a segment.
    pub rate_samples: bool,
    /// A call for each segment that leaves ([`CongestionControl::on_sent`]).
    pub sent_segments: bool,
    /// Segments that are spaced out ([`CongestionControl::pacing_rate_bytes_s`]).
    pub pacing: bool,
}

/// A congestion-control algorithm. All windows are in bytes and at least one segment.
pub trait CongestionControl: Send + core::fmt::Debug {
    /// An ACK advanced; in recovery too ([`Acknowledged::in_recovery`]).
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged);

    /// An ACK did not advance while data was in flight.
    fn on_duplicate(&mut self, _acknowledged: &Acknowledged) {}

    /// Interprets a loss when duplicate ACKs first reveal it, after [`CongestionControl::on_duplicate`] for the last of them.
    fn judge_loss(&self) -> LossMeaning {
        LossMeaning::Congestion
    }

    /// Slows down; [`Cause`] is the reason.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// The last reduction was wrong: the timeout was spurious, or what seemed lost had arrived. The window and the
    /// threshold before it are given.
    fn on_spurious_congestion(&mut self, _window_bytes: u64, _threshold_bytes: u64) {}

    /// All that was in flight when fast recovery began is acknowledged (or, in Reno's, the first of it).
    fn on_recovery_ended(&mut self, _now: Nanoseconds, _in_flight_bytes: u64) {}

    /// Nothing was sent for longer than the retransmission timeout (RFC 5681, section 4.1); only if so configured.
    fn on_idle(&mut self, _now: Nanoseconds) {}

    /// A segment leaves, with `in_flight_bytes` in flight before it. Called if the control needs it
    /// ([`Needs::sent_segments`]).
    fn on_sent(&mut self, _now: Nanoseconds, _in_flight_bytes: u64, _payload_bytes: u32) {}

    /// The congestion window.
    fn window_bytes(&self) -> u64;

    /// The slow-start threshold; `u64::MAX` until there was a loss.
    fn slow_start_threshold_bytes(&self) -> u64;

    /// The rate of payload at which segments are spaced out; `None` sends as fast as the window allows. Asked if the
    /// control needs pacing ([`Needs::pacing`]).
    fn pacing_rate_bytes_s(&self) -> Option<u64> {
        None
    }

    /// The bandwidth of the path that the control estimates, if it does.
    fn estimated_bandwidth_bytes_s(&self) -> Option<u64> {
        None
    }

    /// What the control needs besides ACKs and losses. The sender asks once, when the connection is established.
    fn needs(&self) -> Needs {
        Needs::default()
    }
}

//! When a line has sent a packet, given when the packet enters: enum dispatch to the transmitters that a line can have.

use crate::hop::Nanoseconds;
use crate::transmitters::opportunities::OpportunityTransmitter;
use crate::transmitters::rate_transmitter::RateTransmitter;
use crate::transmitters::serialisation::ConstantRate;

/// What sends the packets of a line, one after the other.
pub(crate) trait Transmitter {
    /// When the last bit of the next packet is out, if it comes at `now` and the one before is out at `busy_until`.
    fn finish(&mut self, now: Nanoseconds, busy_until: Nanoseconds, bytes: u32) -> Nanoseconds;

    /// The typical time of a packet of `bytes`, in seconds.
    fn packet_s(&self, bytes: u32) -> f64;
}

#[derive(Clone, Debug)]
pub(crate) enum Transmission {
    /// Takes no time: no packet waits.
    Instant,
    Constant(ConstantRate),
    Rates(Box<RateTransmitter>),
    Opportunities(Box<OpportunityTransmitter>),
}

impl Transmission {
    #[inline(always)]
    pub(crate) fn takes_time(&self) -> bool {
        !matches!(self, Self::Instant)
    }

    /// Radio frames that a packet of `bytes` is sent in; 0 where none are sent.
    #[inline]
    pub(crate) fn frames(&self, bytes: u32) -> u32 {
        match self {
            Self::Rates(transmitter) => transmitter.frames(bytes),
            Self::Instant | Self::Constant(_) | Self::Opportunities(_) => 0,
        }
    }

    #[inline(never)]
    fn finish_otherwise(&mut self, now: Nanoseconds, busy_until: Nanoseconds, bytes: u32) -> Nanoseconds {
        match self {
            Self::Opportunities(transmitter) => transmitter.finish(now, busy_until, bytes),
            Self::Instant | Self::Constant(_) | Self::Rates(_) => now,
        }
    }

    /// How many frames of the packet in service, which is out at `departure`, are still to be sent at `now`.
    pub(crate) fn frames_left(&self, now: Nanoseconds, departure: Nanoseconds, bytes: u32) -> u32 {
        match self {
            Self::Rates(transmitter) => transmitter.frames_left(now, departure, bytes),
            Self::Instant | Self::Constant(_) | Self::Opportunities(_) => 0,
        }
    }
}

impl Transmitter for Transmission {
    #[inline(always)]
    fn finish(&mut self, now: Nanoseconds, busy_until: Nanoseconds, bytes: u32) -> Nanoseconds {
        if let Self::Constant(transmitter) = self {
            return transmitter.finish(now, busy_until, bytes);
        }
        if let Self::Rates(transmitter) = self {
            return transmitter.finish(now, busy_until, bytes);
        }
        self.finish_otherwise(now, busy_until, bytes)
    }

    fn packet_s(&self, bytes: u32) -> f64 {
        match self {
            Self::Instant => 0.0,
            Self::Constant(transmitter) => transmitter.packet_s(bytes),
            Self::Rates(transmitter) => transmitter.packet_s(bytes),
            Self::Opportunities(transmitter) => transmitter.packet_s(bytes),
        }
    }
}

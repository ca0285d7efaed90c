//! One segment in flight.

use pepscope_path::Nanoseconds;

pub(super) const SACKED: u8 = 1;
pub(super) const LOST: u8 = 2;
/// Sent again since it was declared lost.
pub(super) const RESENT: u8 = 4;
pub(super) const EVER_RESENT: u8 = 8;
pub(super) const FIN: u8 = 16;

/// A segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub start: u64,
    /// The length in sequence numbers: FIN counts.
    pub length: u32,
    pub(super) flags: u8,
    pub sent_at: Nanoseconds,
}

impl Sent {
    #[inline]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    #[inline]
    pub fn has_fin(&self) -> bool {
        self.flags & FIN != 0
    }
}

/// State of the connection when a segment was sent, for the delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliveryStamp {
    pub delivered_bytes: u64,
    pub delivered_at: Nanoseconds,
    pub first_sent_at: Nanoseconds,
    pub sent_at: Nanoseconds,
    pub is_application_limited: bool,
    /// What was in flight once it was sent, itself included, and all that had been declared lost.
    pub in_flight_bytes: u64,
    pub lost_bytes: u64,
}

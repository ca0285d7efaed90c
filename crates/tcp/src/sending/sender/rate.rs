//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation, section 3).

use pepscope_path::{Nanoseconds, SECOND};

use crate::control::{LossSample, RateSample};
use crate::sending::flight::{DeliveryStamp, Flight};

/// What a sample is made of; idle unless the control asks for samples.
#[derive(Clone, Debug)]
pub(super) struct DeliveryRate {
    is_wanted: bool,
    pub delivered_bytes: u64,
    delivered_at: Nanoseconds,
    first_sent_at: Nanoseconds,
    /// The sender ran out of data; deliveries up to here do not measure the path.
    limited_until: u64,
    /// What the control knows to be lost.
    told_lost_bytes: u64,
}

impl DeliveryRate {
    pub fn new(is_wanted: bool) -> Self {
        Self { is_wanted, delivered_bytes: 0, delivered_at: 0, first_sent_at: 0, limited_until: 0, told_lost_bytes: 0 }
    }

    /// The stamp of a segment that leaves.
    #[inline]
    pub fn stamp(&mut self, now: Nanoseconds, flight: &Flight, length: u64) -> DeliveryStamp {
        if !self.is_wanted {
            return DeliveryStamp::default();
        }
        if flight.pipe_bytes() == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        DeliveryStamp {
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            sent_at: now,
            is_application_limited: self.limited_until > 0,
            in_flight_bytes: flight.pipe_bytes() + length,
            lost_bytes: flight.ever_lost_bytes(),
        }
    }

    /// The sender has nothing to send although it may.
    #[inline]
    pub fn note_limit(&mut self, flight: &Flight) {
        if self.is_wanted {
            self.limited_until = (self.delivered_bytes + flight.pipe_bytes()).max(1);
        }
    }

    /// `bytes` were delivered, the segment sent last among them with `stamp`.
    #[inline]
    pub fn deliver(
        &mut self,
        now: Nanoseconds,
        bytes: u64,
        stamp: Option<DeliveryStamp>,
        flight: &Flight,
    ) -> Option<RateSample> {
        self.delivered_bytes += bytes;
        if !self.is_wanted {
            return None;
        }
        if bytes > 0 {
            self.delivered_at = now;
        }
        if self.delivered_bytes > self.limited_until {
            self.limited_until = 0;
        }
        let stamp = stamp?;
        self.first_sent_at = stamp.sent_at;
        let sending = stamp.sent_at.saturating_sub(stamp.first_sent_at);
        let acknowledging = now.saturating_sub(stamp.delivered_at);
        let interval = sending.max(acknowledging);
        if interval == 0 {
            return None;
        }
        let delivered = u128::from(self.delivered_bytes.saturating_sub(stamp.delivered_bytes));
        let rate = delivered * u128::from(SECOND) / u128::from(interval);
        Some(RateSample {
            delivery_rate_bytes_s: u64::try_from(rate).unwrap_or(u64::MAX),
            is_application_limited: stamp.is_application_limited,
            delivered_bytes_when_sent: stamp.delivered_bytes,
            in_flight_bytes_when_sent: stamp.in_flight_bytes,
            lost_bytes: flight.ever_lost_bytes() - stamp.lost_bytes,
        })
    }

    /// What was declared lost since the last call.
    #[inline]
    pub fn lose(&mut self, flight: &mut Flight) -> Option<LossSample> {
        if !self.is_wanted {
            return None;
        }
        let ever_lost_bytes = flight.ever_lost_bytes();
        let newly_lost_bytes = ever_lost_bytes - std::mem::replace(&mut self.told_lost_bytes, ever_lost_bytes);
        let first = flight.take_first_lost()?;
        (newly_lost_bytes > 0).then_some(LossSample {
            newly_lost_bytes,
            in_flight_bytes_when_sent: first.in_flight_bytes,
            lost_bytes: ever_lost_bytes - first.lost_bytes,
            is_application_limited: first.is_application_limited,
        })
    }
}

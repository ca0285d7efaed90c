//! How long a packet takes to be sent, without drift.

use crate::hop::Nanoseconds;
use crate::settings::SettingsError;
use crate::transmitters::transmission::Transmitter;

const NANOSECOND_BITS: u64 = 8_000_000_000; // nanoseconds a second, times bits a byte

/// Times of a transmitter of constant rate. What an integer nanosecond cuts off a back-to-back packet is added to the
/// next, so that n bytes take exactly 8e9 n / rate nanoseconds, rounded down once.
#[derive(Clone, Debug)]
pub(crate) struct Serialisation {
    rate_bit_s: u64,
    remainder: u64,
    /// The length of the last packet with its time: neighbours are mostly of one length, and divisions are slow.
    last_bytes: u32,
    last_quotient: u64,
    last_remainder: u64,
}

impl Serialisation {
    pub(crate) fn new(rate_bit_s: u64) -> Result<Self, SettingsError> {
        if rate_bit_s == 0 {
            return Err(SettingsError::new("rate_bit_s", rate_bit_s, "at least 1 bit/s"));
        }
        Ok(Self { rate_bit_s, remainder: 0, last_bytes: 0, last_quotient: 0, last_remainder: 0 })
    }

    /// The transmitter was idle: no fraction of a nanosecond is owed.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.remainder = 0;
    }

    /// Nanoseconds until the end of the next packet, counted from the (whole) nanosecond that ended the one before.
    #[inline(always)]
    pub(crate) fn advance(&mut self, bytes: u32) -> Nanoseconds {
        if bytes != self.last_bytes {
            self.divide(bytes);
        }
        // Both are less than the rate, and so is their sum less one rate, whether or not it fits a word.
        let (owed, carries) = self.remainder.overflowing_add(self.last_remainder);
        if carries || owed >= self.rate_bit_s {
            self.remainder = owed.wrapping_sub(self.rate_bit_s);
            self.last_quotient.saturating_add(1)
        } else {
            self.remainder = owed;
            self.last_quotient
        }
    }

    #[cold]
    fn divide(&mut self, bytes: u32) {
        let numerator = u128::from(bytes) * u128::from(NANOSECOND_BITS);
        let rate = u128::from(self.rate_bit_s);
        self.last_bytes = bytes;
        self.last_quotient = u64::try_from(numerator / rate).unwrap_or(u64::MAX);
        self.last_remainder = (numerator % rate) as u64;
    }
}

/// A transmitter of constant rate.
#[derive(Clone, Debug)]
pub(crate) struct ConstantRate {
    serialisation: Serialisation,
}

impl ConstantRate {
    pub(crate) fn new(rate_bit_s: u64) -> Result<Self, SettingsError> {
        Ok(Self { serialisation: Serialisation::new(rate_bit_s)? })
    }
}

impl Transmitter for ConstantRate {
    #[inline(always)]
    fn finish(&mut self, now: Nanoseconds, busy_until: Nanoseconds, bytes: u32) -> Nanoseconds {
        if busy_until < now {
            self.serialisation.begin();
        }
        busy_until.max(now).saturating_add(self.serialisation.advance(bytes))
    }

    fn packet_s(&self, bytes: u32) -> f64 {
        f64::from(bytes) * 8.0 / self.serialisation.rate_bit_s as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Serialisation;

    #[test]
    fn a_million_packets_do_not_drift() {
        for rate_bit_s in [7, 9_600, 64_000, 100_000_000, 3_333_333_333, 123_456_789_012, u64::MAX] {
            let mut line = Serialisation::new(rate_bit_s).unwrap();
            let bytes = (0..1_000_000u32).map(|packet| 40 + (packet / 3) % 1461);
            let mut total_bytes = 0;
            let mut time = 0;
            for length in bytes {
                time += line.advance(length);
                total_bytes += u128::from(length);
            }
            assert_eq!(u128::from(time), total_bytes * 8_000_000_000 / u128::from(rate_bit_s));
        }
    }

    #[test]
    fn no_rate_is_refused() {
        assert_eq!(Serialisation::new(0).unwrap_err().to_string(), "rate_bit_s must be at least 1 bit/s, got 0");
    }
}

//! pcapng time stamps: units of any decimal or binary fraction of a second, and an offset.

const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;

/// How an interface counts time; microseconds since the epoch unless options set another unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimestampUnit {
    /// Nanoseconds of one unit where that is a whole number, otherwise zero.
    whole_ns: u64,
    resolution: u8,
    offset_ns: i64,
}

impl Default for TimestampUnit {
    fn default() -> Self {
        TimestampUnit { whole_ns: 1_000, resolution: 6, offset_ns: 0 }
    }
}

impl TimestampUnit {
    /// `if_tsresol`: 10^-n, or 2^-n where the top bit is set.
    pub(crate) fn set_resolution(&mut self, resolution: u8) {
        self.resolution = resolution;
        self.whole_ns = match resolution {
            0..=9 => 10_u64.pow(9 - u32::from(resolution)),
            _ => 0,
        };
    }

    /// `if_tsoffset`: seconds to add to every time stamp.
    pub(crate) fn set_offset_s(&mut self, offset_s: i64) {
        self.offset_ns = offset_s.saturating_mul(1_000_000_000);
    }

    /// Nanoseconds since the epoch, saturating. What 64 bits of them cannot hold (some 292 years) is a time before the
    /// epoch (or before the offset): writers give it as a negative number, although the format has none.
    #[inline]
    pub(crate) fn nanoseconds(&self, units: u64) -> i64 {
        match units.checked_mul(self.whole_ns).map(i64::try_from) {
            Some(Ok(time_ns)) if self.whole_ns != 0 => time_ns.saturating_add(self.offset_ns),
            _ => self.wide_nanoseconds(units),
        }
    }

    #[cold]
    fn wide_nanoseconds(&self, units: u64) -> i64 {
        let mut time_ns = self.unbounded_nanoseconds(i128::from(units));
        if time_ns > i128::from(i64::MAX) && units > i64::MAX as u64 {
            time_ns = self.unbounded_nanoseconds(i128::from(units as i64));
        }
        let time_ns = time_ns + i128::from(self.offset_ns);
        time_ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    fn unbounded_nanoseconds(&self, units: i128) -> i128 {
        let exponent = u32::from(self.resolution & 0x7f);
        let scaled = units * NANOSECONDS_PER_SECOND;
        if self.resolution & 0x80 != 0 {
            scaled >> exponent.min(126)
        } else {
            10_i128.checked_pow(exponent).map_or(0, |divisor| scaled / divisor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(resolution: u8, offset_s: i64) -> TimestampUnit {
        let mut unit = TimestampUnit::default();
        unit.set_resolution(resolution);
        unit.set_offset_s(offset_s);
        unit
    }

    #[test]
    fn decimal_and_binary_fractions() {
        assert_eq!(TimestampUnit::default().nanoseconds(1_500_000), 1_500_000_000);
        assert_eq!(unit(9, 0).nanoseconds(7), 7);
        assert_eq!(unit(0, 0).nanoseconds(7), 7_000_000_000);
        assert_eq!(unit(12, 0).nanoseconds(7_999), 7);
        assert_eq!(unit(0x80 | 10, 0).nanoseconds(1536), 1_500_000_000);
        assert_eq!(unit(0x80 | 32, 0).nanoseconds(3 << 31), 1_500_000_000);
        assert_eq!(unit(6, -2).nanoseconds(5_000_000), 3_000_000_000);
    }

    #[test]
    fn absurd_values_saturate() {
        assert_eq!(unit(0, 0).nanoseconds(i64::MAX as u64), i64::MAX);
        assert_eq!(unit(0xff, 0).nanoseconds(u64::MAX), 0);
        assert_eq!(unit(0x7f, i64::MIN).nanoseconds(u64::MAX), i64::MIN);
    }

    #[test]
    fn what_64_bits_cannot_hold_is_negative() {
        assert_eq!(unit(6, 0).nanoseconds(-505_425_000_i64 as u64), -505_425_000_000);
        assert_eq!(unit(9, 3).nanoseconds(u64::MAX), 2_999_999_999);
        assert_eq!(unit(12, 0).nanoseconds(u64::MAX), 18_446_744_073_709_551, "213 days in picoseconds");
    }
}

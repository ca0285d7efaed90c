//! Meaning of a channel quality indicator: a transport format, a signal-to-interference ratio, an error rate.
//!
//! Formats are those of 3GPP TS 25.214, section 6A.2.3, tables 7A (terminal categories 1-6), 7B (7 and 8), 7C (9) and
//! 7D (10). The error rate is the fit of link-level curves by Brouwer, de Bruin et al., "Usage of link-level performance
//! indicators for HSDPA network-level simulations in E-UMTS" (ISSSTA 2004), which EURANE's input traces used as well.

/// The highest channel quality indicator; 0 means that no format can be received.
pub const HIGHEST_QUALITY: u8 = 30;

/// Difference of the signal-to-interference ratios of adjacent indicators, in dB (Brouwer et al.).
pub const QUALITY_STEP_DB: f64 = 1.02;

const QUALITY_OFFSET: f64 = 16.62; // Brouwer et al.: indicator = floor(SINR / 1.02 + 16.62)

/// Bits of the transport block and number of HS-PDSCH codes, for indicators 1 to 30.
const FORMATS: [(u32, u8); HIGHEST_QUALITY as usize] = [
    (137, 1),
    (173, 1),
    (233, 1),
    (317, 1),
    (377, 1),
    (461, 1),
    (650, 2),
    (792, 2),
    (931, 2),
    (1262, 3),
    (1483, 3),
    (1742, 3),
    (2279, 4),
    (2583, 4),
    (3319, 5),
    (3565, 5),
    (4189, 5),
    (4664, 5),
    (5287, 5),
    (5887, 5),
    (6554, 5),
    (7168, 5),
    (9719, 7),
    (11418, 8),
    (14411, 10),
    (17237, 12),
    (21754, 15),
    (23370, 15),
    (24222, 15),
    (25558, 15),
];

/// Terminal categories (3GPP TS 25.306, table 5.1a). The tables differ only in their largest format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Category {
    /// Five codes, 7168 bits.
    OneToSix,
    /// Ten codes, 14,411 bits.
    SevenAndEight,
    /// Twelve codes are used, 17,237 bits.
    Nine,
    /// Fifteen codes, 25,558 bits.
    #[default]
    Ten,
}

impl Category {
    /// The indicator above which the format does not grow.
    #[must_use]
    pub fn highest_format(self) -> u8 {
        match self {
            Self::OneToSix => 22,
            Self::SevenAndEight => 25,
            Self::Nine => 26,
            Self::Ten => HIGHEST_QUALITY,
        }
    }
}

/// How one transport block is sent in one transmission time interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportFormat {
    /// The indicator that it belongs to; 0 carries nothing.
    pub quality: u8,
    pub block_bits: u32,
    pub codes: u8,
}

impl TransportFormat {
    /// The format for `quality` (more than 30 counts as 30), as large as `category` can take.
    #[must_use]
    pub fn of(quality: u8, category: Category) -> Self {
        let quality = quality.min(category.highest_format());
        match quality.checked_sub(1).and_then(|index| FORMATS.get(usize::from(index))) {
            Some(&(block_bits, codes)) => Self { quality, block_bits, codes },
            None => Self::default(),
        }
    }

    /// How many frames of `frame_bits` fit beside a MAC-hs header of `header_bits`.
    #[must_use]
    pub fn frames(self, header_bits: u32, frame_bits: u32) -> u32 {
        self.block_bits.saturating_sub(header_bits) / frame_bits.max(1)
    }
}

/// The lowest signal-to-interference ratio, in dB, for which a terminal reports `quality` (at 10 % block errors).
#[must_use]
pub fn required_sinr_db(quality: u8) -> f64 {
    QUALITY_STEP_DB * (f64::from(quality) - QUALITY_OFFSET)
}

/// Finds indicators without a logarithm in each interval.
#[derive(Clone, Debug)]
pub struct QualityScale {
    thresholds: [f64; HIGHEST_QUALITY as usize],
}

impl Default for QualityScale {
    fn default() -> Self {
        let mut thresholds = [0.0; HIGHEST_QUALITY as usize];
        for (quality, threshold) in (1u8..).zip(&mut thresholds) {
            *threshold = from_db(required_sinr_db(quality));
        }
        Self { thresholds }
    }
}

impl QualityScale {
    /// The indicator of a signal-to-interference ratio given as a plain ratio.
    #[must_use]
    pub fn quality_of(&self, sinr: f64) -> u8 {
        self.thresholds.partition_point(|threshold| *threshold <= sinr) as u8
    }
}

/// Probability that a block in the format of `quality` is not decoded at `sinr_db` (Brouwer et al.; 1 for indicator 0).
#[must_use]
pub fn block_error_rate(quality: u8, sinr_db: f64) -> f64 {
    if quality == 0 {
        return 1.0;
    }
    let quality = f64::from(quality.min(HIGHEST_QUALITY));
    let spread = libm::sqrt(3.0) - libm::log10(quality);
    let exponent = 2.0 * (sinr_db - 1.03 * quality + 17.3) / spread;
    libm::pow(libm::pow(10.0, exponent) + 1.0, -1.0 / 0.7)
}

/// Decibels as a plain ratio.
#[must_use]
pub fn from_db(decibels: f64) -> f64 {
    libm::pow(10.0, decibels / 10.0)
}

/// A plain ratio in decibels.
#[must_use]
pub fn to_db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

#[cfg(test)]
mod tests {
    use super::{
        block_error_rate, from_db, required_sinr_db, Category, QualityScale, TransportFormat, FORMATS, HIGHEST_QUALITY,
    };

    #[test]
    fn formats_grow_with_quality_until_the_category_ends() {
        assert!(FORMATS.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(TransportFormat::of(30, Category::Ten).block_bits, 25_558);
        assert_eq!(TransportFormat::of(30, Category::OneToSix).block_bits, 7_168);
        assert_eq!(TransportFormat::of(30, Category::OneToSix).codes, 5);
        assert_eq!(TransportFormat::of(30, Category::SevenAndEight).block_bits, 14_411);
        assert_eq!(TransportFormat::of(30, Category::Nine).block_bits, 17_237);
        assert_eq!(TransportFormat::of(0, Category::Ten).block_bits, 0);
    }

    #[test]
    fn frames_leave_room_for_the_header() {
        let format = TransportFormat::of(22, Category::Ten);
        assert_eq!(format.frames(21, 336), 21); // (7168 - 21) / 336
        assert_eq!(TransportFormat::of(4, Category::Ten).frames(21, 336), 0);
        assert_eq!(TransportFormat::of(5, Category::Ten).frames(21, 336), 1);
    }

    #[test]
    fn a_terminal_reports_what_it_can_decode_nine_times_in_ten() {
        // TS 25.214 defines the indicator by a block error rate of at most 0.1; the two fits were made apart.
        for quality in 1..=HIGHEST_QUALITY {
            let rate = block_error_rate(quality, required_sinr_db(quality));
            assert!((0.02..0.2).contains(&rate), "{quality}: {rate}");
        }
    }

    #[test]
    fn errors_fall_with_the_ratio_and_rise_with_the_format() {
        let mut last = 1.0;
        for step in -200..200 {
            let rate = block_error_rate(15, f64::from(step) / 10.0);
            assert!(rate <= last && (0.0..=1.0).contains(&rate));
            last = rate;
        }
        assert!(block_error_rate(20, 0.0) > block_error_rate(15, 0.0));
        assert!((block_error_rate(0, 30.0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_scale_agrees_with_the_formula() {
        let scale = QualityScale::default();
        assert_eq!(scale.quality_of(from_db(-16.5)), 0);
        assert_eq!(scale.quality_of(from_db(20.0)), 30);
        for tenths in -155..135 {
            let sinr_db = f64::from(tenths) / 10.0 + 0.003;
            let expected = libm::floor(sinr_db / 1.02 + 16.62) as u8;
            assert_eq!(scale.quality_of(from_db(sinr_db)), expected, "{sinr_db}");
        }
    }
}

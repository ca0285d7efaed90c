//! What an LTE or NR link is made of.

use super::duplex::SlotPattern;
use crate::hsdpa::settings::Recovery;
use crate::hsdpa::validation::{at_least, between, share};
use crate::{MarkingSettings, Nanoseconds, QueueLimit, QueueSettings, SettingsError, MILLISECOND};

/// A cell with one or more terminals.
#[derive(Clone, Debug)]
pub struct LteSettings {
    /// Transmission time interval: 1 ms in LTE, 0.5 ms in NR at 30 kHz.
    pub tti: Nanoseconds,
    pub hybrid_arq: LteHybridArqSettings,
    /// How long a receiver waits for a missing block before it goes on (t-Reordering of 3GPP TS 36.322, 7.3).
    pub reordering_timeout: Nanoseconds,
    /// Retransmission by RLC of what hybrid ARQ lost, windows counted in bytes; `None` for unacknowledged mode.
    pub recovery: Option<Recovery>,
    pub requests: RequestSettings,
    /// Which intervals carry what, with time-division duplex; `None` where each direction has a band of its own.
    pub slots: Option<SlotPattern>,
    /// Index in this list = number of the terminal in its packets.
    pub users: Vec<LteUserSettings>,
}

impl Default for LteSettings {
    /// One terminal at 50 Mbit/s down and 10 up behind a buffer of 1.5 MB.
    fn default() -> Self {
        Self {
            tti: MILLISECOND,
            hybrid_arq: LteHybridArqSettings::default(),
            reordering_timeout: 40 * MILLISECOND,
            recovery: Some(Recovery {
                status_delay: 20 * MILLISECOND,
                maximum_transmissions: 8,
                window_frames: u32::MAX,
                discard_after: None,
            }),
            requests: RequestSettings::default(),
            slots: None,
            users: vec![LteUserSettings::default()],
        }
    }
}

/// Hybrid ARQ under a link adaptation that keeps the error rate at its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LteHybridArqSettings {
    /// The time from a transmission to the next one of the same block (LTE FDD: 8 ms, 3GPP TS 36.213, 8).
    pub round_trip: Nanoseconds,
    /// The time from the start of a transmission until it is decoded.
    pub decoding: Nanoseconds,
    /// Transmissions of a block before it is given up.
    pub maximum_transmissions: u8,
    /// Share of first transmissions that fail.
    pub block_error_rate: f64,
    /// The factor by which each further transmission fails less often, since the receiver combines it with earlier
    /// ones.
    pub combining_ratio: f64,
}

impl Default for LteHybridArqSettings {
    /// One first transmission in ten fails, and one second transmission in a hundred.
    fn default() -> Self {
        Self {
            round_trip: 8 * MILLISECOND,
            decoding: 4 * MILLISECOND,
            maximum_transmissions: 4,
            block_error_rate: 0.1,
            combining_ratio: 0.1,
        }
    }
}

impl LteHybridArqSettings {
    /// Probability that transmission number `transmission` (from 1) fails, given that those before did.
    #[must_use]
    pub fn failure(&self, transmission: u8) -> f64 {
        self.block_error_rate * libm::pow(self.combining_ratio, f64::from(transmission.saturating_sub(1)))
    }
}

/// How a terminal gets leave to send (3GPP TS 36.321, 5.4.3 to 5.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSettings {
    /// A terminal may ask once in this time (scheduling request).
    pub period: Nanoseconds,
    /// The time from a request, or a report of what is left, until the transmission that is granted.
    pub grant_delay: Nanoseconds,
    /// What the network grants on a bare request, not knowing how much there is.
    pub first_grant_bytes: u32,
}

impl Default for RequestSettings {
    /// Every 10 ms; 4 ms to the grant and 4 ms from there to the transmission; 200 bytes.
    fn default() -> Self {
        Self { period: 10 * MILLISECOND, grant_delay: 8 * MILLISECOND, first_grant_bytes: 200 }
    }
}

/// One terminal.
#[derive(Clone, Debug)]
pub struct LteUserSettings {
    pub down: RateSettings,
    pub up: RateSettings,
    pub down_queue: QueueLimit,
    pub up_queue: QueueLimit,
    /// The congestion marking of packets down.
    pub marking: Option<MarkingSettings>,
}

impl Default for LteUserSettings {
    fn default() -> Self {
        Self {
            down: RateSettings::Fixed { rate_bit_s: 50_000_000 },
            up: RateSettings::Fixed { rate_bit_s: 10_000_000 },
            down_queue: QueueLimit::Bytes(1_500_000),
            up_queue: QueueLimit::Bytes(1_500_000),
            marking: None,
        }
    }
}

/// What a terminal could be sent if it had every interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateSettings {
    /// One modulation and coding scheme.
    Fixed { rate_bit_s: u64 },
    /// A slowly varying channel under ideal link adaptation.
    Fading(FadingRateSettings),
}

/// Rate = layers * bandwidth * min(attenuation log2(1 + SINR), most), none below -10 dB (3GPP TR 36.942, A.1).
///
/// SINR in dB is a Gaussian process with the given mean and deviation; its correlation over a time t is exp(-t /
/// correlation).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FadingRateSettings {
    pub bandwidth_hz: f64,
    pub layers: u8,
    pub mean_sinr_db: f64,
    pub deviation_db: f64,
    pub correlation: Nanoseconds,
    /// The share of Shannon's bound that is reached: 0.6 down, 0.4 up.
    pub attenuation: f64,
    /// bit/s/Hz: 4.4 down, 2.0 up.
    pub most_bit_s_hz: f64,
}

impl LteSettings {
    /// Returns an error for an invalid value.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let arq = &self.hybrid_arq;
        between("tti", self.tti as f64, (1.0, 1e9), "from 1 ns to 1 s")?;
        at_least("decoding", arq.decoding as f64, self.tti as f64, "at least an interval")?;
        at_least("round_trip", arq.round_trip as f64, arq.decoding as f64, "at least the time to decode")?;
        // A block waits in a process of its own until its round trip is over.
        let most = 255.0 * self.tti as f64;
        between("round_trip", arq.round_trip as f64, (0.0, most), "at most 255 intervals")?;
        between("maximum_transmissions", f64::from(arq.maximum_transmissions), (1.0, 16.0), "from 1 to 16")?;
        share("block_error_rate", arq.block_error_rate)?;
        share("combining_ratio", arq.combining_ratio)?;
        at_least("request period", self.requests.period as f64, self.tti as f64, "at least an interval")?;
        at_least("grant_delay", self.requests.grant_delay as f64, self.tti as f64, "at least an interval")?;
        at_least("first_grant_bytes", f64::from(self.requests.first_grant_bytes), 1.0, "at least 1")?;
        if let Some(recovery) = self.recovery {
            let sendings = f64::from(recovery.maximum_transmissions);
            at_least("RLC maximum_transmissions", sendings, 1.0, "at least 1")?;
            at_least("RLC window", f64::from(recovery.window_frames), 1.0, "at least 1")?;
        }
        between("number of users", self.users.len() as f64, (1.0, f64::from(u16::MAX)), "from 1 to 65535")?;
        self.users.iter().try_for_each(|user| {
            user.down.check()?;
            user.up.check()?;
            QueueSettings { limit: user.down_queue, marking: user.marking, ..QueueSettings::default() }.check()?;
            QueueSettings { limit: user.up_queue, ..QueueSettings::default() }.check()
        })
    }
}

impl RateSettings {
    fn check(&self) -> Result<(), SettingsError> {
        match self {
            Self::Fixed { rate_bit_s } => at_least("rate_bit_s", *rate_bit_s as f64, 1.0, "at least 1 bit/s"),
            Self::Fading(fading) => {
                between("bandwidth_hz", fading.bandwidth_hz, (1.0, 1e10), "from 1 Hz to 10 GHz")?;
                between("layers", f64::from(fading.layers), (1.0, 8.0), "from 1 to 8")?;
                between("mean_sinr_db", fading.mean_sinr_db, (-50.0, 80.0), "from -50 to 80 dB")?;
                between("deviation_db", fading.deviation_db, (0.0, 30.0), "from 0 to 30 dB")?;
                at_least("correlation", fading.correlation as f64, 1.0, "at least 1 ns")?;
                between("attenuation", fading.attenuation, (0.0, 1.0), "from 0 to 1")?;
                between("most_bit_s_hz", fading.most_bit_s_hz, (0.0, 20.0), "from 0 to 20 bit/s/Hz")
            }
        }
    }
}

//! What a high-speed downlink is made of, and the papers' values.

use super::geometry::{Point, SECTORS_A_SITE, SITES};
use super::hybrid_arq::HybridArqSettings;
use super::multipath::Profile;
use super::scheduler::SchedulerKind;
use super::transport_format::Category;
use super::validation::{at_least, between, decibels, share};
use crate::{MarkingSettings, Nanoseconds, QueueLimit, QueueSettings, SettingsError, MILLISECOND};

/// A cell, or several, with all their terminals.
#[derive(Clone, Debug)]
pub struct HsdpaSettings {
    /// Transmission time interval.
    pub tti: Nanoseconds,
    /// Intervals between the measurement of a channel quality indicator and the transmission that relies on it.
    pub quality_delay_ttis: u32,
    pub scheduler: SchedulerKind,
    /// Time constant of the scheduler's averages in intervals (seed 002, table 2: Tc = 500).
    pub averaging_ttis: f64,
    /// Terminals that may share an interval by codes and power; 1 is pure time division, 4 is what HS-SCCH allows.
    pub users_a_tti: u8,
    /// HS-PDSCH codes of a cell.
    pub codes: u8,
    pub hybrid_arq: HybridArqSettings,
    /// How long a terminal waits for a missing block before it continues (T1 of 3GPP TS 25.321, 11.6.2), in intervals.
    pub reordering_ttis: u32,
    pub radio: Radio,
    /// Index in this list = number of the terminal in its packets.
    pub users: Vec<UserSettings>,
    pub uplink: UplinkSettings,
    /// How often each terminal's queue is reported upwards (seed 003: Ts); `None` for never.
    pub report_period: Option<Nanoseconds>,
}

/// The origin of signal and interference.
#[derive(Clone, Debug)]
pub enum Radio {
    Cellular(CellularSettings),
    SingleCell(SingleCellSettings),
}

/// Nineteen wrap-around sites of three sectors (seed 002, table 2).
#[derive(Clone, Debug)]
pub struct CellularSettings {
    pub site_distance_m: f64,
    /// The direction of the first sector of each site, counter-clockwise from the x axis.
    pub boresight_deg: f64,
    pub path_loss: PathLoss,
    pub shadowing: ShadowingSettings,
    /// Correlation of shadowing between sites; between sectors of a site it is 1.
    pub site_correlation: f64,
    /// Transmitted power of a sector.
    pub total_power_dbm: f64,
    /// Share of it that pilot and other common channels take (two times -10 dB).
    pub common_share: f64,
    pub antenna_gain_dbi: f64,
    pub noise_figure_db: f64,
    pub carrier_hz: f64,
    /// Share of their power that the other sectors transmit.
    pub other_cell_load: f64,
    pub dedicated: DedicatedSettings,
}

/// One cell in constant surroundings, as EURANE models it (seed 003, table 1).
///
/// With L the loss after antenna gain: ratio = (P - L) - 10 log10(10^((intra - L) / 10) + 10^(inter / 10)), in dB and
/// dBm.
#[derive(Clone, Debug)]
pub struct SingleCellSettings {
    pub power_dbm: f64,
    pub antenna_gain_dbi: f64,
    /// Interference of the own cell at the antenna.
    pub intra_cell_interference_dbm: f64,
    /// Interference of other cells at the terminal.
    pub inter_cell_interference_dbm: f64,
    pub path_loss: PathLoss,
    pub shadowing: ShadowingSettings,
    pub carrier_hz: f64,
}

/// Loss in dB = `intercept_db` + `slope_db` log10(distance / km).
#[derive(Clone, Copy, Debug)]
pub struct PathLoss {
    pub intercept_db: f64,
    pub slope_db: f64,
    /// The least distance between a terminal and a site.
    pub minimum_distance_m: f64,
}

impl Default for PathLoss {
    /// 3GPP TR 25.896, annex A: 128.1 + 37.6 log10 R, at least 35 m away.
    fn default() -> Self {
        Self { intercept_db: 128.1, slope_db: 37.6, minimum_distance_m: 35.0 }
    }
}

impl PathLoss {
    #[must_use]
    pub fn loss_db(&self, distance_m: f64) -> f64 {
        self.intercept_db + self.slope_db * libm::log10(distance_m.max(self.minimum_distance_m) / 1000.0)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ShadowingSettings {
    pub deviation_db: f64,
    pub correlation_distance_m: f64,
}

impl Default for ShadowingSettings {
    /// 8.0 dB is table 2 of seed 002 (8.9 in its text); 50 m is 3GPP TR 25.896, annex A.
    fn default() -> Self {
        Self { deviation_db: 8.0, correlation_distance_m: 50.0 }
    }
}

/// Speech on dedicated channels beside the shared one.
#[derive(Clone, Copy, Debug)]
pub struct DedicatedSettings {
    /// Duration of a frame of speech on the air.
    pub frame: Nanoseconds,
    /// Bytes that a dedicated channel carries in a frame (seed 002, table 4: PDU of 25 bytes with its header of 1).
    pub frame_bytes: u32,
    /// Ratio of chip energy to noise that power control keeps.
    pub target_db: f64,
    /// Greatest share of a sector's power for one channel; as much as the pilot by default.
    pub greatest_share: f64,
    /// Residual errors under power control.
    pub block_error_rate: f64,
}

impl Default for DedicatedSettings {
    /// 25 bytes in 20 ms are 10 kbit/s: a processing gain of 25.8 dB; with 7 dB of Eb/N0 that leaves -18.8 dB a chip.
    fn default() -> Self {
        Self {
            frame: 20 * MILLISECOND,
            frame_bytes: 25,
            target_db: 7.0 - 25.8,
            greatest_share: 0.1,
            block_error_rate: 0.01,
        }
    }
}

/// One terminal.
#[derive(Clone, Debug)]
pub struct UserSettings {
    pub placement: Placement,
    pub speed_km_h: f64,
    /// `None` for a channel without fast fading.
    pub profile: Option<Profile>,
    /// Fingers of its Rake receiver.
    pub fingers: usize,
    /// Highest Doppler shift where the channel and not the speed gives it (model E of seed 002: 1.5 Hz).
    pub doppler_hz: Option<f64>,
    pub category: Category,
    pub bearer: Bearer,
    /// Limit of the packets that wait at the Node-B for their first transmission; a packet that would exceed it is dropped completely.
    pub queue: QueueLimit,
    pub marking: Option<MarkingSettings>,
}

impl Default for UserSettings {
    fn default() -> Self {
        Self {
            placement: Placement::Anywhere,
            speed_km_h: 3.0,
            profile: Some(Profile::PedestrianA),
            fingers: 1,
            doppler_hz: None,
            category: Category::Ten,
            bearer: Bearer::default(),
            queue: QueueLimit::Frames(2000),
            marking: None,
        }
    }
}

/// The place of a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placement {
    /// Drawn uniformly from the whole area, served by the sector with the best reception.
    Anywhere,
    /// Drawn uniformly among the places that `sector` of `site` serves. Sites and sectors being alike, this is a place
    /// drawn from the whole area that counts as this sector's.
    InSector { site: usize, sector: usize },
    /// A point in the coordinates of [`super::geometry::Layout`]; the sector with the best reception serves the terminal.
    At(Point),
    /// A distance from a single cell, in metres.
    Distance(f64),
    /// No position: this ratio in dB on average, without shadowing.
    MeanSinr(f64),
}

/// The channel of a terminal's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// Shared channel, lost frames are sent again by the network (RLC acknowledged mode, 3GPP TS 25.322).
    Acknowledged(Framing, Recovery),
    /// Shared channel, a packet with a lost frame is lost (RLC unacknowledged mode).
    Unacknowledged(Framing),
    /// A channel of its own, which takes power from the shared one. Speech.
    Dedicated {
        /// Bytes of its compressed headers.
        compressed_header_bytes: Option<u32>,
    },
}

impl Default for Bearer {
    fn default() -> Self {
        Self::Acknowledged(Framing::default(), Recovery::default())
    }
}

/// How packets are cut. A packet starts a new frame: 512 bytes are 13 frames of 40 (seed 003's gamma).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    pub payload_bytes: u32,
    /// RLC header (3GPP TS 25.322, 9.2: 16 bits in acknowledged mode, 8 in unacknowledged).
    pub header_bits: u32,
    /// Bytes of compressed IP and transport headers; `None` for no compression.
    pub compressed_header_bytes: Option<u32>,
}

impl Default for Framing {
    fn default() -> Self {
        Self { payload_bytes: 40, header_bits: 16, compressed_header_bytes: None }
    }
}

impl Framing {
    /// Speech of seed 002, table 4: 25 bytes with a header of 1, addresses and ports compressed to 3.
    #[must_use]
    pub fn speech() -> Self {
        Self { payload_bytes: 24, header_bits: 8, compressed_header_bytes: Some(3) }
    }
}

/// Retransmission by the network of frames that hybrid ARQ lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The time from when the terminal misses frames until they wait at the Node-B again.
    pub status_delay: Nanoseconds,
    /// Transmissions of a frame before its packet is given up (MaxDAT).
    pub maximum_transmissions: u8,
    /// Frames that may be outstanding.
    pub window_frames: u32,
    /// How long after its arrival a packet is discarded, queued or sent (timer based SDU discard, 3GPP TS 25.322, 9.7.3.1).
    pub discard_after: Option<Nanoseconds>,
}

impl Default for Recovery {
    /// 80 ms of RLC round trip as in seed 001, ten transmissions, the window of TS 25.322's usual configuration.
    fn default() -> Self {
        Self { status_delay: 80 * MILLISECOND, maximum_transmissions: 10, window_frames: 2047, discard_after: None }
    }
}

/// A dedicated uplink channel for each terminal, with its own rate and delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UplinkSettings {
    pub rate_bit_s: u64,
    pub delay: Nanoseconds,
    pub queue_packets: usize,
}

impl Default for UplinkSettings {
    /// 64 kbit/s and 30 ms: the usual uplink of release 5, with one interleaver of 20 ms and the processing.
    fn default() -> Self {
        Self { rate_bit_s: 64_000, delay: 30 * MILLISECOND, queue_packets: 1000 }
    }
}

impl HsdpaSettings {
    /// Returns an error for an invalid value.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        between("tti", self.tti as f64, (1.0, 1e9), "from 1 ns to 1 s")?;
        between("quality_delay_ttis", f64::from(self.quality_delay_ttis), (0.0, 15.0), "from 0 to 15")?;
        at_least("averaging_ttis", self.averaging_ttis, 1.0, "at least 1")?;
        between("users_a_tti", f64::from(self.users_a_tti), (1.0, 15.0), "from 1 to 15")?;
        between("codes", f64::from(self.codes), (1.0, 15.0), "from 1 to 15")?;
        self.hybrid_arq.check()?;
        between("number of users", self.users.len() as f64, (1.0, f64::from(u16::MAX)), "from 1 to 65535")?;
        at_least("uplink rate_bit_s", self.uplink.rate_bit_s as f64, 1.0, "at least 1 bit/s")?;
        if let Some(period) = self.report_period {
            at_least("report_period", period as f64, self.tti as f64, "at least an interval")?;
        }
        match &self.radio {
            Radio::Cellular(cellular) => {
                cellular.check()?;
                cellular.dedicated.check(self.tti)?;
            }
            Radio::SingleCell(single) => single.check()?,
        }
        self.users.iter().try_for_each(|user| self.check_user(user))
    }

    fn check_user(&self, user: &UserSettings) -> Result<(), SettingsError> {
        between("speed_km_h", user.speed_km_h, (0.0, 1000.0), "from 0 to 1000 km/h")?;
        at_least("fingers", user.fingers as f64, 1.0, "at least 1")?;
        between("doppler_hz", user.doppler_hz.unwrap_or(0.0), (0.0, 1e6), "from 0 Hz to 1 MHz")?;
        match (&self.radio, user.placement) {
            (Radio::Cellular(_), Placement::InSector { site, sector }) => {
                between("placement site", site as f64, (0.0, (SITES - 1) as f64), "from 0 to 18")?;
                between("placement sector", sector as f64, (0.0, (SECTORS_A_SITE - 1) as f64), "from 0 to 2")?;
            }
            (Radio::SingleCell(_), Placement::Distance(metres)) => {
                at_least("placement distance", metres, 0.0, "at least 0 m")?;
            }
            (Radio::Cellular(_), Placement::At(place)) => {
                let reach = (-1e7, 1e7);
                between("placement x_m", place.x_m, reach, "within 10,000 km")?;
                between("placement y_m", place.y_m, reach, "within 10,000 km")?;
            }
            (_, Placement::MeanSinr(sinr_db)) => decibels("placement mean SINR", sinr_db)?,
            (Radio::Cellular(_), Placement::Anywhere) => {}
            (Radio::Cellular(_), Placement::Distance(_)) => {
                return Err(SettingsError::new("placement", "a distance", "a place or a sector among several cells"));
            }
            (Radio::SingleCell(_), _) => {
                return Err(SettingsError::new("placement", "a place in an area", "a distance in a single cell"));
            }
        }
        let framing = match user.bearer {
            Bearer::Acknowledged(framing, recovery) => {
                let sendings = f64::from(recovery.maximum_transmissions);
                at_least("maximum_transmissions", sendings, 1.0, "at least 1")?;
                at_least("window_frames", f64::from(recovery.window_frames), 1.0, "at least 1")?;
                framing
            }
            Bearer::Unacknowledged(framing) => framing,
            Bearer::Dedicated { .. } if matches!(self.radio, Radio::SingleCell(_)) => {
                return Err(SettingsError::new("bearer", "a dedicated channel", "a shared one in a single cell"));
            }
            Bearer::Dedicated { .. } => Framing::default(),
        };
        between("payload_bytes", f64::from(framing.payload_bytes), (1.0, 3000.0), "from 1 to 3000")?;
        between("header_bits", f64::from(framing.header_bits), (0.0, 1000.0), "from 0 to 1000")?;
        QueueSettings { limit: user.queue, marking: user.marking, ..QueueSettings::default() }.check()
    }
}

impl CellularSettings {
    fn check(&self) -> Result<(), SettingsError> {
        between("site_distance_m", self.site_distance_m, (1.0, 1e6), "from 1 m to 1000 km")?;
        between("boresight_deg", self.boresight_deg, (-360.0, 360.0), "from -360 to 360 degrees")?;
        share("site_correlation", self.site_correlation)?;
        share("common_share", self.common_share)?;
        share("other_cell_load", self.other_cell_load)?;
        decibels("total_power_dbm", self.total_power_dbm)?;
        decibels("antenna_gain_dbi", self.antenna_gain_dbi)?;
        decibels("noise_figure_db", self.noise_figure_db)?;
        check_propagation(self.carrier_hz, &self.path_loss, &self.shadowing)
    }
}

impl SingleCellSettings {
    fn check(&self) -> Result<(), SettingsError> {
        decibels("power_dbm", self.power_dbm)?;
        decibels("antenna_gain_dbi", self.antenna_gain_dbi)?;
        decibels("intra_cell_interference_dbm", self.intra_cell_interference_dbm)?;
        decibels("inter_cell_interference_dbm", self.inter_cell_interference_dbm)?;
        check_propagation(self.carrier_hz, &self.path_loss, &self.shadowing)
    }
}

fn check_propagation(
    carrier_hz: f64,
    path_loss: &PathLoss,
    shadowing: &ShadowingSettings,
) -> Result<(), SettingsError> {
    between("carrier_hz", carrier_hz, (1e6, 1e11), "from 1 MHz to 100 GHz")?;
    decibels("path loss intercept_db", path_loss.intercept_db)?;
    decibels("path loss slope_db", path_loss.slope_db)?;
    at_least("path loss minimum_distance_m", path_loss.minimum_distance_m, 0.1, "at least 0.1 m")?;
    between("shadowing deviation_db", shadowing.deviation_db, (0.0, 30.0), "from 0 to 30 dB")?;
    at_least("shadowing correlation_distance_m", shadowing.correlation_distance_m, 0.1, "at least 0.1 m")
}

impl DedicatedSettings {
    fn check(&self, tti: Nanoseconds) -> Result<(), SettingsError> {
        at_least("dedicated frame", self.frame as f64, tti as f64, "at least an interval")?;
        at_least("dedicated frame_bytes", f64::from(self.frame_bytes), 2.0, "at least 2")?;
        decibels("dedicated target_db", self.target_db)?;
        share("dedicated greatest_share", self.greatest_share)?;
        share("dedicated block_error_rate", self.block_error_rate)
    }
}

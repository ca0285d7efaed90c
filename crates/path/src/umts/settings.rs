//! Settings of a dedicated channel.

use crate::hop::{Nanoseconds, MILLISECOND};
use crate::queues::queue::QueueLimit;
use crate::settings::{check_probability, SettingsError};

use super::pdu::{status_runs, AMD_HEADER_BYTES};

/// A dedicated channel between the RNC and one mobile.
#[derive(Clone, Debug, PartialEq)]
pub struct DedicatedChannelSettings {
    pub down: TransportChannelSettings,
    pub up: TransportChannelSettings,
    pub compression: HeaderCompression,
    pub radio_link_control: RadioLinkControlSettings,
}

/// One direction on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportChannelSettings {
    /// Bits a second of RLC PDUs, headers included. What is no whole number of PDUs in an interval is carried over.
    pub rate_bit_s: u64,
    /// TTI: every so often, counted from time 0, a set of transport blocks begins.
    pub transmission_time_interval_ns: Nanoseconds,
    /// Probability that a transport block, which holds one PDU, is lost; independent of the others.
    pub block_error_rate: f64,
    /// From the end of the interval to the other RLC entity: propagation, Iub and processing. The papers' RLC
    /// round-trip time is both directions' intervals and delays.
    pub delay_ns: Nanoseconds,
    /// Packets (or their IP bytes) that are not yet wholly cut into PDUs; no frames.
    pub buffer: QueueLimit,
}

/// What PDCP makes of the headers (3GPP TS 25.323).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderCompression {
    /// IP and transport headers become at most so long; `None` leaves them alone.
    pub compressed_header_bytes: Option<u32>,
    /// PDCP's own header.
    pub pdcp_header_bytes: u32,
}

impl HeaderCompression {
    /// Length of the RLC SDU for an IP packet.
    #[must_use]
    pub fn sdu_bytes(&self, packet_bytes: u32, header_bytes: u32) -> u32 {
        let header_bytes = header_bytes.min(packet_bytes);
        let compressed = self.compressed_header_bytes.map_or(header_bytes, |most| header_bytes.min(most));
        (packet_bytes - header_bytes).saturating_add(compressed).saturating_add(self.pdcp_header_bytes).max(1)
    }
}

/// RLC acknowledged mode, both directions alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioLinkControlSettings {
    /// Size of a PDU with its header of 16 bits; whole octets. (A bearer of "320 bits payload" has 336 here.)
    pub pdu_bits: u32,
    /// Transmitting and receiving window, below half the 4,096 sequence numbers.
    pub window_pdus: u32,
    /// How often a PDU is sent before the SDUs in it are given up, with explicit signalling; `None` is for ever.
    ///
    /// MaxDAT, by its readings: in TS 25.322 a PDU is sent MaxDAT - 1 times, in seeds 000 and 001 it is *re*sent MaxDAT
    /// times, so it is sent MaxDAT + 1 times.
    pub maximum_transmissions: Option<u32>,
    /// Timer_Status_Periodic, counted from time 0.
    pub status_periodic_ns: Option<Nanoseconds>,
    /// Timer_Status_Prohibit: shortest time between the beginnings of two status reports.
    pub status_prohibit_ns: Nanoseconds,
    /// A status report as soon as a PDU is missing ("missing PDU indicator").
    pub status_on_gap: bool,
    pub status_format: StatusFormat,
    pub poll: PollSettings,
    /// Timer_MRW: when the command to move the receiving window is repeated.
    pub move_window_timer_ns: Nanoseconds,
    /// Not in TS 25.322: a status report that stops short of a PDU sent at least this long before it comes counts as a
    /// negative acknowledgement of that PDU.
    ///
    /// Without it and without polls, a lost PDU that no later one follows is found only once the layer above sends
    /// more; seeds 000 and 001 do not poll.
    pub unreported_is_lost_after_ns: Option<Nanoseconds>,
}

/// How status reports name missing PDUs (TS 25.322, section 9.2.2.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusFormat {
    /// LIST: up to 15 runs of up to 16 PDUs each.
    #[default]
    List,
    /// BITMAP: up to 128 PDUs.
    Bitmap,
}

/// When the sender asks for a status report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollSettings {
    /// With the last PDU in the buffers or the last one that the window allows.
    pub on_last_pdu: bool,
    /// Timer_Poll: without an answer for so long, the poll is repeated with the PDU sent last.
    pub timer_ns: Option<Nanoseconds>,
}

impl Default for RadioLinkControlSettings {
    /// Seed 001's first table: 320 bits, 1024 PDUs, MaxDAT 10, prohibit 60 ms, periodic 100 ms, no polls.
    fn default() -> Self {
        Self {
            pdu_bits: 320,
            window_pdus: 1_024,
            maximum_transmissions: Some(11),
            status_periodic_ns: Some(100 * MILLISECOND),
            status_prohibit_ns: 60 * MILLISECOND,
            status_on_gap: true,
            status_format: StatusFormat::List,
            poll: PollSettings::default(),
            move_window_timer_ns: 200 * MILLISECOND,
            unreported_is_lost_after_ns: None,
        }
    }
}

impl DedicatedChannelSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        for channel in [&self.down, &self.up] {
            channel.check()?;
        }
        self.radio_link_control.check()
    }
}

impl TransportChannelSettings {
    fn check(&self) -> Result<(), SettingsError> {
        if self.rate_bit_s == 0 || self.rate_bit_s > 1_000_000_000 {
            return Err(SettingsError::new("rate_bit_s", self.rate_bit_s, "from 1 to 1e9 bit/s"));
        }
        let interval_ns = self.transmission_time_interval_ns;
        if !(100_000..=1_000 * MILLISECOND).contains(&interval_ns) {
            return Err(SettingsError::new("transmission_time_interval_ns", interval_ns, "from 1e5 to 1e9 ns"));
        }
        check_probability("block_error_rate", self.block_error_rate)?;
        if self.block_error_rate >= 1.0 {
            return Err(SettingsError::new("block_error_rate", self.block_error_rate, "below 1"));
        }
        if matches!(self.buffer, QueueLimit::Frames(_)) {
            return Err(SettingsError::new("buffer of a dedicated channel", "in frames", "in packets or bytes"));
        }
        Ok(())
    }
}

impl RadioLinkControlSettings {
    fn check(&self) -> Result<(), SettingsError> {
        if self.pdu_bits % 8 != 0 || self.pdu_bits > 4_992 || self.pdu_bits / 8 < AMD_HEADER_BYTES + 4 {
            return Err(SettingsError::new("pdu_bits", self.pdu_bits, "a multiple of 8 from 48 to 4992"));
        }
        if status_runs(self.pdu_bits, self.status_format) == 0 {
            return Err(SettingsError::new("pdu_bits", self.pdu_bits, "enough for a status report (64 bits do)"));
        }
        if self.window_pdus == 0 || self.window_pdus > 2_047 {
            return Err(SettingsError::new("window_pdus", self.window_pdus, "from 1 to 2047"));
        }
        if self.maximum_transmissions == Some(0) {
            return Err(SettingsError::new("maximum_transmissions", 0, "at least 1"));
        }
        let timers = [
            ("status_periodic_ns", self.status_periodic_ns),
            ("poll timer_ns", self.poll.timer_ns),
            ("move_window_timer_ns", Some(self.move_window_timer_ns)),
        ];
        for (field, timer_ns) in timers {
            if timer_ns.is_some_and(|timer_ns| timer_ns < MILLISECOND) {
                return Err(SettingsError::new(field, timer_ns.unwrap_or(0), "at least 1e6 ns"));
            }
        }
        let polls = self.poll.on_last_pdu && self.poll.timer_ns.is_some();
        if self.status_periodic_ns.is_none() && !polls {
            let allowed =
                "set unless polls go out on the last PDU with a timer, or losses could go unreported for ever";
            return Err(SettingsError::new("status_periodic_ns", "none", allowed));
        }
        Ok(())
    }
}

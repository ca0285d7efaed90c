//! UMTS dedicated channels: a UMTS dedicated channel for one mobile (seeds 000 and 001).

use pepscope_path::umts::{
    DedicatedChannel, DedicatedChannelSettings, HeaderCompression, PollSettings, RadioLinkControlSettings,
    StatusFormat, TransportChannelSettings,
};
use pepscope_path::{Datagram, Nanoseconds, QueueLimit, SettingsError, MILLISECOND};
use pepscope_tcp::Packet;

use super::buffer::{read_limit, PACKETS_OR_BYTES};
use super::Link;
use crate::fields::{Fields, Read};

pub use pepscope_path::umts::DedicatedChannelSettings as Settings;

impl Link for DedicatedChannelSettings {
    const KIND: &'static str = "umts-dch";
    type Model<P: Datagram> = DedicatedChannel<P>;

    /// Reads a UMTS dedicated channel for one mobile: `down` and `up` (default: as `down`, with errors of its own), each
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `rate_bit_s` | 1-1e9 | 64000 | of RLC PDUs with their headers |
    /// | `transmission_time_interval_s` | 0.0001-1 | 0.01 | TTI |
    /// | `block_error_rate` | 0-0.999 | 0.1 | probability that a transport block is lost |
    /// | `delay_s` | 0-1000 | 0.03 | from the end of the interval to the other RLC entity; the round trip is both intervals and delays |
    /// | `queue_packets`, `queue_bytes` | 0-1e9, at most one | unlimited | packets that are not yet wholly cut into PDUs |
    ///
    /// and
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `compressed_header_bytes` | 0-65535 | no compression | what PDCP makes of IP and TCP headers |
    /// | `pdcp_header_bytes` | 0-16 | 0 | PDCP's own header |
    /// | `radio_link_control` | table | seed 001's | see [`read_radio_link_control`] |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        fields.default_to_sibling("up", "down");
        let settings = Self {
            down: fields.section("down", read_channel)?,
            up: fields.section("up", read_channel)?,
            compression: HeaderCompression {
                compressed_header_bytes: fields
                    .optional_integer("compressed_header_bytes", 0..=65_535)?
                    .map(|bytes| bytes as u32),
                pdcp_header_bytes: fields.integer("pdcp_header_bytes", 0..=16, 0)? as u32,
            },
            radio_link_control: fields.section("radio_link_control", read_radio_link_control)?,
        };
        settings.build::<Packet>(0, "").map_err(|error| fields.refused_by(&error))?;
        Ok(settings)
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<DedicatedChannel<P>, SettingsError> {
        DedicatedChannel::new(self, seed, name)
    }
}

fn read_channel(fields: &mut Fields) -> Read<TransportChannelSettings> {
    Ok(TransportChannelSettings {
        rate_bit_s: fields.integer("rate_bit_s", 1..=1_000_000_000, 64_000)?,
        transmission_time_interval_ns: fields.seconds("transmission_time_interval_s", 1e-4..=1.0, 0.01)?,
        block_error_rate: fields.number("block_error_rate", 0.0..=0.999, 0.1)?,
        delay_ns: fields.seconds("delay_s", 0.0..=1000.0, 0.03)?,
        buffer: read_limit(fields, PACKETS_OR_BYTES, QueueLimit::Unlimited)?,
    })
}

/// Reads RLC acknowledged mode (3GPP TS 25.322):
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `pdu_bits` | 48-4992, whole octets | 320 | a PDU with its header of 16 bits |
/// | `window_pdus` | 1-2047 | 1024 | transmitting and receiving window |
/// | `maximum_transmissions` | 0-1000 | 11 | sendings of a PDU before its packets are given up, 0 for never; the seeds' MaxDAT + 1 |
/// | `status_periodic_s` | 0, or 0.001-1000 | 0.1 | Timer_Status_Periodic, 0 for none |
/// | `status_prohibit_s` | 0-1000 | 0.06 | Timer_Status_Prohibit |
/// | `status_on_gap` | true, false | true | a report as soon as a PDU is missing |
/// | `status_format` | `list`, `bitmap` | `list` | how reports name missing PDUs |
/// | `poll_on_last_pdu` | true, false | false | the last PDU in the buffers asks for a report |
/// | `poll_timer_s` | 0, or 0.001-1000 | 0 | Timer_Poll, 0 for none |
/// | `move_window_timer_s` | 0.001-1000 | 0.2 | Timer_MRW |
/// | `unreported_is_lost_after_s` | 0-1000 | 0 | a report that stops short of a PDU sent so long ago counts against it, 0 for never; not in TS 25.322 |
///
/// # Errors
/// If a field is outside its range.
fn read_radio_link_control(fields: &mut Fields) -> Read<RadioLinkControlSettings> {
    let sendings = fields.integer("maximum_transmissions", 0..=1000, 11)? as u32;
    Ok(RadioLinkControlSettings {
        pdu_bits: fields.integer("pdu_bits", 48..=4992, 320)? as u32,
        window_pdus: fields.integer("window_pdus", 1..=2047, 1024)? as u32,
        maximum_transmissions: (sendings > 0).then_some(sendings),
        status_periodic_ns: read_timer(fields, "status_periodic_s", 0.1)?,
        status_prohibit_ns: fields.seconds("status_prohibit_s", 0.0..=1000.0, 0.06)?,
        status_on_gap: fields.flag("status_on_gap", true)?,
        status_format: fields
            .choice("status_format", &[("list", StatusFormat::List), ("bitmap", StatusFormat::Bitmap)])?,
        poll: PollSettings {
            on_last_pdu: fields.flag("poll_on_last_pdu", false)?,
            timer_ns: read_timer(fields, "poll_timer_s", 0.0)?,
        },
        move_window_timer_ns: fields.seconds("move_window_timer_s", 0.001..=1000.0, 0.2)?,
        unreported_is_lost_after_ns: Some(fields.seconds("unreported_is_lost_after_s", 0.0..=1000.0, 0.0)?)
            .filter(|&after_ns| after_ns > 0),
    })
}

fn read_timer(fields: &mut Fields, name: &'static str, default_s: f64) -> Read<Option<Nanoseconds>> {
    let timer_ns = fields.seconds(name, 0.0..=1000.0, default_s)?;
    if timer_ns > 0 && timer_ns < MILLISECOND {
        return Err(fields.refuse(name, timer_ns as f64 * 1e-9, "0 for none, or a number from 0.001 to 1000"));
    }
    Ok((timer_ns > 0).then_some(timer_ns))
}

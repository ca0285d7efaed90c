//! A dedicated channel to test.
#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use pepscope_path::umts::{
    DedicatedChannel, DedicatedChannelSettings, HeaderCompression, RadioLinkControlSettings, TransportChannelSettings,
};
use pepscope_path::{Nanoseconds, QueueLimit, MILLISECOND};

use crate::probe::{Driver, Probe};

pub const MS: Nanoseconds = MILLISECOND;
pub const INTERVAL_NS: Nanoseconds = 10 * MS;
pub const DELAY_NS: Nanoseconds = 20 * MS;
pub const PAYLOAD_BYTES: u32 = 38; // 320 bits without the header of 16

pub fn channel(rate_bit_s: u64, block_error_rate: f64) -> TransportChannelSettings {
    TransportChannelSettings {
        rate_bit_s,
        transmission_time_interval_ns: INTERVAL_NS,
        block_error_rate,
        delay_ns: DELAY_NS,
        buffer: QueueLimit::Unlimited,
    }
}

pub fn settings(rate_bit_s: u64, block_error_rate: f64) -> DedicatedChannelSettings {
    DedicatedChannelSettings {
        down: channel(rate_bit_s, block_error_rate),
        up: channel(rate_bit_s, block_error_rate),
        compression: HeaderCompression::default(),
        radio_link_control: RadioLinkControlSettings::default(),
    }
}

pub fn bearer(settings: &DedicatedChannelSettings) -> Driver<DedicatedChannel<Probe>> {
    Driver::new(DedicatedChannel::new(settings, 2, "dch").unwrap())
}

pub fn probe(bytes: u32) -> Probe {
    Probe { bytes, headers: 0, ..Probe::default() }
}

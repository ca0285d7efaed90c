//! Wired links: a line of constant rate.

use pepscope_path::{Datagram, LineSettings, SettingsError, Wired, WiredSettings};

use super::buffer::{read_loss, read_queue};
use super::{Link, MOST_BIT_S, MOST_DELAY_S};
use crate::fields::{Fields, Read};

pub use pepscope_path::WiredSettings as Settings;

impl Link for WiredSettings {
    const KIND: &'static str = "wired";
    type Model<P: Datagram> = Wired<P>;

    /// Reads a wired link: `down` and `up` (default: as `down`, with losses of its own), each
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `rate_bit_s` | 1-1e12 | unlimited | of IP packets |
    /// | `delay_s` | 0-1000 | 0 | from the last bit out to the last bit in |
    /// | `queue_packets`, `queue_bytes` | 0-1e9, at most one | unlimited | what the drop-tail buffer holds |
    /// | `queue_counts_service` | true, false | false | whether the packet in service takes a place (ns-2: true) |
    /// | `marking` | table | none | `threshold_packets` (0-1e6), `weight` (0-1, default 0.002): congestion warning |
    /// | `loss` | table | none | see [`super::buffer::read_loss`] |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        fields.default_to_sibling("up", "down");
        Ok(WiredSettings { down: fields.section("down", read_line)?, up: fields.section("up", read_line)? })
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Wired<P>, SettingsError> {
        Wired::new(self, seed, name)
    }
}

pub(super) fn read_line(fields: &mut Fields) -> Read<LineSettings> {
    Ok(LineSettings {
        rate_bit_s: fields.optional_integer("rate_bit_s", 1..=MOST_BIT_S)?,
        delay_ns: fields.seconds("delay_s", 0.0..=MOST_DELAY_S, 0.0)?,
        queue: read_queue(fields)?,
        loss: read_loss(fields)?,
    })
}

//! Policers: a token bucket that delays nothing, and drops or marks what exceeds it.

use pepscope_path::{Datagram, Policed, Policer, PolicerLineSettings, PolicerSettings, SettingsError};

use super::{Link, MOST_BIT_S};
use crate::fields::{Fields, Read};

pub use pepscope_path::PolicerSettings as Settings;

impl Link for PolicerSettings {
    const KIND: &'static str = "policer";
    type Model<P: Datagram> = Policer<P>;

    /// Reads a policer: `down` and `up` (default: as `down`, with a bucket of its own), each
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `rate_bit_s` | 1-1e12 | unlimited | of IP packets: how fast tokens come |
    /// | `burst_bytes` | 1-1e9 | 15000 | what the bucket holds; longer packets never conform |
    /// | `marks` | true, false | false | packets of senders with ECN are marked instead of dropped |
    /// | `policed` | `together`, `each-mobile`, `each-connection` | `together` | which packets share a bucket |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        fields.default_to_sibling("up", "down");
        Ok(PolicerSettings { down: fields.section("down", read_line)?, up: fields.section("up", read_line)? })
    }

    fn build<P: Datagram>(&self, _seed: u64, _name: &str) -> Result<Policer<P>, SettingsError> {
        Policer::new(self)
    }
}

fn read_line(fields: &mut Fields) -> Read<PolicerLineSettings> {
    let policed = [
        ("together", Policed::Together),
        ("each-mobile", Policed::EachMobile),
        ("each-connection", Policed::EachConnection),
    ];
    Ok(PolicerLineSettings {
        rate_bit_s: fields.optional_integer("rate_bit_s", 1..=MOST_BIT_S)?,
        burst_bytes: fields.integer("burst_bytes", 1..=1_000_000_000, 15_000)? as u32,
        marks: fields.flag("marks", false)?,
        policed: fields.choice("policed", &policed)?,
    })
}

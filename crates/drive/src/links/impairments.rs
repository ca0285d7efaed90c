//! Impairments: jitter, reordering and duplication of packets.

use pepscope_path::{Datagram, ImpairedLineSettings, Impairments, ImpairmentsSettings, SettingsError};

use super::{Link, MOST_DELAY_S};
use crate::fields::{Fields, Read};

pub use pepscope_path::ImpairmentsSettings as Settings;

impl Link for ImpairmentsSettings {
    const KIND: &'static str = "impairments";
    type Model<P: Datagram> = Impairments<P>;

    /// Reads a stretch of the path that has no rate and no queue: `down` and `up` (default: as `down`, with random numbers
    /// of its own), each
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `delay_s` | 0-1000 | 0 | the least time from in to out |
    /// | `jitter_s` | 0-1000 | 0 | the most that is added at random, uniformly, without changing the order |
    /// | `reordered` | 0-1 | 0 | share of packets held back `reorder_s` more, so that others overtake them |
    /// | `reorder_s` | 0-1000 | 0.008 | |
    /// | `duplicated` | 0-1 | 0 | share of packets that leave twice |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        fields.default_to_sibling("up", "down");
        Ok(ImpairmentsSettings { down: fields.section("down", read_line)?, up: fields.section("up", read_line)? })
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Impairments<P>, SettingsError> {
        Impairments::new(self, seed, name)
    }
}

fn read_line(fields: &mut Fields) -> Read<ImpairedLineSettings> {
    let line = ImpairedLineSettings {
        delay_ns: fields.seconds("delay_s", 0.0..=MOST_DELAY_S, 0.0)?,
        jitter_ns: fields.seconds("jitter_s", 0.0..=MOST_DELAY_S, 0.0)?,
        reordered: fields.number("reordered", 0.0..=1.0, 0.0)?,
        reorder_ns: fields.seconds("reorder_s", 0.0..=MOST_DELAY_S, 0.008)?,
        duplicated: fields.number("duplicated", 0.0..=1.0, 0.0)?,
    };
    line.check().map_err(|error| fields.refused_by(&error))?;
    Ok(line)
}

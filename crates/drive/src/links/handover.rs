//! Handovers: for a short time, now and then, nothing moves between a mobile and the network.

use pepscope_path::{Datagram, HandoverSettings, Handovers, SettingsError};

use super::{Link, MOST_DELAY_S};
use crate::fields::{Fields, Read, MOST_SECONDS};

pub use pepscope_path::HandoverSettings as Settings;

impl Link for HandoverSettings {
    const KIND: &'static str = "handover";
    type Model<P: Datagram> = Handovers<P>;

    /// Reads the handovers of mobiles between cells, each mobile's at times of its own; to stand beside a link that has a
    /// rate:
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `interval_s` | 0.001-1e7 | 30 | from the start, or the end of a handover, to the next one |
    /// | `intervals` | `exponential`, `fixed` | `exponential` | with that mean, or all the same |
    /// | `interruption_s` | 0-1000 | 0.05 | how long nothing moves; what the mobile sends waits |
    /// | `forwards` | true, false | true | packets down wait for the new cell; false: they are lost |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        Ok(HandoverSettings {
            interval_ns: fields.seconds("interval_s", 0.001..=MOST_SECONDS, 30.0)?,
            is_random: fields.choice("intervals", &[("exponential", true), ("fixed", false)])?,
            interruption_ns: fields.seconds("interruption_s", 0.0..=MOST_DELAY_S, 0.05)?,
            forwards: fields.flag("forwards", true)?,
        })
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Handovers<P>, SettingsError> {
        Handovers::new(*self, seed, name)
    }
}

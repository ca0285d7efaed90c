//! Radio states: an idle mobile connects before anything moves, a silent one listens now and then (DRX).

use pepscope_path::{Datagram, RadioStates, RadioStatesSettings, SettingsError};

use super::Link;
use crate::fields::{Fields, Read};

pub use pepscope_path::RadioStatesSettings as Settings;

const MOST_S: f64 = 1e6;

impl Link for RadioStatesSettings {
    const KIND: &'static str = "radio-states";
    type Model<P: Datagram> = RadioStates<P>;

    /// Reads the states of mobiles' radios, to stand beside a link that has a rate; the defaults are those that Huang et
    /// al. measured in an LTE network (MobiSys 2012):
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `promotion_s` | 0-1e6 | 0.26 | from idle to connected; packets wait for it |
    /// | `release_s` | 0-1e6 | 11.576 | without a packet for so long, a connected mobile becomes idle |
    /// | `paging_cycle_s` | 0-1e6 | 1.28 | packets down wait for the next paging of an idle mobile; 0: at any time |
    /// | `inactivity_s` | 0-1e6 | 0.1 | without a packet for so long, a connected mobile listens only in DRX cycles |
    /// | `short_cycle_s`, `short_cycles` | 0-1e6, 0-1000 | 0.02, 1 | so many short cycles come first |
    /// | `long_cycle_s` | 0-1e6 | 0.04 | then long ones, multiples of the short; 0: no DRX |
    /// | `on_duration_s` | 0-1e6 | 0.001 | how long it listens at the start of each cycle |
    /// | `starts` | `idle`, `connected` | `idle` | the state at first |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        let settings = RadioStatesSettings {
            promotion_ns: fields.seconds("promotion_s", 0.0..=MOST_S, 0.26)?,
            release_ns: fields.seconds("release_s", 0.0..=MOST_S, 11.576)?,
            paging_cycle_ns: fields.seconds("paging_cycle_s", 0.0..=MOST_S, 1.28)?,
            inactivity_ns: fields.seconds("inactivity_s", 0.0..=MOST_S, 0.1)?,
            short_cycle_ns: fields.seconds("short_cycle_s", 0.0..=MOST_S, 0.02)?,
            short_cycles: fields.integer("short_cycles", 0..=1000, 1)? as u32,
            long_cycle_ns: fields.seconds("long_cycle_s", 0.0..=MOST_S, 0.04)?,
            on_duration_ns: fields.seconds("on_duration_s", 0.0..=MOST_S, 0.001)?,
            starts_connected: fields.choice("starts", &[("idle", false), ("connected", true)])?,
        };
        settings.check().map_err(|error| fields.refused_by(&error))?;
        Ok(settings)
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<RadioStates<P>, SettingsError> {
        RadioStates::new(*self, seed, name)
    }
}

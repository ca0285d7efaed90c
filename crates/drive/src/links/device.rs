//! Devices: the time that packets take between a machine's capture and the line.

use pepscope_path::{Cooling, Datagram, Device, DeviceSettings, ProcessingTime, SettingsError};

use super::Link;
use crate::fields::{Fields, Read};
use crate::scenario::times::{read_cooling, time_of};

pub use pepscope_path::DeviceSettings as Settings;

/// After which a packet finds nothing of the last one left.
const COOLING: Cooling = Cooling { full_ns: 20e6, exponent: 1.0 };
const INTERRUPTION: ProcessingTime = ProcessingTime::log_normal(20e3, 100e3, 1.2);
const NO_TIME: ProcessingTime = ProcessingTime::log_normal(0.0, 0.0, 0.0);

impl Link for DeviceSettings {
    const KIND: &'static str = "device";
    type Model<P: Datagram> = Device<P>;

    /// Reads a network device beside a machine, the first or the last hop: captures at the machine show packets before they
    /// enter it and after they have left it. It keeps the order.
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `down`, `up` | [`time_of`] | no time | that a packet takes, where packets come in close succession |
    /// | `apart` | [`time_of`] | no time | from one packet to the next one that waited behind it, where they take time |
    /// | `interrupted_share` | 0-1 | 0 | of packets before which something else has the processor |
    /// | `interruption` | [`time_of`] | 20, 100 us, 1.2 | for so long, instead of `down` or `up` |
    /// | `cold` | 1-1000 | 1 | how many times as long it takes after a pause in both directions |
    /// | `cooling_s` | 1e-6-1000 | 0.02 | after such a pause it takes longest |
    /// | `cooling_exponent` | 0.05-5 | 1 | it grows with this power of the pause until then |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        Ok(DeviceSettings {
            down: fields.optional_section("down", |time| time_of(time, NO_TIME))?,
            up: fields.optional_section("up", |time| time_of(time, NO_TIME))?,
            apart: fields.section("apart", |time| time_of(time, NO_TIME))?,
            interrupted_share: fields.number("interrupted_share", 0.0..=1.0, 0.0)?,
            interruption: fields.section("interruption", |time| time_of(time, INTERRUPTION))?,
            cold: fields.number("cold", 1.0..=1000.0, 1.0)?,
            cooling: read_cooling(fields, COOLING)?,
        })
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Device<P>, SettingsError> {
        Ok(Device::new(self, seed, name))
    }
}

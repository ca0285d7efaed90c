//! Host clocks from packet columns to numbers.

use pepscope_evidence::clocks::host_clock;
use pyo3::prelude::*;

use crate::captures::packets::PacketArrays;

/// What a host's TCP timestamps counted.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct HostTicks(host_clock::HostTicks);

#[pymethods]
impl HostTicks {
    #[new]
    fn new(packets: PacketArrays<'_>, direction: u8) -> PyResult<Self> {
        Ok(Self(packets.columns()?.host_ticks(direction)))
    }

    /// Ticks a second; None where too few stretches count on.
    fn rate_hz(&self, most: usize, stretch_ticks: i64, fewest: usize) -> Option<f64> {
        self.0.rate_hz(most, stretch_ticks, fewest)
    }

    /// The capture's time less the host's over the first segments of a stretch of time.
    fn level_ns(&self, tick_ns: f64, start_ns: f64, end_ns: f64, count: usize) -> Option<f64> {
        self.0.level_ns(tick_ns, start_ns, end_ns, count)
    }
    /// The range of the capture's time less the host's.
    fn swing_ns(&self, tick_ns: f64, count: usize) -> Option<f64> {
        self.0.swing_ns(tick_ns, count)
    }
}

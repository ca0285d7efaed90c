//! The sliding-mode control law of the window-adaptation proxy, as the live proxy runs it.

use pepscope_tcp::proxy::{SlidingMode as Law, SlidingModeSettings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The law and its history; one `step` for each report.
#[pyclass(module = "pepscope._core")]
pub(crate) struct SlidingMode(Law);

#[pymethods]
impl SlidingMode {
    #[new]
    #[pyo3(signature = (*, step_s, delay_steps, frames_per_packet, reference_frames, buffer_frames, smoothing,
                        approach_per_s, switching_frames_s, extremes_steps))]
    #[expect(clippy::too_many_arguments, reason = "one keyword for each symbol of the law")]
    fn new(
        step_s: f64,
        delay_steps: u32,
        frames_per_packet: f64,
        reference_frames: f64,
        buffer_frames: f64,
        smoothing: f64,
        approach_per_s: f64,
        switching_frames_s: f64,
        extremes_steps: usize,
    ) -> PyResult<Self> {
        let settings = SlidingModeSettings {
            step_s,
            delay_steps,
            frames_per_packet,
            reference_frames,
            buffer_frames,
            smoothing,
            approach_per_s,
            switching_frames_s,
            extremes_steps,
        };
        settings.check(None, None).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Law::new(settings)))
    }

    fn step(&mut self, queued_frames: f64, rate_frames_s: f64) -> f64 {
        self.0.step(queued_frames, rate_frames_s)
    }

    fn correct_last(&mut self, packets: f64) {
        self.0.correct_last(packets);
    }

    #[getter]
    fn mean_rate_frames_s(&self) -> f64 {
        self.0.mean_rate_frames_s()
    }
}

//! `pepscope._core`: the Rust crates for Python. Conversions only.

mod agreement;
mod capture;
mod clocks;
mod datagrams;
mod frames;
mod live;
mod packets;
mod pair_segments;
mod read;
mod simulate;
mod sliding_mode;
mod staircases;
mod standard_input;
mod summaries;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::agreement::FieldCounts;
    #[pymodule_export]
    use crate::capture::Capture;
    #[pymodule_export]
    use crate::clocks::{separable_stretches, separate, separate_most, thin};
    #[pymodule_export]
    use crate::frames::{header_kinds, read_frames, CaptureFrames};
    #[pymodule_export]
    use crate::live::LivePath;
    #[pymodule_export]
    use crate::pair_segments::{align_segments, DirectionCounts, PairSegments, PositionCounts};
    #[pymodule_export]
    use crate::read::read_capture;
    #[pymodule_export]
    use crate::simulate::{check_scenario, simulate, Simulated};
    #[pymodule_export]
    use crate::sliding_mode::SlidingMode;
    #[pymodule_export]
    use crate::staircases::{acknowledgement_steps, data_ranges};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // A panic reaches Python as an exception; its own report would only stand before ours on standard error.
        if std::env::var_os("PEPSCOPE_DEBUG").is_none() {
            std::panic::set_hook(Box::new(|_| {}));
        }
        module.add("is_release_build", !cfg!(debug_assertions))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

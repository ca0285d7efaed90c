//! `pepscope._core`: the Rust crates as Python sees them. Conversions only.

mod capture;
mod read;
mod standard_input;
mod summaries;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::capture::Capture;
    #[pymodule_export]
    use crate::read::read_capture;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

//! `pepscope._core`: the Rust crates as Python sees them. Conversions only.

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

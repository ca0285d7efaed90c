//! Timestamps of a capture from a NumPy column.

use numpy::PyReadonlyArray1;
use pepscope_evidence::timestamps::falls;
use pyo3::prelude::*;

/// Rows before which a capture's clock fell by more than a step.
#[pyfunction]
pub(crate) fn clock_falls(time_ns: PyReadonlyArray1<'_, i64>, least_ns: i64) -> PyResult<Vec<usize>> {
    Ok(falls(time_ns.as_slice()?, least_ns))
}

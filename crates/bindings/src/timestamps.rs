//! Timestamps of a capture from a NumPy column.

use numpy::PyReadonlyArray1;
use pepscope_evidence::timestamps::{falls, TimestampSteps};
use pyo3::prelude::*;

/// Rows before which a capture's clock fell by more than a step.
#[pyfunction]
pub(crate) fn clock_falls(time_ns: PyReadonlyArray1<'_, i64>, least_ns: i64) -> PyResult<Vec<usize>> {
    Ok(falls(time_ns.as_slice()?, least_ns))
}

/// Steps between the first timestamps: how many, how many of no time, and the least forward.
#[pyfunction]
pub(crate) fn timestamp_steps(
    time_ns: PyReadonlyArray1<'_, i64>,
    most: usize,
) -> PyResult<(usize, usize, Option<i64>)> {
    let time_ns = time_ns.as_slice()?;
    let steps = TimestampSteps::of(&time_ns[..time_ns.len().min(most)]);
    Ok((steps.count, steps.equal, steps.least_ns))
}

//! Timestamps of a capture from a NumPy column.

use numpy::PyReadonlyArray1;
use pepscope_evidence::clocks::timestamps::{self, TimestampSteps};
use pyo3::prelude::*;

/// Rows before which a capture's clock fell by more than a step.
#[pyfunction]
pub(crate) fn clock_falls(time_ns: PyReadonlyArray1<'_, i64>, least_ns: i64) -> PyResult<Vec<usize>> {
    Ok(timestamps::falls(time_ns.as_slice()?, least_ns))
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

/// The longest time between two successive packets of which one lies in a stretch of time.
#[pyfunction]
pub(crate) fn longest_pause_ns(
    time_ns: PyReadonlyArray1<'_, i64>,
    start_ns: f64,
    end_ns: f64,
) -> PyResult<Option<i64>> {
    Ok(timestamps::longest_pause_ns(time_ns.as_slice()?, start_ns, end_ns))
}

//! Timestamps of a capture from packet columns.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1};
use pepscope_evidence::clocks::timestamps::{self, TimestampSteps};
use pyo3::prelude::*;

use crate::captures::packets::PacketArrays;
use crate::record::number_or_unknown;

/// Rows before which a capture's clock fell by more than a step.
#[pyfunction]
pub(crate) fn clock_falls(packets: PacketArrays<'_>, least_ns: i64) -> PyResult<Vec<usize>> {
    Ok(timestamps::falls(packets.columns()?.time_ns, least_ns))
}

/// Steps between the first timestamps of connections, as rows: how many, how many of no time, and the least forward.
#[pyfunction]
pub(crate) fn timestamp_steps<'py>(
    py: Python<'py>,
    packets: Vec<PacketArrays<'py>>,
    most: usize,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let mut found = Vec::with_capacity(packets.len());
    for each in &packets {
        let time_ns = each.columns()?.time_ns;
        let steps = TimestampSteps::of(&time_ns[..time_ns.len().min(most)]);
        found.push([steps.count as i64, steps.equal as i64, number_or_unknown(steps.least_ns)]);
    }
    Ok(Array2::from_shape_fn((3, found.len()), |(of, row)| found[row][of]).into_pyarray(py))
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

//! Staircases of a flow from packet columns to NumPy columns.

use numpy::{IntoPyArray, PyArray1};
use pepscope_evidence::flows::staircase::ByteRanges;
use pyo3::prelude::*;

use crate::packets::PacketArrays;

type Int64s<'py> = Bound<'py, PyArray1<i64>>;
/// Start, end and time.
type Ranges<'py> = (Int64s<'py>, Int64s<'py>, Int64s<'py>);
/// Value, time, and whether plain.
type Steps<'py> = (Int64s<'py>, Int64s<'py>, Bound<'py, PyArray1<bool>>);

/// A flow's data: ranges beyond everything sent before, and segments that begin below that.
#[pyfunction]
pub(crate) fn data_ranges<'py>(
    py: Python<'py>,
    direction: u8,
    packets: PacketArrays<'py>,
) -> PyResult<(Ranges<'py>, Ranges<'py>)> {
    let columns = packets.columns()?;
    let (beyond, below) = py.detach(|| columns.data_ranges(direction));
    Ok((handed_over(py, beyond), handed_over(py, below)))
}

/// First arrival of every byte of a flow at its receiver.
#[pyfunction]
pub(crate) fn first_arrivals<'py>(py: Python<'py>, direction: u8, packets: PacketArrays<'py>) -> PyResult<Ranges<'py>> {
    let columns = packets.columns()?;
    let arrived = py.detach(|| columns.first_arrivals(direction));
    Ok(handed_over(py, arrived))
}

/// The acknowledgements of a flow's data that advance.
#[pyfunction]
pub(crate) fn acknowledgement_steps<'py>(
    py: Python<'py>,
    direction: u8,
    packets: PacketArrays<'py>,
) -> PyResult<Steps<'py>> {
    let columns = packets.columns()?;
    let steps = py.detach(|| columns.acknowledgement_steps(direction));
    Ok((steps.value.into_pyarray(py), steps.time_ns.into_pyarray(py), steps.plain.into_pyarray(py)))
}

fn handed_over(py: Python<'_>, ranges: ByteRanges) -> Ranges<'_> {
    (ranges.start.into_pyarray(py), ranges.end.into_pyarray(py), ranges.time_ns.into_pyarray(py))
}

//! Staircases of a flow from packet columns to NumPy columns.

use numpy::PyArray1;
use pepscope_evidence::flows::staircase::ByteRanges;
use pyo3::prelude::*;

use crate::captures::packets::PacketArrays;

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
    let data = py.detach(|| columns.data_ranges(direction));
    Ok((handed_over(py, &data.beyond), handed_over(py, &data.below)))
}

/// First arrival of every byte of a flow at its receiver.
#[pyfunction]
pub(crate) fn first_arrivals<'py>(py: Python<'py>, direction: u8, packets: PacketArrays<'py>) -> PyResult<Ranges<'py>> {
    let columns = packets.columns()?;
    let arrived = py.detach(|| columns.first_arrivals(direction));
    Ok(handed_over(py, &arrived))
}

/// The acknowledgements of a flow's data that advance.
#[pyfunction]
pub(crate) fn acknowledgement_steps<'py>(
    py: Python<'py>,
    direction: u8,
    packets: PacketArrays<'py>,
) -> PyResult<Steps<'py>> {
    let columns = packets.columns()?;
    let acks = py.detach(|| columns.acknowledgement_times(direction));
    let steps = &acks.steps;
    Ok((
        PyArray1::from_slice(py, &steps.value),
        PyArray1::from_slice(py, &steps.time_ns),
        PyArray1::from_slice(py, &steps.plain),
    ))
}

fn handed_over<'py>(py: Python<'py>, ranges: &ByteRanges) -> Ranges<'py> {
    (
        PyArray1::from_slice(py, &ranges.start),
        PyArray1::from_slice(py, &ranges.end),
        PyArray1::from_slice(py, &ranges.time_ns),
    )
}

//! Staircases of a flow from NumPy columns to NumPy columns.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pepscope_connections::{AcknowledgementColumns, ByteRanges, DataColumns};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Int64s<'py> = Bound<'py, PyArray1<i64>>;
/// Start, end and time.
type Ranges<'py> = (Int64s<'py>, Int64s<'py>, Int64s<'py>);
/// Value, time, and whether plain.
type Steps<'py> = (Int64s<'py>, Int64s<'py>, Bound<'py, PyArray1<bool>>);

/// A flow's data: ranges beyond everything sent before, and segments that begin below that.
#[pyfunction]
pub(crate) fn data_ranges<'py>(
    py: Python<'py>,
    wanted: u8,
    time_ns: PyReadonlyArray1<'py, i64>,
    direction: PyReadonlyArray1<'py, u8>,
    sequence_offset: PyReadonlyArray1<'py, i64>,
    payload_bytes: PyReadonlyArray1<'py, u32>,
) -> PyResult<(Ranges<'py>, Ranges<'py>)> {
    let columns = DataColumns {
        time_ns: time_ns.as_slice()?,
        direction: direction.as_slice()?,
        sequence_offset: sequence_offset.as_slice()?,
        payload_bytes: payload_bytes.as_slice()?,
    };
    let rows = columns.time_ns.len();
    if [columns.direction.len(), columns.sequence_offset.len(), columns.payload_bytes.len()] != [rows; 3] {
        return Err(unequal());
    }
    let (beyond, below) = py.detach(|| columns.ranges(wanted));
    Ok((handed_over(py, beyond), handed_over(py, below)))
}

/// The acknowledgements of a flow's data that advance.
#[pyfunction]
pub(crate) fn acknowledgement_steps<'py>(
    py: Python<'py>,
    wanted: u8,
    time_ns: PyReadonlyArray1<'py, i64>,
    direction: PyReadonlyArray1<'py, u8>,
    acknowledgement_offset: PyReadonlyArray1<'py, i64>,
    payload_bytes: PyReadonlyArray1<'py, u32>,
    flags: PyReadonlyArray1<'py, u16>,
) -> PyResult<Steps<'py>> {
    let columns = AcknowledgementColumns {
        time_ns: time_ns.as_slice()?,
        direction: direction.as_slice()?,
        acknowledgement_offset: acknowledgement_offset.as_slice()?,
        payload_bytes: payload_bytes.as_slice()?,
        flags: flags.as_slice()?,
    };
    let rows = columns.time_ns.len();
    let others = [columns.direction.len(), columns.acknowledgement_offset.len(), columns.payload_bytes.len()];
    if others != [rows; 3] || columns.flags.len() != rows {
        return Err(unequal());
    }
    let steps = py.detach(|| columns.steps(wanted));
    Ok((steps.value.into_pyarray(py), steps.time_ns.into_pyarray(py), steps.plain.into_pyarray(py)))
}

fn unequal() -> PyErr {
    PyValueError::new_err("the columns differ in length")
}

fn handed_over(py: Python<'_>, ranges: ByteRanges) -> Ranges<'_> {
    (ranges.start.into_pyarray(py), ranges.end.into_pyarray(py), ranges.time_ns.into_pyarray(py))
}

//! Packets that show something best, from columns.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pepscope_evidence::flows::staircase::ByteRanges;
use pepscope_evidence::telling;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::packets::PacketArrays;

/// Places of high scores, the highest first, spread over all.
#[pyfunction]
pub(crate) fn strongest(score: PyReadonlyArray1<'_, f64>, most: usize, least: f64) -> PyResult<Vec<usize>> {
    Ok(telling::strongest(score.as_slice()?, most, least))
}

/// Which of some arrivals brought the last of the bytes below each of some places in a stream.
#[pyfunction]
pub(crate) fn last_arrivals<'py>(
    py: Python<'py>,
    start: PyReadonlyArray1<'py, i64>,
    end: PyReadonlyArray1<'py, i64>,
    time_ns: PyReadonlyArray1<'py, i64>,
    acknowledged: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let [start, end, time_ns] = [start.as_slice()?, end.as_slice()?, time_ns.as_slice()?];
    if start.len() != end.len() || start.len() != time_ns.len() {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    let arrivals = ByteRanges { start: start.to_vec(), end: end.to_vec(), time_ns: time_ns.to_vec() };
    Ok(telling::last_arrivals(&arrivals, acknowledged.as_slice()?).into_pyarray(py))
}

/// The first packet that carries a byte of a stream.
#[pyfunction]
pub(crate) fn row_of_byte(packets: PacketArrays<'_>, direction: u8, offset: i64) -> PyResult<Option<usize>> {
    Ok(packets.columns()?.row_of_byte(direction, offset))
}

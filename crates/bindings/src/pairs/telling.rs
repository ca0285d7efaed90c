//! Packets that show something best, from columns.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pepscope_evidence::clocks::lines::ClockLines;
use pepscope_evidence::clocks::sender_axis::Axis;
use pepscope_evidence::flows::staircase::ByteRanges;
use pepscope_evidence::telling;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::captures::packets::PacketArrays;
use crate::flows::flow_times::{taken_over, Lines};

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

/// Packets with payload in a direction.
#[pyfunction]
pub(crate) fn data_rows<'py>(
    py: Python<'py>,
    packets: PacketArrays<'_>,
    direction: u8,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    Ok(packets.columns()?.data_rows(direction).into_pyarray(py))
}

/// Packets of a direction whose payload lies beyond all before, or fills a hole.
#[pyfunction]
pub(crate) fn first_copies<'py>(
    py: Python<'py>,
    packets: PacketArrays<'_>,
    direction: u8,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    Ok(packets.columns()?.first_copies(direction).into_pyarray(py))
}

/// Packets that acknowledge more of the data of a direction than any before.
#[pyfunction]
pub(crate) fn acknowledging_rows<'py>(
    py: Python<'py>,
    packets: PacketArrays<'_>,
    direction: u8,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    Ok(packets.columns()?.acknowledging_rows(direction).into_pyarray(py))
}

/// The first packet of a direction that bears any of these flags.
#[pyfunction]
pub(crate) fn first_flagged(packets: PacketArrays<'_>, direction: u8, flags: u16) -> PyResult<Option<usize>> {
    Ok(packets.columns()?.first_flagged(direction, flags))
}

/// Times of the receiver's capture in seconds on the sender's clock.
#[pyfunction]
pub(crate) fn receiver_times_s<'py>(
    py: Python<'py>,
    time_ns: PyReadonlyArray1<'py, i64>,
    is_up: bool,
    origin_ns: i64,
    start_ns: i64,
    lines: Option<Lines>,
    raise_ns: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let lines = lines.map(taken_over);
    let axis = Axis { is_up, origin_ns, start_ns, lines: lines.as_deref().map(ClockLines), raise_ns };
    Ok(PyArray1::from_iter(py, time_ns.as_array().iter().map(|&time_ns| axis.receiver_s(time_ns))))
}

/// The first packet that carries a byte of a stream.
#[pyfunction]
pub(crate) fn row_of_byte(packets: PacketArrays<'_>, direction: u8, offset: i64) -> PyResult<Option<usize>> {
    Ok(packets.columns()?.row_of_byte(direction, offset))
}

//! Packets that show something best, from columns.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pepscope_evidence::clocks::lines::ClockLines;
use pepscope_evidence::clocks::sender_axis::Axis;
use pepscope_evidence::packets::UP;
use pepscope_evidence::telling;
use pepscope_evidence::telling::held_acknowledgements::held_acknowledgements as held_against_arrivals;
use pyo3::prelude::*;

use crate::captures::packets::PacketArrays;
use crate::flows::flow_times::{taken_over, Lines};

/// Places of high scores, the highest first, spread over all.
#[pyfunction]
pub(crate) fn strongest(score: PyReadonlyArray1<'_, f64>, most: usize, least: f64) -> PyResult<Vec<usize>> {
    Ok(telling::strongest(score.as_slice()?, most, least))
}

/// Rows and windows of the packets of a direction that advertise least, the least first, spread over all.
#[pyfunction]
pub(crate) fn least_windows(
    py: Python<'_>,
    packets: PacketArrays<'_>,
    direction: u8,
    most: usize,
) -> PyResult<Vec<(usize, u32)>> {
    let columns = packets.columns()?;
    Ok(py.detach(|| columns.least_windows(direction, most)))
}

/// By acknowledgement: seconds before its data, bytes ahead of them, where the last that arrived begin.
type Held<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// Acknowledgements at a sender held against what had reached the receiver.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "those of `receiver_times_s` beside the packets")]
pub(crate) fn held_acknowledgements<'py>(
    py: Python<'py>,
    sender: PacketArrays<'_>,
    receiver: PacketArrays<'_>,
    direction: u8,
    shift: i64,
    origin_ns: i64,
    start_ns: i64,
    lines: Option<Lines>,
    raise_ns: f64,
) -> PyResult<Held<'py>> {
    let lines = lines.map(taken_over);
    let lines = lines.as_deref().map(ClockLines);
    let axis = Axis { is_up: direction == UP, origin_ns, start_ns, lines, raise_ns };
    let held = held_against_arrivals(&sender.columns()?, &receiver.columns()?, direction, shift, axis);
    Ok((held.early_s.into_pyarray(py), held.ahead_bytes.into_pyarray(py), held.last_start.into_pyarray(py)))
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

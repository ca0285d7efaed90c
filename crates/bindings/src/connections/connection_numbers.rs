//! What one capture shows of a connection, from packet columns to fixed records of numbers.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pepscope_evidence as evidence;
use pepscope_evidence::flows::shut_windows::{self, Scaled, ShutBy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::captures::packets::PacketArrays;
use crate::record::{number_or_unknown, record};

record! {
    /// How the windows of one direction went.
    WindowCourse of evidence::flows::window_course::WindowCourse {
        cycles: usize,
        times_shut: usize,
        least_bytes: i64,
        largest_bytes: i64,
        least_share: f64,
    }
}

record! {
    /// A receiver's abort.
    Abort of evidence::flows::endings::Abort { time_ns: i64, reached_bytes: i64 }
}

record! {
    /// What a sender's capture shows of a connection that its receiver aborted.
    AbortAtSender of evidence::flows::endings::AbortAtSender {
        acknowledged_bytes: i64,
        largest_payload_bytes: i64,
        end_ns: Option<i64>,
        zero_window_probes: usize,
    }
}

record! {
    /// Hop limits of packets that acknowledge.
    AnsweringHopLimits of evidence::flows::hop_limits::AnsweringHopLimits { opening: Option<u8>, later: Option<u8> }
}

record! {
    /// Answers that acknowledge their question whole.
    AnswerTimes of evidence::exchanges::AnswerTimes { count: usize, least_ns: Option<i64> }
}

record! {
    /// Round trips of plain acknowledgements at the sender.
    RoundTrips of evidence::flows::ack_delays::RoundTrips { count: usize, least_s: f64, short: usize, short_at_once: usize }
}

/// Who may have shut the windows that packets in a direction show the sender: 0 the receiver, in packets that its
/// capture lacks, 1 a middlebox in the receiver's packets, 2 another host.
#[pyfunction]
pub(crate) fn shut_by(
    py: Python<'_>,
    sender: (PacketArrays<'_>, Option<u32>),
    receiver: (PacketArrays<'_>, Option<u32>),
    advertising: u8,
    shift: i64,
    shut_share: f64,
) -> PyResult<u8> {
    let at_sender = Scaled { packets: sender.0.columns()?, window_shift: sender.1 };
    let at_receiver = Scaled { packets: receiver.0.columns()?, window_shift: receiver.1 };
    Ok(match py.detach(|| shut_windows::shut_by(at_sender, at_receiver, advertising, shift, shut_share)) {
        ShutBy::PerhapsReceiver => 0,
        ShutBy::OnReceiversPackets => 1,
        ShutBy::AnotherHost => 2,
    })
}

/// The course of the windows that packets in a direction advertise.
#[pyfunction]
pub(crate) fn window_course(
    py: Python<'_>,
    direction: u8,
    packets: PacketArrays<'_>,
    shut_share: f64,
    open_share: f64,
) -> PyResult<WindowCourse> {
    let columns = packets.columns()?;
    Ok(py.detach(|| columns.window_course(direction, shut_share, open_share)).into())
}

/// The least shares of the windows that many connections advertise in a direction of each.
#[pyfunction]
pub(crate) fn least_window_shares<'py>(
    py: Python<'py>,
    directions: Vec<u8>,
    packets: Vec<PacketArrays<'py>>,
    shut_share: f64,
    open_share: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    if directions.len() != packets.len() {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    let mut found = Vec::with_capacity(packets.len());
    for (&direction, packets) in directions.iter().zip(&packets) {
        found.push(packets.columns()?.window_course(direction, shut_share, open_share).least_share);
    }
    Ok(found.into_pyarray(py))
}

/// Whether the receiver of a direction reset the connection before that stream's end.
#[pyfunction]
pub(crate) fn abort(py: Python<'_>, direction: u8, packets: PacketArrays<'_>) -> PyResult<Option<Abort>> {
    let columns = packets.columns()?;
    Ok(py.detach(|| columns.abort(direction)).map(Abort::from))
}

/// How far the sender of a direction was acknowledged, and when the other end ended.
#[pyfunction]
pub(crate) fn abort_at_sender(py: Python<'_>, direction: u8, packets: PacketArrays<'_>) -> PyResult<AbortAtSender> {
    let columns = packets.columns()?;
    Ok(py.detach(|| columns.abort_at_sender(direction)).into())
}

/// FINs of many connections, as arrays with a row a direction: how many, and when the first came.
#[pyfunction]
pub(crate) fn fins<'py>(py: Python<'py>, packets: Vec<PacketArrays<'py>>) -> PyResult<[Bound<'py, PyArray2<i64>>; 2]> {
    let mut found = Vec::with_capacity(packets.len());
    for each in &packets {
        found.push(each.columns()?.fins());
    }
    let counts = Array2::from_shape_fn((2, found.len()), |(way, row)| found[row][way].count as i64);
    let firsts = Array2::from_shape_fn((2, found.len()), |(way, row)| number_or_unknown(found[row][way].first_ns));
    Ok([counts.into_pyarray(py), firsts.into_pyarray(py)])
}

/// The most frequent hop limit of many connections, as an array with a row a direction.
#[pyfunction]
pub(crate) fn hop_limits<'py>(py: Python<'py>, packets: Vec<PacketArrays<'py>>) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let mut found = Vec::with_capacity(packets.len());
    for each in &packets {
        found.push(each.columns()?.hop_limits());
    }
    let rows = Array2::from_shape_fn((2, found.len()), |(way, number)| number_or_unknown(found[number][way]));
    Ok(rows.into_pyarray(py))
}

/// Hop limits of a direction's answer to a handshake and of what followed.
#[pyfunction]
pub(crate) fn answering_hop_limits(
    py: Python<'_>,
    direction: u8,
    packets: PacketArrays<'_>,
) -> PyResult<AnsweringHopLimits> {
    let columns = packets.columns()?;
    Ok(py.detach(|| columns.answering_hop_limits(direction)).into())
}

/// How often questions in a direction were answered, and how soon.
#[pyfunction]
pub(crate) fn answer_times(py: Python<'_>, asked: u8, packets: PacketArrays<'_>) -> PyResult<AnswerTimes> {
    let columns = packets.columns()?;
    Ok(py.detach(|| columns.answer_times(asked)).into())
}

/// Delays of the plain acknowledgements of the data of flows, at their receivers: how many, and the least.
#[pyfunction]
pub(crate) fn ack_delays<'py>(
    py: Python<'py>,
    directions: Vec<u8>,
    packets: Vec<PacketArrays<'py>>,
) -> PyResult<[Bound<'py, PyArray1<i64>>; 2]> {
    if directions.len() != packets.len() {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    let mut found = Vec::with_capacity(packets.len());
    for (direction, each) in directions.into_iter().zip(&packets) {
        found.push(each.columns()?.ack_delays(direction));
    }
    let counts = PyArray1::from_iter(py, found.iter().map(|delays| delays.count as i64));
    let least_ns = PyArray1::from_iter(py, found.iter().map(|delays| number_or_unknown(delays.least_ns)));
    Ok([counts, least_ns])
}

/// Round trips of a direction's data at its sender, and how many are shorter than a limit.
#[pyfunction]
pub(crate) fn plain_round_trips(
    py: Python<'_>,
    direction: u8,
    packets: PacketArrays<'_>,
    limit_s: f64,
) -> PyResult<RoundTrips> {
    let columns = packets.columns()?;
    Ok(py.detach(|| columns.plain_round_trips(direction, limit_s)).into())
}

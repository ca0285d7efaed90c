//! Times of a flow at both ends, from NumPy columns to a record of numbers.

use numpy::PyArray1;
use pepscope_evidence::clocks::early_acks::{ClockBound, EarlyCount};
use pepscope_evidence::clocks::lines::{ClockLine, ClockLines};
use pepscope_evidence::flows::times::{self, FlowCaptures};
use pyo3::prelude::*;

use crate::packets::PacketArrays;

type Int64s<'py> = Bound<'py, PyArray1<i64>>;
/// Start, reference, offset and drift of each piece of a clock relation.
pub(crate) type Lines = Vec<(i64, i64, f64, f64)>;

/// Times of a flow in the captures at its two ends.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct FlowTimes(pub(crate) times::FlowTimes);

#[pymethods]
impl FlowTimes {
    /// The times of a flow; None where its sender's capture holds no data.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "two captures and how they are to be read")]
    fn of_captures(
        py: Python<'_>,
        direction: u8,
        sender: PacketArrays<'_>,
        receiver: PacketArrays<'_>,
        shift: i64,
        sender_began: bool,
        receiver_began: bool,
        points_limit: usize,
        same_copy_ns: i64,
    ) -> PyResult<Option<Self>> {
        let (sender, receiver) = (sender.columns()?, receiver.columns()?);
        let captures = FlowCaptures { direction, sender, receiver, shift, sender_began, receiver_began };
        Ok(py.detach(|| captures.times(points_limit, same_copy_ns)).map(Self))
    }

    #[getter]
    fn data_count(&self) -> usize {
        self.0.data_sent_ns.len()
    }

    #[getter]
    fn ack_count(&self) -> usize {
        self.0.ack_seen_ns.len()
    }

    #[getter]
    fn timed_ack_count(&self) -> usize {
        self.0.ack_differences(false).count()
    }

    #[getter]
    fn round_trip_count(&self) -> usize {
        self.0.round_trips_ns().count()
    }

    #[getter]
    fn least_round_trip_ns(&self) -> Option<i64> {
        self.0.round_trips_ns().min()
    }

    #[getter]
    fn least_hold_ns(&self) -> Option<i64> {
        self.0.holds_ns().min()
    }

    #[getter]
    fn first_delay_ns(&self) -> Option<i64> {
        self.0.delays_ns().next()
    }

    #[getter]
    fn least_delay_ns(&self) -> Option<i64> {
        self.0.delays_ns().min()
    }

    #[getter]
    fn sender_missed(&self) -> (f64, usize) {
        self.0.sender_missed
    }

    #[getter]
    fn receiver_missed(&self) -> (f64, usize) {
        self.0.receiver_missed
    }

    /// How many acknowledgement round trips are below a limit.
    fn round_trips_below(&self, limit_ns: f64) -> usize {
        self.0.round_trips_ns().filter(|&time_ns| (time_ns as f64) < limit_ns).count()
    }

    /// Acknowledgements that came too early, and those that were compared.
    fn early_acks(&self, py: Python<'_>, lines: Lines, spared: usize, error_ns: f64) -> (usize, usize) {
        let lines = taken_over(lines);
        py.detach(|| handed_over(self.0.early_acks(ClockBound { lines: ClockLines(&lines), spared, error_ns })))
    }

    /// The same by the receiver's own acknowledgements, for each part of the connection.
    fn early_own_acks(&self, py: Python<'_>, lines: Lines, spared: usize, error_ns: f64) -> Vec<(usize, usize)> {
        let lines = taken_over(lines);
        py.detach(|| {
            let parts = self.0.early_own_acks(ClockBound { lines: ClockLines(&lines), spared, error_ns });
            parts.into_iter().map(handed_over).collect()
        })
    }

    /// Timed and violating acknowledgements and the least margin, by a given offset.
    fn published(&self, theta_ns: i64, error_s: f64) -> Option<(usize, usize, f64)> {
        self.0.published(theta_ns, error_s).map(|found| (found.timed, found.violating, found.margin_s))
    }

    #[getter]
    fn data_sent_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_slice(py, &self.0.data_sent_ns)
    }

    #[getter]
    fn data_arrived_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_slice(py, &self.0.data_arrived_ns)
    }

    #[getter]
    fn ack_value<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_slice(py, &self.0.ack_value)
    }

    #[getter]
    fn ack_seen_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_slice(py, &self.0.ack_seen_ns)
    }

    #[getter]
    fn ack_sent_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_slice(py, &self.0.ack_sent_ns)
    }

    #[getter]
    fn arrival_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_slice(py, &self.0.arrival_ns)
    }

    #[getter]
    fn earliest_ack_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_iter(py, self.0.earliest_ack_ns())
    }

    #[getter]
    fn round_trip_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_slice(py, &self.0.round_trip_ns)
    }

    #[getter]
    fn own_ack<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        PyArray1::from_slice(py, &self.0.own_ack)
    }
}

pub(crate) fn taken_over(lines: Lines) -> Vec<ClockLine> {
    let line = |(start_ns, reference_ns, offset_ns, drift)| ClockLine { start_ns, reference_ns, offset_ns, drift };
    lines.into_iter().map(line).collect()
}

fn handed_over(count: EarlyCount) -> (usize, usize) {
    (count.early, count.compared)
}

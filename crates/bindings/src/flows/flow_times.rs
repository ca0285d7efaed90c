//! Times of a flow at both ends, from NumPy columns to a record of numbers.

use numpy::PyArray1;
use pepscope_evidence::clocks::lines::ClockLine;
use pepscope_evidence::flows::times;
use pyo3::prelude::*;

type Int64s<'py> = Bound<'py, PyArray1<i64>>;
/// Start, reference, offset and drift of each piece of a clock relation.
pub(crate) type Lines = Vec<(i64, i64, f64, f64)>;

/// Times of a flow in the captures at its two ends.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct FlowTimes(pub(crate) times::FlowTimes);

#[pymethods]
impl FlowTimes {
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

//! Times of a flow at both ends, from NumPy columns to a record of numbers.

use std::borrow::Cow;

use numpy::PyArray1;
use pepscope_evidence::clocks::lines::ClockLine;
use pepscope_evidence::flows::times::{self, TimedAck};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::record::Given;

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
        self.0.data.len()
    }

    #[getter]
    fn ack_count(&self) -> usize {
        self.0.acks.len()
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
        PyArray1::from_iter(py, self.0.data.iter().map(|each| each.sent_ns))
    }

    #[getter]
    fn data_arrived_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_iter(py, self.0.data.iter().map(|each| each.arrived_ns))
    }

    #[getter]
    fn ack_value<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_iter(py, self.0.acks.iter().map(|each| each.value))
    }

    #[getter]
    fn ack_seen_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_iter(py, self.0.acks.iter().map(|each| each.seen_ns))
    }

    #[getter]
    fn ack_sent_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_iter(py, self.0.acks.iter().map(|each| each.sent_ns))
    }

    #[getter]
    fn arrival_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_iter(py, self.0.acks.iter().map(|each| each.arrival_ns))
    }

    #[getter]
    fn earliest_ack_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_iter(py, self.0.acks.iter().map(TimedAck::earliest_ns))
    }

    #[getter]
    fn round_trip_ns<'py>(&self, py: Python<'py>) -> Int64s<'py> {
        PyArray1::from_iter(py, self.0.acks.iter().map(|each| each.round_trip_ns))
    }

    #[getter]
    fn own_ack<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        PyArray1::from_iter(py, self.0.acks.iter().map(|each| each.is_own))
    }
}

/// Clock relations of many connections as columns.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct ClockLineColumns {
    lines: Vec<ClockLine>,
    /// Behind the lines of each connection.
    ends: Vec<usize>,
}

#[pymethods]
impl ClockLineColumns {
    /// The lines of so many connections one after the other; `owners` ascend and say whose each is.
    #[new]
    fn new(
        count: usize,
        owners: Given<'_, i64>,
        start_ns: Given<'_, i64>,
        reference_ns: Given<'_, i64>,
        offset_ns: Given<'_, f64>,
        drift: Given<'_, f64>,
    ) -> PyResult<Self> {
        let (owners, starts, references) = (owners.values(), start_ns.values(), reference_ns.values());
        let (offsets, drifts) = (offset_ns.values(), drift.values());
        let is_even = [starts.len(), references.len(), offsets.len(), drifts.len()] == [owners.len(); 4];
        let are_owners = owners.iter().all(|&owner| usize::try_from(owner).is_ok_and(|owner| owner < count));
        if !is_even || !are_owners || !owners.is_sorted() {
            return Err(PyValueError::new_err(
                "lines must have four numbers and an owner each, and owners must ascend",
            ));
        }
        let line = |row: usize| ClockLine {
            start_ns: starts[row],
            reference_ns: references[row],
            offset_ns: offsets[row],
            drift: drifts[row],
        };
        let ends = (0..count).map(|row| owners.partition_point(|&owner| owner <= row as i64)).collect();
        Ok(Self { lines: (0..owners.len()).map(line).collect(), ends })
    }

    /// Those of some connections.
    fn at(&self, rows: Given<'_, i64>) -> PyResult<Self> {
        let mut chosen = Self { lines: Vec::new(), ends: Vec::new() };
        for &row in rows.values().iter() {
            let lines = usize::try_from(row).ok().and_then(|row| self.of(row));
            chosen.lines.extend_from_slice(lines.ok_or_else(|| PyIndexError::new_err("there is no such connection"))?);
            chosen.ends.push(chosen.lines.len());
        }
        Ok(chosen)
    }

    fn __len__(&self) -> usize {
        self.ends.len()
    }

    /// The lines of one connection.
    fn __getitem__(&self, row: usize) -> PyResult<Lines> {
        let lines = self.of(row).ok_or_else(|| PyIndexError::new_err("there is no such connection"))?;
        Ok(lines.iter().map(|line| (line.start_ns, line.reference_ns, line.offset_ns, line.drift)).collect())
    }
}

impl ClockLineColumns {
    fn of(&self, row: usize) -> Option<&[ClockLine]> {
        let end = *self.ends.get(row)?;
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.lines.get(begin..end)
    }
}

/// The clock relations of many connections.
#[derive(FromPyObject)]
pub(crate) enum GivenLines<'py> {
    Columns(PyRef<'py, ClockLineColumns>),
    Lists(Vec<Lines>),
}

impl GivenLines<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            GivenLines::Columns(columns) => columns.ends.len(),
            GivenLines::Lists(lists) => lists.len(),
        }
    }

    /// Those of one connection, none of one that is not there.
    pub(crate) fn of(&self, row: usize) -> Cow<'_, [ClockLine]> {
        match self {
            GivenLines::Columns(columns) => Cow::Borrowed(columns.of(row).unwrap_or_default()),
            GivenLines::Lists(lists) => Cow::Owned(taken_over(lists.get(row).cloned().unwrap_or_default())),
        }
    }
}

pub(crate) fn taken_over(lines: Lines) -> Vec<ClockLine> {
    let line = |(start_ns, reference_ns, offset_ns, drift)| ClockLine { start_ns, reference_ns, offset_ns, drift };
    lines.into_iter().map(line).collect()
}

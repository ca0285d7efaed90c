//! Segments of a connection at two capture points: packet columns in, counts out.

use pepscope_evidence::segments::columns::{Sampling, Vantage};
use pepscope_evidence::segments::pair::{KnownOffsets, Limits};
use pepscope_evidence::segments::places;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::agreement::FieldCounts;
use crate::packets::PacketArrays;

/// Packets, and by direction the powers of two by which windows are divided and when the flow's sender reset the
/// connection.
type VantageArrays<'py> = (PacketArrays<'py>, [u32; 2], [Option<i64>; 2]);

/// Reads the segments of both captures and lays them over each other; None where nothing shows how.
#[pyfunction]
#[pyo3(signature = (
    client, server, *, shifts, supported, sampled_every, fewest_sampled, fewest_joined, copies, majority
))]
#[expect(clippy::too_many_arguments, reason = "two captures, what is known of them, and the limits")]
pub(crate) fn align_segments(
    py: Python<'_>,
    client: VantageArrays<'_>,
    server: VantageArrays<'_>,
    shifts: [i64; 2],
    supported: [bool; 2],
    sampled_every: u64,
    fewest_sampled: usize,
    fewest_joined: usize,
    copies: usize,
    majority: f64,
) -> PyResult<Option<PairSegments>> {
    let (client, server) = (vantage(&client)?, vantage(&server)?);
    let sampling = Sampling { every: sampled_every, fewest: fewest_sampled };
    let limits = Limits { sampling, fewest_joined, copies, majority };
    let known = KnownOffsets { shifts, supported };
    let aligned = py.detach(|| pepscope_evidence::segments::pair::PairSegments::align(&client, &server, known, limits));
    Ok(aligned.map(|segments| PairSegments { segments }))
}

fn vantage<'a>((packets, window_shifts, reset_times_ns): &'a VantageArrays<'_>) -> PyResult<Vantage<'a>> {
    Ok(Vantage { packets: packets.columns()?, window_shifts: *window_shifts, reset_times_ns: *reset_times_ns })
}

/// The segments of both flows at both capture points.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct PairSegments {
    segments: pepscope_evidence::segments::pair::PairSegments,
}

#[pymethods]
impl PairSegments {
    /// Counts over the packets of one direction.
    fn compare(&self, py: Python<'_>, direction: usize, most_skipped: i64) -> PyResult<DirectionCounts> {
        check(direction)?;
        let found = py.detach(|| self.segments.compare(direction, most_skipped));
        let places = found.places;
        Ok(DirectionCounts {
            data: found.data.map(|counts| Py::new(py, FieldCounts::from(counts))).transpose()?,
            acknowledgements: Py::new(py, FieldCounts::from(found.acknowledgements.fields))?,
            positions: handed_over(py, found.acknowledgements.positions)?,
            of_data: Py::new(py, FieldCounts::from(found.of_data.fields))?,
            of_data_positions: handed_over(py, found.of_data.positions)?,
            emitted_acknowledgements: found.emitted_acknowledgements,
            places: (places.both, places.emitted_only, places.arrived_only, places.neither),
            missed_acknowledgements: found.missed_acknowledgements,
            carried_places: found.carried_places,
            shown: found.shown,
            uncovered: found.uncovered,
            uncovered_reverse: found.uncovered_reverse,
        })
    }

    /// The data of one direction cut in two at several places: from which byte on, and counts before and after it.
    fn cut_data(
        &self,
        py: Python<'_>,
        direction: usize,
        parts: usize,
        fewest: usize,
    ) -> PyResult<Vec<(i64, FieldCounts, FieldCounts)>> {
        check(direction)?;
        let found = py.detach(|| self.segments.cut_data(direction, parts, fewest));
        Ok(found.into_iter().map(|cut| (cut.from_byte, cut.before.into(), cut.after.into())).collect())
    }
}

fn check(direction: usize) -> PyResult<()> {
    if direction < 2 {
        Ok(())
    } else {
        Err(PyValueError::new_err(format!("`direction` must be 0 or 1, got {direction}")))
    }
}

fn handed_over(py: Python<'_>, counts: Option<places::PositionCounts>) -> PyResult<Option<Py<PositionCounts>>> {
    let counts = counts.map(|found| PositionCounts {
        emitted: found.emitted,
        possible: found.possible,
        arrived: found.arrived,
        hits: found.hits,
        irregular: found.irregular,
    });
    counts.map(|counts| Py::new(py, counts)).transpose()
}

/// Counts over one packet direction, as the crate gives them.
#[pyclass(module = "pepscope._core", frozen, get_all)]
pub(crate) struct DirectionCounts {
    data: Option<Py<FieldCounts>>,
    acknowledgements: Py<FieldCounts>,
    positions: Option<Py<PositionCounts>>,
    of_data: Py<FieldCounts>,
    of_data_positions: Option<Py<PositionCounts>>,
    emitted_acknowledgements: usize,
    /// Acknowledged at both ends, where they were emitted only, where they arrived only, at neither.
    places: (usize, usize, usize, usize),
    missed_acknowledgements: usize,
    carried_places: usize,
    shown: usize,
    uncovered: f64,
    uncovered_reverse: f64,
}

/// Counts of the places of acknowledgements, as the crate gives them.
#[pyclass(module = "pepscope._core", frozen, get_all)]
pub(crate) struct PositionCounts {
    emitted: usize,
    possible: usize,
    arrived: usize,
    hits: usize,
    irregular: usize,
}

//! Segments of a connection at two capture points: packet columns in, counts out.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyReadonlyArray2};
use pepscope_evidence::segments::columns::{Sampling, Vantage};
use pepscope_evidence::segments::pair::{self, KnownOffsets, Limits};
use pepscope_evidence::segments::{agreement, places};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::captures::packets::PacketArrays;
use crate::pairs::agreement::field_columns;

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

/// Numbers up and down (rows) of many connections, -2**63 where one is not known.
type TwoRows<'py> = PyReadonlyArray2<'py, i64>;

/// The same for many connections: of each vantage packets, powers of two and times of resets as two rows; of the
/// connections shifts and whether they are supported, also as two rows.
#[pyfunction]
#[pyo3(signature = (
    clients, servers, *, shifts, supported, sampled_every, fewest_sampled, fewest_joined, copies, majority
))]
#[expect(clippy::too_many_arguments, reason = "two captures, what is known of them, and the limits")]
pub(crate) fn align_all_segments(
    py: Python<'_>,
    clients: (Vec<PacketArrays<'_>>, TwoRows<'_>, TwoRows<'_>),
    servers: (Vec<PacketArrays<'_>>, TwoRows<'_>, TwoRows<'_>),
    shifts: TwoRows<'_>,
    supported: PyReadonlyArray2<'_, bool>,
    sampled_every: Vec<u64>,
    fewest_sampled: usize,
    fewest_joined: usize,
    copies: usize,
    majority: f64,
) -> PyResult<Vec<Option<PairSegments>>> {
    let count = sampled_every.len();
    let (shifts, supported) = (shifts.as_array(), supported.as_array());
    let tables = [&clients.1, &clients.2, &servers.1, &servers.2].map(PyReadonlyArray2::as_array);
    let is_even = tables.iter().chain([&shifts]).all(|table| table.dim() == (2, count));
    if !is_even || supported.dim() != (2, count) || clients.0.len() != count || servers.0.len() != count {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    let known = |time_ns: i64| (time_ns != i64::MIN).then_some(time_ns);
    let mut found = Vec::with_capacity(count);
    for (row, &every) in sampled_every.iter().enumerate() {
        let two = |table: usize| [0, 1].map(|way| tables[table][[way, row]]);
        let client = Vantage {
            packets: clients.0[row].columns()?,
            window_shifts: two(0).map(|power| u32::try_from(power).unwrap_or_default()),
            reset_times_ns: two(1).map(known),
        };
        let server = Vantage {
            packets: servers.0[row].columns()?,
            window_shifts: two(2).map(|power| u32::try_from(power).unwrap_or_default()),
            reset_times_ns: two(3).map(known),
        };
        let sampling = Sampling { every, fewest: fewest_sampled };
        let limits = Limits { sampling, fewest_joined, copies, majority };
        let offsets = KnownOffsets {
            shifts: [0, 1].map(|way| shifts[[way, row]]),
            supported: [0, 1].map(|way| supported[[way, row]]),
        };
        let aligned = py.detach(|| pair::PairSegments::align(&client, &server, offsets, limits));
        found.push(aligned.map(|segments| PairSegments { segments }));
    }
    Ok(found)
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
    /// The data of one direction cut in two at several places: from which bytes on, and counts as arrays with a row for
    /// what is before and one for what is after. With `least_alike` only where in one of the parts more than this share
    /// of the segments may be those emitted.
    #[pyo3(signature = (direction, parts, fewest, least_alike = None))]
    fn cut_data<'py>(
        &self,
        py: Python<'py>,
        direction: usize,
        parts: usize,
        fewest: usize,
        least_alike: Option<f64>,
    ) -> PyResult<(Vec<i64>, Bound<'py, PyDict>)> {
        check(direction)?;
        let found = py.detach(|| self.segments.cut_data(direction, parts, fewest, least_alike));
        let from_bytes = found.iter().map(|cut| cut.from_byte).collect();
        let (before, after) = found.iter().map(|cut| (Some(&cut.before), Some(&cut.after))).unzip();
        Ok((from_bytes, field_columns(py, &[before, after])?))
    }
}

/// A count of a direction by its name.
type Named<'a, T> = (&'static str, &'a dyn Fn(&pair::DirectionCounts) -> T);
type PlaceCount = fn(places::PositionCounts) -> usize;

/// Counts over the packets of both directions of many connections, as arrays with a row a direction.
///
/// `most_skipped`: the widest gap between two IP identifications in which a third shows that its host sent it.
#[pyfunction]
pub(crate) fn segment_counts<'py>(
    py: Python<'py>,
    compared: Vec<PyRef<'py, PairSegments>>,
    most_skipped: i64,
) -> PyResult<Bound<'py, PyDict>> {
    let segments: Vec<_> = compared.iter().map(|one| &one.segments).collect();
    let found: [Vec<pair::DirectionCounts>; 2] =
        py.detach(|| [0, 1].map(|way| segments.iter().map(|one| one.compare(way, most_skipped)).collect()));
    let columns = PyDict::new(py);
    add_fields(&columns, "data", &found, |one| one.data.as_ref())?;
    add_fields(&columns, "acknowledgements", &found, |one| Some(&one.acknowledgements.fields))?;
    add_fields(&columns, "of_data", &found, |one| Some(&one.of_data.fields))?;
    add_positions(&columns, "positions", &found, |one| one.acknowledgements.positions)?;
    add_positions(&columns, "of_data_positions", &found, |one| one.of_data.positions)?;
    let rows = |value: &dyn Fn(&pair::DirectionCounts) -> f64| two_rows(&found, value).into_pyarray(py);
    let counts: [Named<'_, f64>; 11] = [
        ("emitted_acknowledgements", &|one| one.emitted_acknowledgements as f64),
        ("acknowledged_at_both", &|one| one.places.both as f64),
        ("acknowledged_where_emitted", &|one| one.places.emitted_only as f64),
        ("acknowledged_where_arrived", &|one| one.places.arrived_only as f64),
        ("acknowledged_at_neither", &|one| one.places.neither as f64),
        ("missed_acknowledgements", &|one| one.missed_acknowledgements as f64),
        ("acknowledged_ahead", &|one| one.acknowledged_ahead as f64),
        ("carried_places", &|one| one.carried_places as f64),
        ("shown", &|one| one.shown as f64),
        ("uncovered", &|one| one.uncovered),
        ("uncovered_reverse", &|one| one.uncovered_reverse),
    ];
    for (name, value) in counts {
        columns.set_item(name, rows(value))?;
    }
    Ok(columns)
}

fn two_rows<T, U: Copy>(found: &[Vec<T>; 2], value: impl Fn(&T) -> U) -> Array2<U> {
    Array2::from_shape_fn((2, found[0].len()), |(way, number)| value(&found[way][number]))
}

/// Counts of one class of segments by name; zeros where there is none.
fn add_fields<'py>(
    columns: &Bound<'py, PyDict>,
    name: &str,
    found: &[Vec<pair::DirectionCounts>; 2],
    class: impl Fn(&pair::DirectionCounts) -> Option<&agreement::Agreement>,
) -> PyResult<()> {
    let by_way = [0, 1].map(|way: usize| found[way].iter().map(&class).collect::<Vec<_>>());
    columns.set_item(name, field_columns(columns.py(), &by_way)?)
}

fn add_positions<'py>(
    columns: &Bound<'py, PyDict>,
    name: &str,
    found: &[Vec<pair::DirectionCounts>; 2],
    of: impl Fn(&pair::DirectionCounts) -> Option<places::PositionCounts>,
) -> PyResult<()> {
    let py = columns.py();
    let named = PyDict::new(py);
    let counts: [(&str, PlaceCount); 5] = [
        ("emitted", |one| one.emitted),
        ("possible", |one| one.possible),
        ("arrived", |one| one.arrived),
        ("hits", |one| one.hits),
        ("irregular", |one| one.irregular),
    ];
    for (count, value) in counts {
        let rows = two_rows(found, |one| of(one).map_or(0, |counts| value(counts) as i64));
        named.set_item(count, rows.into_pyarray(py))?;
    }
    columns.set_item(name, named)
}

fn check(direction: usize) -> PyResult<()> {
    if direction < 2 {
        Ok(())
    } else {
        Err(PyValueError::new_err(format!("`direction` must be 0 or 1, got {direction}")))
    }
}

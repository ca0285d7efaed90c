//! What one capture alone is judged by, and the frames that show it, for Python.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pepscope_connections::{AnalysedCapture, Columns, LookupError};
use pepscope_evidence::exchanges::ExchangeReader;
use pepscope_evidence::row_codes as rows;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::captures::capture::{frame_number, raised, Capture};
use crate::captures::decoding::visit;
use crate::captures::freed_memory::let_freed_memory_be_reused;
use crate::connections::exchanges;
use crate::connections::senders;

/// Stands for a frame that is not there.
const NO_FRAME: i64 = -1;

/// Exchanges, round trips and senders of all connections, each of which is decoded once.
#[pyfunction]
pub(crate) fn exchanges_and_senders<'py>(
    py: Python<'py>,
    capture: &Capture,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let analysed = &capture.analysed;
    let find = || {
        let (mut reader, mut found) = (ExchangeReader::default(), senders::Found::default());
        // Columns that grow by doubling would leave behind what they had, in memory that is touched for nothing else.
        let connections = analysed.connection_count();
        reader.exchanges.reserve(connections);
        reader.round_trips.reserve(2 * connections);
        found.reserve(2 * connections);
        visit(analysed, |shown| {
            exchanges::add(&mut reader, analysed, shown);
            found.add(shown);
        })?;
        Ok((exchanges::ordered(reader), found.finish(analysed)?))
    };
    let (reader, found) = py.detach(find).map_err(raised)?;
    let (exchanges, round_trips) = exchanges::tables(py, reader)?;
    Ok((exchanges, round_trips, senders::table(py, found)?))
}

/// Of each member the value with rank `(count - 1) * share`, rounded down, of its known values; NaN of none.
#[pyfunction]
pub(crate) fn member_quantiles<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    owners: PyReadonlyArray1<'py, i64>,
    members: usize,
    share: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (values, owners) = (values.as_slice()?, owners.as_slice()?);
    let found = py.detach(|| pepscope_evidence::member_quantiles::member_quantiles(values, owners, members, share));
    let unfit = || PyValueError::new_err("each value must have an owner, one of the members or a negative number");
    Ok(found.ok_or_else(unfit)?.into_pyarray(py))
}

/// A column of rows that are numbered.
#[derive(FromPyObject)]
pub(crate) enum RowColumn<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    Unsigned(PyReadonlyArray1<'py, u64>),
    Floats(PyReadonlyArray1<'py, f64>),
}

type Numbers<'py> = Bound<'py, PyArray1<i64>>;

/// A number for each row of columns, and of each number the first row that has it.
#[pyfunction]
pub(crate) fn row_codes<'py>(py: Python<'py>, columns: Vec<RowColumn<'py>>) -> PyResult<(Numbers<'py>, Numbers<'py>)> {
    let slices = columns.iter().map(|column| {
        Ok(match column {
            RowColumn::Integers(values) => rows::NumberColumn::Integers(values.as_slice()?),
            RowColumn::Unsigned(values) => rows::NumberColumn::Unsigned(values.as_slice()?),
            RowColumn::Floats(values) => rows::NumberColumn::Floats(values.as_slice()?),
        })
    });
    let slices = slices.collect::<PyResult<Vec<_>>>()?;
    let found = py.detach(|| rows::row_codes(&slices));
    let found = found.ok_or_else(|| PyValueError::new_err("the columns differ in length"))?;
    Ok((found.codes.into_pyarray(py), found.first.into_pyarray(py)))
}

/// The first and the last frame of some connections, a row a connection; -1 of those without packets.
#[pyfunction]
pub(crate) fn frame_spans<'py>(
    py: Python<'py>,
    capture: &Capture,
    connections: Vec<usize>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let analysed = &capture.analysed;
    let mut spans = Array2::from_elem((connections.len(), 2), NO_FRAME);
    for (row, &connection) in connections.iter().enumerate() {
        let ends = |packets: &pepscope_connections::EncodedPackets, place| {
            packets.frame_indices(place).fold(None, |span: Option<[u64; 2]>, frame| {
                Some(span.map_or([frame; 2], |[first, last]| [first.min(frame), last.max(frame)]))
            })
        };
        if let Some(found) = analysed.with_packets(connection, ends).map_err(raised)? {
            for (cell, frame) in spans.row_mut(row).iter_mut().zip(found) {
                *cell = frame_number(frame);
            }
        }
    }
    Ok(spans.into_pyarray(py))
}

/// First and last frame of a connection, and those of some of its packets.
type FramesAt = (Option<(i64, i64)>, Vec<i64>);

/// Frame numbers of some packets of each of these connections, and of its first and its last packet.
#[pyfunction]
pub(crate) fn frames_of_rows(
    py: Python<'_>,
    capture: &Capture,
    connections: Vec<usize>,
    rows: Vec<Vec<usize>>,
) -> PyResult<Vec<FramesAt>> {
    if connections.len() != rows.len() {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    let of_connection = |(connection, rows): (usize, Vec<usize>)| {
        capture.analysed.with_packets(connection, |packets, place| {
            let mut places: Vec<usize> = (0..rows.len()).collect();
            places.sort_unstable_by_key(|&place| rows[place]);
            let mut asked = places.into_iter().peekable();
            let (mut found, mut first, mut last) = (vec![NO_FRAME; rows.len()], i64::MAX, NO_FRAME);
            // Of a long connection few frames are asked for: no list is made of all.
            packets.frame_indices(place).map(frame_number).enumerate().for_each(|(row, frame)| {
                (first, last) = (first.min(frame), last.max(frame));
                while let Some(place) = asked.next_if(|&place| rows[place] == row) {
                    found[place] = frame;
                }
            });
            asked.peek().is_none().then_some(((last != NO_FRAME).then_some((first, last)), found))
        })
    };
    let found: Result<Vec<_>, _> = py.detach(|| connections.into_iter().zip(rows).map(of_connection).collect());
    let found: Option<Vec<_>> = found.map_err(raised)?.into_iter().collect();
    found.ok_or_else(|| PyIndexError::new_err("there is no such packet"))
}

/// A packet that is looked for in a connection.
struct Sought {
    partition: usize,
    connection: usize,
    row: usize,
    direction: u8,
    time_ns: i64,
    carries: bool,
}

impl Sought {
    fn place(&self, columns: &Columns) -> Option<usize> {
        (0..columns.time_ns.len()).find(|&place| {
            columns.time_ns[place] == self.time_ns
                && columns.direction[place] == self.direction
                && (!self.carries || columns.payload_bytes[place] > 0)
        })
    }
}

/// The frame of the first packet of each connection with this direction, this time, and payload where it must carry
/// some; -1 where there is none. Each connection is decoded once, partition by partition.
#[pyfunction]
pub(crate) fn frames_at<'py>(
    py: Python<'py>,
    capture: &Capture,
    connections: PyReadonlyArray1<'py, i64>,
    directions: PyReadonlyArray1<'py, u8>,
    times_ns: PyReadonlyArray1<'py, i64>,
    carrying: PyReadonlyArray1<'py, bool>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let connections = connections.as_slice()?;
    let (directions, times_ns, carrying) = (directions.as_slice()?, times_ns.as_slice()?, carrying.as_slice()?);
    if [directions.len(), times_ns.len(), carrying.len()].iter().any(|&length| length != connections.len()) {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    let mut sought = Vec::with_capacity(connections.len());
    for (row, &connection) in connections.iter().enumerate() {
        let connection = usize::try_from(connection).map_err(|_| PyValueError::new_err("connections count from 0"))?;
        let partition = capture.analysed.partition_of(connection).map_err(raised)?;
        let (direction, time_ns, carries) = (directions[row], times_ns[row], carrying[row]);
        sought.push(Sought { partition, connection, row, direction, time_ns, carries });
    }
    sought.sort_unstable_by_key(|each| (each.partition, each.connection, each.row));
    let_freed_memory_be_reused();
    Ok(py.detach(|| frames_of(&capture.analysed, &sought)).map_err(raised)?.into_pyarray(py))
}

/// The frame of each packet by its row; those of one connection stand together.
fn frames_of(analysed: &AnalysedCapture, sought: &[Sought]) -> Result<Vec<i64>, LookupError> {
    let mut found = vec![NO_FRAME; sought.len()];
    for same in sought.chunk_by(|one, other| one.connection == other.connection) {
        analysed.with_packets(same[0].connection, |packets, place| {
            let columns = packets.decode(place..place + 1);
            let frames: Vec<u64> = packets.frame_indices(place).collect();
            for each in same {
                if let Some(&frame) = each.place(&columns).and_then(|place| frames.get(place)) {
                    found[each.row] = frame_number(frame);
                }
            }
        })?;
    }
    Ok(found)
}

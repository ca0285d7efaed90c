//! Exchanges of connections for Python.

use numpy::IntoPyArray;
use pepscope_connections::{AnalysedCapture, LookupError};
use pepscope_evidence::exchanges::{ExchangeReader, Kind};
use pepscope_evidence::payload::sample;
use pepscope_evidence::{for_each_exchange_column, for_each_round_trip_column};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::packets::{rows, PacketArrays};
use crate::payload::PayloadSample;

/// So many connections are decoded at a time.
const BATCH: usize = 1024;

/// Columns of exchanges and of round trips.
pub(crate) type Tables<'py> = (Bound<'py, PyDict>, Bound<'py, PyDict>);

/// The exchanges of all connections, by connection.
pub(crate) fn of_capture(analysed: &AnalysedCapture) -> Result<ExchangeReader, LookupError> {
    let mut reader = ExchangeReader::default();
    let mut payload = [sample::PayloadSample::default(), sample::PayloadSample::default()];
    for (partition, members) in analysed.partition_members().iter().enumerate() {
        analysed.with_partition(partition, |packets, kept| {
            for (batch, numbers) in members.chunks(BATCH).enumerate() {
                let first = batch * BATCH;
                let columns = packets.decode(first..first + numbers.len());
                for (number, bounds) in columns.starts.windows(2).enumerate() {
                    for (direction, sample) in payload.iter_mut().enumerate() {
                        sample.refill(kept.of(first + number, direction));
                    }
                    let [up, down] = &payload;
                    reader.add(numbers[number] as u32, &rows(&columns, bounds[0]..bounds[1]), [up, down]);
                }
            }
        })?;
    }
    reader.exchanges.by_connection();
    reader.round_trips.by_connection();
    Ok(reader)
}

/// The columns by name.
pub(crate) fn tables(py: Python<'_>, found: ExchangeReader) -> PyResult<Tables<'_>> {
    let (exchanges, round_trips) = (PyDict::new(py), PyDict::new(py));
    macro_rules! put_exchanges {
        ($($name:ident: $element:ty,)*) => {
            $(exchanges.set_item(stringify!($name), found.exchanges.$name.into_pyarray(py))?;)*
        };
    }
    macro_rules! put_round_trips {
        ($($name:ident: $element:ty,)*) => {
            $(round_trips.set_item(stringify!($name), found.round_trips.$name.into_pyarray(py))?;)*
        };
    }
    for_each_exchange_column!(put_exchanges);
    for_each_round_trip_column!(put_round_trips);
    Ok((exchanges, round_trips))
}

/// Exchanges and round trips of one connection, which has number 0.
#[pyfunction]
pub(crate) fn connection_exchanges<'py>(
    py: Python<'py>,
    packets: PacketArrays<'_>,
    up: &PayloadSample,
    down: &PayloadSample,
) -> PyResult<Tables<'py>> {
    let columns = packets.columns()?;
    let found = py.detach(|| {
        let mut reader = ExchangeReader::default();
        reader.add(0, &columns, [&up.sample, &down.sample]);
        reader
    });
    tables(py, found)
}

/// Names of the kinds of exchanges by their codes.
#[pyfunction]
pub(crate) fn exchange_kinds(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, Kind::NAMES)
}

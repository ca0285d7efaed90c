//! Exchanges of connections for Python.

use numpy::IntoPyArray;
use pepscope_connections::{AnalysedCapture, ConnectionSummary, LookupError};
use pepscope_evidence::exchanges::{ExchangeReader, Kind};
use pepscope_evidence::{for_each_exchange_column, for_each_round_trip_column};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::captures::decoding::{visit, Shown};
use crate::captures::packets::PacketArrays;
use crate::captures::payload::PayloadSample;

/// Columns of exchanges and of round trips.
pub(crate) type Tables<'py> = (Bound<'py, PyDict>, Bound<'py, PyDict>);

/// The exchanges of all connections, by connection.
pub(crate) fn of_capture(analysed: &AnalysedCapture) -> Result<ExchangeReader, LookupError> {
    let mut reader = ExchangeReader::default();
    visit(analysed, |shown| add(&mut reader, analysed, shown))?;
    Ok(ordered(reader))
}

pub(crate) fn add(reader: &mut ExchangeReader, analysed: &AnalysedCapture, shown: &Shown<'_>) {
    let port_of = |summaries: &[ConnectionSummary<'_>]| summaries.first().map(|summary| summary.server_port);
    let server_port = || analysed.with_summaries(std::iter::once(shown.number as usize), port_of).ok().flatten();
    let payload = [0, 1].map(|direction| shown.payload.of(shown.place, direction));
    reader.add(shown.number, &shown.packets, payload, server_port);
}

/// What was found, by connection.
pub(crate) fn ordered(mut found: ExchangeReader) -> ExchangeReader {
    found.exchanges.by_connection();
    found.round_trips.by_connection();
    found
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
#[pyo3(signature = (packets, up, down, server_port=None))]
pub(crate) fn connection_exchanges<'py>(
    py: Python<'py>,
    packets: PacketArrays<'_>,
    up: &PayloadSample,
    down: &PayloadSample,
    server_port: Option<u16>,
) -> PyResult<Tables<'py>> {
    let columns = packets.columns()?;
    let found = py.detach(|| {
        let mut reader = ExchangeReader::default();
        reader.add(0, &columns, [up.sample.pieces(), down.sample.pieces()], || server_port);
        reader
    });
    tables(py, found)
}

/// Names of the kinds of exchanges by their codes.
#[pyfunction]
pub(crate) fn exchange_kinds(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, Kind::NAMES)
}

//! Summaries as dictionaries for one connection and as columns for all of them.

use numpy::ndarray::Array2;
use numpy::{Element, IntoPyArray};
use pepscope_connections::{address_text, tunnel_name, Close, ConnectionSummary, FlowSummary, MissingPackets};
use pepscope_connections::{for_each_connection_field, for_each_flow_field};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A value in a column of NumPy's; -1 and NaN stand for what was not seen.
trait Cell {
    type Stored: Element;
    fn stored(self) -> Self::Stored;
}

macro_rules! integer_cell {
    ($($kind:ty),*) => {$(
        impl Cell for $kind {
            type Stored = i64;
            fn stored(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
        impl Cell for Option<$kind> {
            type Stored = i64;
            fn stored(self) -> i64 {
                self.map_or(-1, Cell::stored)
            }
        }
    )*};
}
integer_cell!(u8, u16, u32, u64, i64);

impl Cell for bool {
    type Stored = bool;
    fn stored(self) -> bool {
        self
    }
}

impl Cell for Option<f64> {
    type Stored = f64;
    fn stored(self) -> f64 {
        self.unwrap_or(f64::NAN)
    }
}

fn add_column<'py, T: Cell>(
    columns: &Bound<'py, PyDict>,
    name: &str,
    summaries: &[ConnectionSummary<'_>],
    value: impl Fn(&ConnectionSummary<'_>) -> T,
) -> PyResult<()> {
    let stored: Vec<T::Stored> = summaries.iter().map(|summary| value(summary).stored()).collect();
    columns.set_item(name, stored.into_pyarray(columns.py()))
}

fn add_addresses<'py>(
    columns: &Bound<'py, PyDict>,
    name: &str,
    summaries: &[ConnectionSummary<'_>],
    address: impl Fn(&ConnectionSummary<'_>) -> [u8; 16],
) -> PyResult<()> {
    let rows = Array2::from_shape_fn((summaries.len(), 16), |(row, byte)| address(&summaries[row])[byte]);
    columns.set_item(name, rows.into_pyarray(columns.py()))
}

fn close_code(close: Close) -> u8 {
    match close {
        Close::Fin => 0,
        Close::Reset => 1,
        Close::Open => 2,
    }
}

fn missing_code(missing: MissingPackets) -> u8 {
    match missing {
        MissingPackets::None => 0,
        MissingPackets::All => 1,
        MissingPackets::PureAcknowledgements => 2,
        MissingPackets::Data => 3,
    }
}

/// One array a field, in the order of the summaries.
pub(crate) fn columns<'py>(py: Python<'py>, summaries: &[ConnectionSummary<'_>]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    add_addresses(&columns, "client_address", summaries, |summary| summary.client_address)?;
    add_addresses(&columns, "server_address", summaries, |summary| summary.server_address)?;
    macro_rules! connection_columns {
        ($($field:ident),*) => {
            $(add_column(&columns, stringify!($field), summaries, |summary| summary.$field)?;)*
        };
    }
    for_each_connection_field!(connection_columns);
    add_column(&columns, "close", summaries, |summary| close_code(summary.close))?;
    add_column(&columns, "tunnel", summaries, |summary| summary.tunnel as u8)?;
    macro_rules! flow_columns {
        ($($field:ident),*) => {
            $(add_column(&columns, concat!("up_", stringify!($field)), summaries, |summary| summary.up.$field)?;)*
            $(add_column(&columns, concat!("down_", stringify!($field)), summaries, |summary| summary.down.$field)?;)*
        };
    }
    for_each_flow_field!(flow_columns);
    add_column(&columns, "up_missing_packets", summaries, |summary| missing_code(summary.up.missing_packets))?;
    add_column(&columns, "down_missing_packets", summaries, |summary| missing_code(summary.down.missing_packets))?;
    Ok(columns)
}

fn flow<'py>(py: Python<'py>, flow: &FlowSummary<'_>) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    macro_rules! flow_entries {
        ($($field:ident),*) => {
            $(fields.set_item(intern!(py, stringify!($field)), flow.$field)?;)*
        };
    }
    for_each_flow_field!(flow_entries);
    fields.set_item(intern!(py, "syn_options"), PyBytes::new(py, flow.syn_options))?;
    fields.set_item(intern!(py, "missing_packets"), flow.missing_packets.name())?;
    Ok(fields)
}

/// Fields of a connection, of its flow up and of its flow down, named as in `pepscope.captures.connections`.
pub(crate) type Fields<'py> = (Bound<'py, PyDict>, Bound<'py, PyDict>, Bound<'py, PyDict>);

/// The fields of one connection.
pub(crate) fn fields<'py>(py: Python<'py>, index: usize, summary: &ConnectionSummary<'_>) -> PyResult<Fields<'py>> {
    let fields = PyDict::new(py);
    fields.set_item(intern!(py, "id"), index)?;
    let address = |address| address_text(address, summary.ip_version);
    fields.set_item(intern!(py, "client_address"), address(summary.client_address))?;
    fields.set_item(intern!(py, "server_address"), address(summary.server_address))?;
    macro_rules! connection_entries {
        ($($field:ident),*) => {
            $(fields.set_item(intern!(py, stringify!($field)), summary.$field)?;)*
        };
    }
    for_each_connection_field!(connection_entries);
    fields.set_item(intern!(py, "close"), summary.close.name())?;
    fields.set_item(intern!(py, "tunnel"), tunnel_name(summary.tunnel))?;
    Ok((fields, flow(py, &summary.up)?, flow(py, &summary.down)?))
}

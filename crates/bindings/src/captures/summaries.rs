//! Summaries as dictionaries for one connection and as columns for all of them.

use numpy::ndarray::Array2;
use numpy::{Element, IntoPyArray};
use pepscope_connections::{address_text, tunnel_name, Close, ConnectionSummary, FlowSummary, MissingPackets};
use pepscope_connections::{for_each_connection_field, for_each_flow_field};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pyo3::IntoPyObjectExt;

/// A value in a column of NumPy's; `unseen` and NaN stand for what was not seen.
trait Cell {
    type Stored: Element;
    fn stored(self, unseen: i64) -> Self::Stored;
}

macro_rules! integer_cell {
    ($($kind:ty),*) => {$(
        impl Cell for $kind {
            type Stored = i64;
            fn stored(self, _: i64) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
        impl Cell for Option<$kind> {
            type Stored = i64;
            fn stored(self, unseen: i64) -> i64 {
                self.map_or(unseen, |value| value.stored(unseen))
            }
        }
    )*};
}
integer_cell!(u8, u16, u32, u64, i64);

impl Cell for bool {
    type Stored = bool;
    fn stored(self, _: i64) -> bool {
        self
    }
}

impl Cell for Option<f64> {
    type Stored = f64;
    fn stored(self, _: i64) -> f64 {
        self.unwrap_or(f64::NAN)
    }
}

fn add_column<'py, T: Cell>(
    columns: &Bound<'py, PyDict>,
    name: &str,
    (summaries, unseen): (&[ConnectionSummary<'_>], i64),
    value: impl Fn(&ConnectionSummary<'_>) -> T,
) -> PyResult<()> {
    let stored: Vec<T::Stored> = summaries.iter().map(|summary| value(summary).stored(unseen)).collect();
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
/// `unseen` stands for whole numbers that were not seen.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    summaries: &[ConnectionSummary<'_>],
    unseen: i64,
) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    add_addresses(&columns, "client_address", summaries, |summary| summary.client_address)?;
    add_addresses(&columns, "server_address", summaries, |summary| summary.server_address)?;
    macro_rules! connection_columns {
        ($($field:ident),*) => {
            $(add_column(&columns, stringify!($field), (summaries, unseen), |summary| summary.$field)?;)*
        };
    }
    for_each_connection_field!(connection_columns);
    add_column(&columns, "close", (summaries, unseen), |summary| close_code(summary.close))?;
    add_column(&columns, "tunnel", (summaries, unseen), |summary| summary.tunnel as u8)?;
    macro_rules! flow_columns {
        ($($field:ident),*) => {
            $(add_column(&columns, concat!("up_", stringify!($field)), (summaries, unseen), |summary| summary.up.$field)?;)*
            $(add_column(&columns, concat!("down_", stringify!($field)), (summaries, unseen), |summary| summary.down.$field)?;)*
        };
    }
    for_each_flow_field!(flow_columns);
    add_column(&columns, "up_missing_packets", (summaries, unseen), |summary| {
        missing_code(summary.up.missing_packets)
    })?;
    add_column(&columns, "down_missing_packets", (summaries, unseen), |summary| {
        missing_code(summary.down.missing_packets)
    })?;
    Ok(columns)
}

/// Client and server as `ip:port`, IPv6 in brackets.
pub(crate) fn end_points(summary: &ConnectionSummary<'_>) -> (String, String) {
    let end_point = |address, port: u16| {
        let address = address_text(address, summary.ip_version);
        if address.contains(':') {
            format!("[{address}]:{port}")
        } else {
            format!("{address}:{port}")
        }
    };
    (end_point(summary.client_address, summary.client_port), end_point(summary.server_address, summary.server_port))
}

/// Values of a summary in the order of its fields in `pepscope.captures.connections`.
type Values<'py> = Bound<'py, PyTuple>;

fn object<'py, T: IntoPyObjectExt<'py>>(py: Python<'py>, value: T) -> PyResult<Bound<'py, PyAny>> {
    value.into_bound_py_any(py)
}

fn flow<'py>(py: Python<'py>, flow: &FlowSummary<'_>, missing: &Bound<'py, PyTuple>) -> PyResult<Values<'py>> {
    let mut values = Vec::with_capacity(40);
    macro_rules! flow_values {
        ($($field:ident),*) => {
            $(values.push(object(py, flow.$field)?);)*
        };
    }
    for_each_flow_field!(flow_values);
    values.push(PyBytes::new(py, flow.syn_options).into_any());
    values.push(missing.get_item(usize::from(missing_code(flow.missing_packets)))?);
    PyTuple::new(py, values)
}

/// Values of a connection but for its flows, of its flow up and of its flow down.
pub(crate) type Fields<'py> = (Values<'py>, Values<'py>, Values<'py>);

/// The values of one connection; `closes` and `missing` are the members of enums that stand for codes.
pub(crate) fn fields<'py>(
    py: Python<'py>,
    index: usize,
    summary: &ConnectionSummary<'_>,
    closes: &Bound<'py, PyTuple>,
    missing: &Bound<'py, PyTuple>,
) -> PyResult<Fields<'py>> {
    let address = |address| address_text(address, summary.ip_version);
    let mut values = vec![
        object(py, index)?,
        object(py, address(summary.client_address))?,
        object(py, address(summary.server_address))?,
    ];
    macro_rules! connection_values {
        ($($field:ident),*) => {
            $(values.push(object(py, summary.$field)?);)*
        };
    }
    for_each_connection_field!(connection_values);
    values.push(closes.get_item(usize::from(close_code(summary.close)))?);
    values.push(object(py, tunnel_name(summary.tunnel))?);
    Ok((PyTuple::new(py, values)?, flow(py, &summary.up, missing)?, flow(py, &summary.down, missing)?))
}

//! Summaries as dictionaries for one connection and as columns for all of them.

use numpy::ndarray::Array2;
use numpy::{Element, IntoPyArray};
use pepscope_connections::{address_text, push_end_point, tunnel_name, Close, ConnectionSummary};
use pepscope_connections::{for_each_connection_field, for_each_flow_field};
use pepscope_connections::{FlowSummary, MissingPackets};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pyo3::IntoPyObjectExt;

use crate::texts::Joined;

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

/// Columns of summaries, of which those that are `wanted` are made.
struct Columns<'a, 'py> {
    made: Bound<'py, PyDict>,
    summaries: &'a [ConnectionSummary<'a>],
    unseen: i64,
    wanted: Option<&'a [String]>,
}

impl Columns<'_, '_> {
    fn is_wanted(&self, name: &str) -> bool {
        self.wanted.is_none_or(|wanted| wanted.iter().any(|each| each == name))
    }

    fn add<T: Cell>(&self, name: &str, value: impl Fn(&ConnectionSummary<'_>) -> T) -> PyResult<()> {
        if !self.is_wanted(name) {
            return Ok(());
        }
        let stored: Vec<T::Stored> = self.summaries.iter().map(|summary| value(summary).stored(self.unseen)).collect();
        self.made.set_item(name, stored.into_pyarray(self.made.py()))
    }

    fn add_addresses(&self, name: &str, address: impl Fn(&ConnectionSummary<'_>) -> [u8; 16]) -> PyResult<()> {
        if !self.is_wanted(name) {
            return Ok(());
        }
        let rows = Array2::from_shape_fn((self.summaries.len(), 16), |(row, byte)| address(&self.summaries[row])[byte]);
        self.made.set_item(name, rows.into_pyarray(self.made.py()))
    }

    fn add_numbers(&self) -> PyResult<()> {
        macro_rules! connection_columns {
            ($($field:ident),*) => {
                $(self.add(stringify!($field), |summary| summary.$field)?;)*
            };
        }
        for_each_connection_field!(connection_columns);
        self.add("close", |summary| close_code(summary.close))?;
        self.add("tunnel", |summary| summary.tunnel as u8)?;
        macro_rules! flow_columns {
            ($($field:ident),*) => {
                $(self.add(concat!("up_", stringify!($field)), |summary| summary.up.$field)?;)*
                $(self.add(concat!("down_", stringify!($field)), |summary| summary.down.$field)?;)*
            };
        }
        for_each_flow_field!(flow_columns);
        self.add("up_missing_packets", |summary| missing_code(summary.up.missing_packets))?;
        self.add("down_missing_packets", |summary| missing_code(summary.down.missing_packets))
    }
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

/// One array a field, or for each of the fields that are `wanted`, in the order of the summaries.
/// `unseen` stands for whole numbers that were not seen.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    summaries: &[ConnectionSummary<'_>],
    unseen: i64,
    wanted: Option<&[String]>,
) -> PyResult<Bound<'py, PyDict>> {
    let columns = Columns { made: PyDict::new(py), summaries, unseen, wanted };
    columns.add_addresses("client_address", |summary| summary.client_address)?;
    columns.add_addresses("server_address", |summary| summary.server_address)?;
    columns.add_numbers()?;
    Ok(columns.made)
}

/// The same of all fields but addresses.
pub(crate) fn numbers<'py>(
    py: Python<'py>,
    summaries: &[ConnectionSummary<'_>],
    unseen: i64,
) -> PyResult<Bound<'py, PyDict>> {
    let columns = Columns { made: PyDict::new(py), summaries, unseen, wanted: None };
    columns.add_numbers()?;
    Ok(columns.made)
}

/// Clients or servers of connections as `ip:port`, IPv6 in brackets, one behind the other.
pub(crate) fn end_points<'py>(
    py: Python<'py>,
    summaries: &[ConnectionSummary<'_>],
    end: impl Fn(&ConnectionSummary<'_>) -> ([u8; 16], u16),
) -> Joined<'py> {
    let mut text = String::with_capacity(summaries.len() * "255.255.255.255:65535".len());
    let mut ends = Vec::with_capacity(summaries.len() + 1);
    ends.push(0);
    for summary in summaries {
        let (address, port) = end(summary);
        push_end_point(&mut text, address, summary.ip_version, port);
        ends.push(text.len() as i64);
    }
    (text.into_bytes().into_pyarray(py), ends.into_pyarray(py))
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

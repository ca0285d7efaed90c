//! Where flows begin and end, from packet columns to columns of connections.

use std::collections::HashMap;

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pepscope_evidence::flows::opening_options::without_stamps;
use pepscope_evidence::flows::openings::{passed, Passed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::captures::packets::PacketArrays;
use crate::record::number_or_unknown;

/// Greatest stream offset at which a FIN stands in many connections, as an array with a row a direction.
#[pyfunction]
pub(crate) fn fin_offsets<'py>(
    py: Python<'py>,
    packets: Vec<PacketArrays<'py>>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let mut found = Vec::with_capacity(packets.len());
    for each in &packets {
        let columns = each.columns()?;
        found.push([0, 1].map(|direction| columns.fin_offset(direction)));
    }
    Ok(Array2::from_shape_fn((2, found.len()), |(way, row)| number_or_unknown(found[row][way])).into_pyarray(py))
}

/// Options of SYNs as places in the list of those that differ by more than the values of timestamps.
#[pyfunction]
pub(crate) fn coded_options<'py>(
    py: Python<'py>,
    octets: Vec<PyBackedBytes>,
    blanked: usize,
) -> (Bound<'py, PyArray1<i64>>, Vec<Bound<'py, PyBytes>>) {
    let mut code_of = HashMap::new();
    let mut distinct = Vec::new();
    let codes = octets.iter().map(|octets| {
        let kept = without_stamps(octets, blanked);
        *code_of.entry(kept).or_insert_with_key(|kept| {
            distinct.push(PyBytes::new(py, kept));
            distinct.len() as i64 - 1
        })
    });
    let codes: Vec<i64> = codes.collect();
    (codes.into_pyarray(py), distinct)
}

type Number = fn(&Passed) -> i64;

/// What both captures show of SYN and SYN-ACK, for many connections.
#[pyfunction]
pub(crate) fn openings<'py>(
    py: Python<'py>,
    clients: Vec<PacketArrays<'py>>,
    servers: Vec<PacketArrays<'py>>,
) -> PyResult<Bound<'py, PyDict>> {
    if clients.len() != servers.len() {
        return Err(PyValueError::new_err("`clients` and `servers` differ in number"));
    }
    let mut found: Vec<[Passed; 2]> = Vec::with_capacity(clients.len());
    for (client, server) in clients.iter().zip(&servers) {
        let (near, far) = (client.columns()?, server.columns()?);
        found.push([passed(&near.syn_copies(0), &far.syn_copies(0)), passed(&far.syn_copies(1), &near.syn_copies(1))]);
    }
    let columns = PyDict::new(py);
    let values: [(&str, Number); 12] = [
        ("copies_left", |one| one.copies[0] as i64),
        ("copies_arrived", |one| one.copies[1] as i64),
        ("ttl_left", |one| one.ttl[0].into()),
        ("ttl_arrived", |one| one.ttl[1].into()),
        ("window_left", |one| one.window[0].into()),
        ("window_arrived", |one| one.window[1].into()),
        ("windows", |one| one.windows as i64),
        ("tsvals", |one| one.tsvals as i64),
        ("ip_ids", |one| one.ip_ids as i64),
        ("ecn", |one| one.ecn as i64),
        ("ecn_left", |one| one.most_ecn[0].into()),
        ("ecn_arrived", |one| one.most_ecn[1].into()),
    ];
    for (name, value) in values {
        let rows = Array2::from_shape_fn((2, found.len()), |(way, number)| value(&found[number][way]));
        columns.set_item(name, rows.into_pyarray(py))?;
    }
    Ok(columns)
}

//! UDP flows as dictionaries, their samples as lists.

use pepscope_connections::{address_text, DatagramFlow, DatagramSide};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Ranks, times, lengths on the wire, and bytes.
pub(crate) type Sample<'py> = (Vec<u64>, Vec<i64>, Vec<u32>, Vec<Bound<'py, PyBytes>>);

/// The fields of one flow, named as in `pepscope.captures.datagrams`; pairs have the first sender's value first.
pub(crate) fn fields<'py>(py: Python<'py>, index: usize, flow: &DatagramFlow) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let [first, second] = &flow.sides;
    let [one, other] = flow.addresses.map(|address| address_text(address, flow.ip_version));
    fields.set_item(intern!(py, "id"), index)?;
    fields.set_item(intern!(py, "addresses"), (one, other))?;
    fields.set_item(intern!(py, "ports"), (flow.ports[0], flow.ports[1]))?;
    fields.set_item(intern!(py, "first_time_ns"), flow.first_time_ns)?;
    fields.set_item(intern!(py, "last_time_ns"), flow.last_time_ns)?;
    fields.set_item(intern!(py, "datagrams"), (first.datagrams, second.datagrams))?;
    fields.set_item(intern!(py, "payload_bytes"), (first.payload_bytes, second.payload_bytes))?;
    Ok(fields)
}

/// The stored datagrams of one side.
pub(crate) fn sample<'py>(py: Python<'py>, side: &DatagramSide) -> Sample<'py> {
    let mut sample: Sample<'py> = Default::default();
    for (kept, bytes) in side.kept() {
        sample.0.push(kept.number);
        sample.1.push(kept.time_ns);
        sample.2.push(kept.payload_length);
        sample.3.push(PyBytes::new(py, bytes));
    }
    sample
}

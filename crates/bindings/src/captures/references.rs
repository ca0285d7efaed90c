//! Round trips besides TCP as arrays.

use numpy::ndarray::Array2;
use numpy::IntoPyArray;
use pepscope_connections::Reference;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::captures::capture::handed_over;

/// One array a field, named as in `pepscope.captures.references`.
pub(crate) fn columns<'py>(py: Python<'py>, rows: &[Reference]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let addresses = |of: fn(&Reference) -> [u8; 16]| {
        Array2::from_shape_fn((rows.len(), 16), |(row, byte)| of(&rows[row])[byte]).into_pyarray(py)
    };
    columns.set_item("host_address", addresses(|row| row.host))?;
    columns.set_item("asking_address", addresses(|row| row.asker))?;
    let integers = |of: fn(&Reference) -> i64| handed_over(py, rows.iter().map(of).collect());
    columns.set_item("host_port", integers(|row| row.host_port.into()))?;
    columns.set_item("kind", handed_over(py, rows.iter().map(|row| row.kind as u8).collect()))?;
    columns.set_item("asked_ns", integers(|row| row.asked_ns))?;
    // From 1, as other numbers of frames are told.
    columns.set_item("asked_frame", integers(|row| (row.asked_frame + 1) as i64))?;
    columns.set_item("answered_frame", integers(|row| (row.answered_frame + 1) as i64))?;
    columns.set_item("round_trip_ns", integers(|row| row.round_trip_ns))?;
    columns.set_item("repeated_ns", integers(|row| row.repeated_ns))?;
    columns.set_item("request_bytes", integers(|row| row.request_bytes.into()))?;
    columns.set_item("answer_bytes", integers(|row| row.answer_bytes.into()))?;
    columns.set_item("is_first", handed_over(py, rows.iter().map(|row| row.is_first).collect()))?;
    Ok(columns)
}

/// Names of the kinds, by their number.
#[pyfunction]
pub(crate) fn reference_kinds() -> Vec<&'static str> {
    pepscope_connections::ReferenceKind::NAMES.to_vec()
}

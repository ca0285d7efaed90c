//! Columns of numbers in few bytes.

use numpy::{PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pepscope_text::packed::{pack_floats, pack_integers, pack_truths, unpack, Numbers};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A column of numbers.
pub(crate) enum NumberColumn<'py> {
    Floats(PyReadonlyArray1<'py, f64>),
    Integers(PyReadonlyArray1<'py, i64>),
    Truths(PyReadonlyArray1<'py, bool>),
}

impl<'py> FromPyObject<'_, 'py> for NumberColumn<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // By the kind of its elements: trying one type after the other makes an error of each that it is not.
        match given.cast::<PyUntypedArray>()?.dtype().kind() {
            b'f' => given.extract().map(Self::Floats),
            b'b' => given.extract().map(Self::Truths),
            _ => given.extract().map(Self::Integers),
        }
    }
}

/// The columns in few bytes.
#[pyfunction]
pub(crate) fn packed_columns<'py>(py: Python<'py>, columns: Vec<NumberColumn<'py>>) -> PyResult<Bound<'py, PyBytes>> {
    let mut packed = Vec::new();
    for column in &columns {
        match column {
            NumberColumn::Floats(values) => pack_floats(&mut packed, values.as_slice()?),
            NumberColumn::Integers(values) => pack_integers(&mut packed, values.as_slice()?),
            NumberColumn::Truths(values) => pack_truths(&mut packed, values.as_slice()?),
        }
    }
    Ok(PyBytes::new(py, &packed))
}

/// The columns as arrays.
#[pyfunction]
pub(crate) fn unpacked_columns<'py>(py: Python<'py>, packed: &[u8]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let columns = unpack(packed).map_err(|_| PyValueError::new_err("the bytes must be those of packed columns"))?;
    let as_array = |column| match column {
        Numbers::Floats(values) => PyArray1::from_vec(py, values).into_any(),
        Numbers::Integers(values) => PyArray1::from_vec(py, values).into_any(),
        Numbers::Truths(values) => PyArray1::from_vec(py, values).into_any(),
    };
    Ok(columns.into_iter().map(as_array).collect())
}

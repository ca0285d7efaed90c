//! Captured payload of streams for Python.

use numpy::{IntoPyArray, PyArray1};
use pepscope_evidence::payload::{agreement, sample};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};

use crate::captures::capture::handed_over;

/// Captured payload of one direction.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct PayloadSample {
    pub(crate) sample: sample::PayloadSample,
    offsets: PyOnceLock<Py<PyAny>>,
    pieces: PyOnceLock<Py<PyTuple>>,
}

impl From<sample::PayloadSample> for PayloadSample {
    fn from(sample: sample::PayloadSample) -> Self {
        Self { sample, offsets: PyOnceLock::new(), pieces: PyOnceLock::new() }
    }
}

#[pymethods]
impl PayloadSample {
    #[new]
    fn new(offsets: Vec<i64>, pieces: Vec<PyBackedBytes>) -> PyResult<Self> {
        if offsets.len() != pieces.len() {
            return Err(PyValueError::new_err("offsets and pieces differ in number"));
        }
        let pieces = offsets.iter().copied().zip(pieces.iter().map(|piece| &piece[..]));
        Ok(pieces.collect::<sample::PayloadSample>().into())
    }

    fn __len__(&self) -> usize {
        self.sample.len()
    }

    fn __repr__(&self) -> String {
        format!("<PayloadSample: {} pieces, {} bytes>", self.sample.len(), self.sample.bytes().len())
    }

    /// Stream offsets of the pieces; made when first asked for.
    #[getter]
    fn offsets(&self, py: Python<'_>) -> Py<PyAny> {
        self.offsets.get_or_init(py, || handed_over(py, self.sample.offsets().to_vec()).unbind()).clone_ref(py)
    }

    /// The pieces; made when first asked for.
    #[getter]
    fn pieces(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let made = self.pieces.get_or_try_init(py, || {
            let pieces: Vec<_> = self.sample.pieces().map(|(_, piece)| PyBytes::new(py, piece)).collect();
            PyTuple::new(py, pieces).map(Bound::unbind)
        })?;
        Ok(made.clone_ref(py))
    }

    /// The longest piece at the stream's first byte.
    #[getter]
    fn opening<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.sample.opening().map(|piece| PyBytes::new(py, piece))
    }

    /// Bytes of all pieces.
    #[getter]
    fn captured_bytes(&self) -> usize {
        self.sample.bytes().len()
    }

    #[getter]
    fn is_one_byte_repeated(&self) -> bool {
        self.sample.is_one_byte_repeated()
    }

    #[getter]
    fn most_distinct_bytes(&self) -> usize {
        self.sample.most_distinct_bytes()
    }
}

/// How many pieces could be compared under `shift`, and how many of them agree.
#[pyfunction]
pub(crate) fn compare_payload(
    py: Python<'_>,
    left: &PayloadSample,
    right: &PayloadSample,
    shift: i64,
    most: usize,
    overlap_bytes: usize,
) -> (usize, usize) {
    let found = py.detach(|| agreement::compare(&left.sample, &right.sample, shift, most, overlap_bytes));
    (found.compared, found.agreed)
}

/// The same with no shift for many streams, as arrays.
#[pyfunction]
pub(crate) fn compare_payloads<'py>(
    py: Python<'py>,
    left: Vec<PyRef<'py, PayloadSample>>,
    right: Vec<PyRef<'py, PayloadSample>>,
    most: usize,
    overlap_bytes: usize,
) -> PyResult<(Int64s<'py>, Int64s<'py>)> {
    if left.len() != right.len() {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    let compare = |(left, right): (&PyRef<'_, PayloadSample>, &PyRef<'_, PayloadSample>)| {
        let found = agreement::compare(&left.sample, &right.sample, 0, most, overlap_bytes);
        (found.compared as i64, found.agreed as i64)
    };
    let (compared, agreed): (Vec<i64>, Vec<i64>) = left.iter().zip(&right).map(compare).unzip();
    Ok((compared.into_pyarray(py), agreed.into_pyarray(py)))
}

type Int64s<'py> = Bound<'py, PyArray1<i64>>;

/// Of which streams both captures hold the same first bytes, or neither holds any.
#[pyfunction]
pub(crate) fn same_openings<'py>(
    py: Python<'py>,
    left: Vec<PyRef<'py, PayloadSample>>,
    right: Vec<PyRef<'py, PayloadSample>>,
) -> Bound<'py, PyArray1<bool>> {
    let same = left.iter().zip(&right).map(|(left, right)| left.sample.opening() == right.sample.opening());
    PyArray1::from_iter(py, same)
}

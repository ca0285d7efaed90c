//! Fingerprints of payload from samples to NumPy columns, and votes from such columns.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pepscope_evidence::payload::fingerprints as crate_fingerprints;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::captures::payload::PayloadSample;

/// Hashes and stream offsets.
type Columns<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>);

type Int64s<'py> = Bound<'py, PyArray1<i64>>;

/// The columns of `detector.streams.payload_fingerprints.Fingerprints`.
#[derive(FromPyObject)]
pub(crate) struct FingerprintArrays<'py> {
    value: PyReadonlyArray1<'py, u64>,
    stream: PyReadonlyArray1<'py, i64>,
    offset: PyReadonlyArray1<'py, i64>,
}

impl FingerprintArrays<'_> {
    fn columns(&self) -> PyResult<crate_fingerprints::Fingerprints<'_>> {
        let (hash, stream, offset) = (self.value.as_slice()?, self.stream.as_slice()?, self.offset.as_slice()?);
        if hash.len() == stream.len() && hash.len() == offset.len() {
            Ok(crate_fingerprints::Fingerprints { hash, stream, offset })
        } else {
            Err(PyValueError::new_err("the columns differ in length"))
        }
    }
}

/// All fingerprints of a stream in the order of its pieces.
#[pyfunction]
pub(crate) fn fingerprints<'py>(py: Python<'py>, sample: &PayloadSample, least_distinct: usize) -> Columns<'py> {
    let found = py.detach(|| crate_fingerprints::fingerprints(&sample.sample, least_distinct));
    handed_over(py, found)
}

/// The fingerprints of a stream with the least hashes.
#[pyfunction]
pub(crate) fn sketch<'py>(py: Python<'py>, sample: &PayloadSample, least_distinct: usize, most: usize) -> Columns<'py> {
    let found = py.detach(|| crate_fingerprints::sketch(&sample.sample, least_distinct, most));
    handed_over(py, found)
}

/// Left and right stream, shift, count and places of fingerprints in common.
#[pyfunction]
pub(crate) fn vote<'py>(
    py: Python<'py>,
    left: FingerprintArrays<'py>,
    right: FingerprintArrays<'py>,
    common_pairs: usize,
    spread_bytes: i64,
) -> PyResult<[Int64s<'py>; 5]> {
    let (left, right) = (left.columns()?, right.columns()?);
    let votes = py.detach(|| crate_fingerprints::vote(left, right, common_pairs, spread_bytes));
    Ok([votes.left, votes.right, votes.shift, votes.count, votes.places].map(|column| column.into_pyarray(py)))
}

/// Right offset less left offset by which most fingerprints of two streams agree.
#[pyfunction]
pub(crate) fn voted_shifts(
    py: Python<'_>,
    left: &PayloadSample,
    right: &PayloadSample,
    least_distinct: usize,
    most_fingerprints: usize,
    common_pairs: usize,
    most: usize,
) -> Vec<i64> {
    py.detach(|| {
        let [one, two] =
            [left, right].map(|sample| crate_fingerprints::sketch(&sample.sample, least_distinct, most_fingerprints));
        crate_fingerprints::voted_shifts(&one, &two, common_pairs, most)
    })
}

fn handed_over(py: Python<'_>, found: Vec<(u64, i64)>) -> Columns<'_> {
    let (hashes, offsets): (Vec<u64>, Vec<i64>) = found.into_iter().unzip();
    (hashes.into_pyarray(py), offsets.into_pyarray(py))
}

//! Agreement of header fields from NumPy columns to counts.

use numpy::PyReadonlyArray1;
use pepscope_evidence::agreement::{self, Agreement, DataComparison};
use pepscope_evidence::segments::Segments;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The columns of `detector.methods.identity.segments.Segments`.
#[derive(FromPyObject)]
pub(crate) struct SegmentArrays<'py> {
    start: PyReadonlyArray1<'py, i64>,
    length: PyReadonlyArray1<'py, i64>,
    acknowledgement: PyReadonlyArray1<'py, i64>,
    window: PyReadonlyArray1<'py, i64>,
    push: PyReadonlyArray1<'py, bool>,
    first_copy: PyReadonlyArray1<'py, bool>,
    has_timestamps: PyReadonlyArray1<'py, bool>,
    stamps_captured: PyReadonlyArray1<'py, bool>,
    tsval: PyReadonlyArray1<'py, i64>,
    tsecr: PyReadonlyArray1<'py, i64>,
    ip_id: PyReadonlyArray1<'py, i64>,
    ttl: PyReadonlyArray1<'py, i64>,
}

impl SegmentArrays<'_> {
    fn columns(&self) -> PyResult<Segments<'_>> {
        let columns = Segments {
            start: self.start.as_slice()?,
            length: self.length.as_slice()?,
            acknowledgement: self.acknowledgement.as_slice()?,
            window: self.window.as_slice()?,
            push: self.push.as_slice()?,
            first_copy: self.first_copy.as_slice()?,
            has_timestamps: self.has_timestamps.as_slice()?,
            stamps_captured: self.stamps_captured.as_slice()?,
            tsval: self.tsval.as_slice()?,
            tsecr: self.tsecr.as_slice()?,
            ip_id: self.ip_id.as_slice()?,
            ttl: self.ttl.as_slice()?,
        };
        if columns.is_even() {
            Ok(columns)
        } else {
            Err(PyValueError::new_err("the columns differ in length"))
        }
    }
}

macro_rules! counts {
    ($($name:ident: $kind:ty),* $(,)?) => {
        /// Counts over one class of segments, as the crate gives them.
        #[pyclass(module = "pepscope._core", frozen, get_all)]
        pub(crate) struct FieldCounts {
            $($name: $kind),*
        }

        impl From<Agreement> for FieldCounts {
            fn from(found: Agreement) -> Self {
                Self { $($name: found.$name),* }
            }
        }
    };
}

counts! {
    arrived: usize,
    partners: usize,
    tsval_shift: i64,
    tsecr_shift: i64,
    stamped: usize,
    stamps_equal: usize,
    stamps_distinct: usize,
    stamps_known: usize,
    stamps_on_one_side: usize,
    ip_ids_vary: bool,
    whole: usize,
    ip_ids_equal: usize,
    window_scale_shift: i64,
    windows_equal: usize,
    windows_narrowed: usize,
    windows_shrink: usize,
    windows_distinct: usize,
    hops: i64,
    push_clear: usize,
    push_equal: usize,
    push_set: usize,
    carried: usize,
    carried_elsewhere: usize,
    boundaries_equal: usize,
    longest: i64,
}

/// Data that arrived, in parts of its rows, held against all that was emitted.
#[pyfunction]
pub(crate) fn count_data_agreement(
    py: Python<'_>,
    emitted: SegmentArrays<'_>,
    arrived: SegmentArrays<'_>,
    parts: Vec<(usize, usize)>,
    copies: usize,
    majority: f64,
) -> PyResult<Vec<FieldCounts>> {
    let (emitted, arrived) = (emitted.columns()?, arrived.columns()?);
    if parts.iter().any(|&(begin, end)| begin > end || end > arrived.len()) {
        return Err(PyValueError::new_err("a part lies beyond the rows"));
    }
    Ok(py.detach(|| {
        let data = DataComparison::new(emitted, arrived, copies);
        parts.iter().map(|&(begin, end)| data.compare(begin..end, majority).into()).collect()
    }))
}

/// Pure acknowledgements that arrived, held against those that were emitted.
#[pyfunction]
pub(crate) fn count_acknowledgement_agreement(
    py: Python<'_>,
    emitted: SegmentArrays<'_>,
    arrived: SegmentArrays<'_>,
    majority: f64,
) -> PyResult<FieldCounts> {
    let (emitted, arrived) = (emitted.columns()?, arrived.columns()?);
    Ok(py.detach(|| agreement::compare_acknowledgements(emitted, arrived, majority).into()))
}

//! Agreement of header fields as arrays of counts.

use numpy::{PyArray1, PyArrayMethods};
use pepscope_evidence::segments::agreement::Agreement;
use pyo3::prelude::*;
use pyo3::types::PyDict;

macro_rules! counts {
    ($($name:ident),* $(,)?) => {
        /// Counts of many comparisons by name, an array with two rows for each; zeros where there was none.
        pub(crate) fn field_columns<'py>(
            py: Python<'py>,
            found: &[Vec<Option<&Agreement>>; 2],
        ) -> PyResult<Bound<'py, PyDict>> {
            let columns = PyDict::new(py);
            let count = found[0].len();
            $(
                let mut numbers = Vec::with_capacity(2 * count);
                for way in found {
                    numbers.extend(way.iter().map(|one| one.map_or(0, |one| one.$name as i64)));
                }
                columns.set_item(stringify!($name), PyArray1::from_vec(py, numbers).reshape([2, count])?)?;
            )*
            Ok(columns)
        }
    };
}

counts! {
    arrived,
    partners,
    tsval_shift,
    tsecr_shift,
    stamped,
    stamps_equal,
    stamps_distinct,
    stamps_known,
    stamps_on_one_side,
    stamps_added,
    ip_ids_vary,
    whole,
    ip_ids_equal,
    window_scale_shift,
    windows_equal,
    windows_narrowed,
    windows_shrink,
    windows_distinct,
    hops,
    push_clear,
    push_equal,
    push_set,
    carried,
    carried_elsewhere,
    boundaries_equal,
    held_whole,
    longest,
}

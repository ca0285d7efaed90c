//! Agreement of header fields as counts.

use pepscope_evidence::segments::agreement::Agreement;
use pyo3::prelude::*;

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

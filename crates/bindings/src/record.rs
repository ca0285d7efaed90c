//! Records of numbers from the crates as frozen Python objects, and columns of numbers that Python gives.

use std::borrow::Cow;

use numpy::{Element, PyReadonlyArray1};
use pyo3::prelude::*;

/// A frozen class with the fields of a crate's record, read one by one.
macro_rules! record {
    ($(#[$attribute:meta])* $name:ident of $source:ty { $($field:ident: $kind:ty),* $(,)? }) => {
        $(#[$attribute])*
        #[pyclass(module = "pepscope._core", frozen, get_all)]
        pub(crate) struct $name {
            $($field: $kind),*
        }

        impl From<$source> for $name {
            fn from(found: $source) -> Self {
                Self { $($field: found.$field),* }
            }
        }
    };
}

pub(crate) use record;

/// Stands in a column of whole numbers for one that is not known.
const UNKNOWN: i64 = i64::MIN;

/// A number for a column.
pub(crate) fn number_or_unknown(number: Option<impl Into<i64>>) -> i64 {
    number.map_or(UNKNOWN, Into::into)
}

/// A column that is an array, which is not copied if it is of one piece, or a list.
#[derive(FromPyObject)]
pub(crate) enum Given<'py, T: Element + Clone + FromPyObjectOwned<'py>> {
    Array(PyReadonlyArray1<'py, T>),
    List(Vec<T>),
}

impl<'py, T: Element + Clone + FromPyObjectOwned<'py>> Given<'py, T> {
    pub(crate) fn values(&self) -> Cow<'_, [T]> {
        match self {
            Given::Array(values) => match values.as_slice() {
                Ok(values) => Cow::Borrowed(values),
                Err(_) => Cow::Owned(values.as_array().to_vec()),
            },
            Given::List(values) => Cow::Borrowed(values),
        }
    }
}

//! Records of numbers from the crates as frozen Python objects.

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

//! Packets of a connection for Python and from Python.

use std::ops::Range;
use std::sync::Arc;

use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pepscope_connections::Columns;
use pepscope_evidence::clocks::timestamps;
use pepscope_evidence::flows::staircases::Staircases;
use pepscope_evidence::packets::Packets;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// Of up to so many packets an array is a copy, which then takes no longer than what else making an array takes. The
/// columns of more are NumPy's from the beginning, so that nothing large is in memory twice.
const MOST_COPIED: usize = 4096;

/// Connections of up to so many packets may share columns: those that stay while others are let go of are small.
pub(crate) const MOST_SHARED: u64 = 512;

fn uneven() -> PyErr {
    PyValueError::new_err("the columns differ in length")
}

/// All who ask for a connection share its arrays, so they are read-only.
fn read_only<T: Element>(array: &Bound<'_, PyArray1<T>>) -> Py<PyArray1<T>> {
    let array: &Bound<'_, PyArray1<T>> = &array.readwrite().make_nonwriteable();
    array.clone().unbind()
}

/// The array of a column of few packets.
fn copied<T: Element>(py: Python<'_>, made: &PyOnceLock<Py<PyArray1<T>>>, column: &[T]) -> Py<PyArray1<T>> {
    made.get_or_init(py, || read_only(&PyArray1::from_slice(py, column))).clone_ref(py)
}

/// Where arrays are kept: of few connections any is asked for.
fn copies<'a>(py: Python<'_>, made: &'a PyOnceLock<Box<Copies>>) -> &'a Copies {
    made.get_or_init(py, || Box::new(Copies::none()))
}

/// A column of `length` packets that Python gave; `None` where it gave none of this name.
fn given<T: Element + Clone>(columns: &Bound<'_, PyDict>, name: &str, length: usize) -> PyResult<Option<Vec<T>>> {
    let Some(array) = columns.get_item(name)? else { return Ok(None) };
    let array: PyReadonlyArray1<'_, T> = array.extract()?;
    if array.len() == length {
        Ok(Some(array.as_array().to_vec()))
    } else {
        Err(uneven())
    }
}

macro_rules! packet_columns {
    ($($name:ident: $element:ty,)*) => {
        const NAMES: &[&str] = &[$(stringify!($name),)*];

        /// Arrays of few packets, each from when it was first asked for.
        struct Copies {
            $($name: PyOnceLock<Py<PyArray1<$element>>>,)*
        }

        impl Copies {
            const fn none() -> Self {
                Self { $($name: PyOnceLock::new(),)* }
            }
        }

        /// Arrays of many packets.
        struct Arrays {
            $($name: Py<PyArray1<$element>>,)*
        }

        impl Arrays {
            fn new(py: Python<'_>, columns: Columns) -> Self {
                Self { $($name: read_only(&PyArray1::from_vec(py, columns.$name)),)* }
            }

            fn borrowed<'py>(&self, py: Python<'py>) -> PyResult<BorrowedArrays<'py>> {
                Ok(BorrowedArrays { $($name: self.$name.bind(py).try_readonly()?,)* })
            }

            fn replaced(&self, py: Python<'_>, columns: &Bound<'_, PyDict>) -> PyResult<Self> {
                let length = self.time_ns.bind(py).len();
                Ok(Self {
                    $($name: match given(columns, stringify!($name), length)? {
                        Some(column) => read_only(&PyArray1::from_vec(py, column)),
                        None => self.$name.clone_ref(py),
                    },)*
                })
            }
        }

        /// One packet; members are named as the columns.
        #[pyclass(frozen, get_all, module = "pepscope._core")]
        pub(crate) struct Packet {
            $($name: $element,)*
        }

        pub(crate) fn packet(columns: Packets<'_>, row: usize) -> Option<Packet> {
            Some(Packet { $($name: *columns.$name.get(row)?,)* })
        }

        pub(crate) struct BorrowedArrays<'py> {
            $($name: PyReadonlyArray1<'py, $element>,)*
        }

        impl BorrowedArrays<'_> {
            fn columns(&self) -> PyResult<Packets<'_>> {
                Ok(Packets { $($name: self.$name.as_slice()?,)* staircases: None })
            }
        }

        fn slices(columns: &Columns) -> Packets<'_> {
            Packets { $($name: &columns.$name,)* staircases: None }
        }

        fn owned(packets: Packets<'_>) -> Columns {
            Columns { $($name: packets.$name.to_vec(),)* ..Columns::default() }
        }

        /// Some rows of the columns of several connections.
        pub(crate) fn rows(columns: &Columns, range: Range<usize>) -> Packets<'_> {
            Packets { $($name: &columns.$name[range.clone()],)* staircases: None }
        }

        fn with_replaced(mut replaced: Columns, columns: &Bound<'_, PyDict>) -> PyResult<Columns> {
            let length = replaced.time_ns.len();
            $(if let Some(column) = given(columns, stringify!($name), length)? {
                replaced.$name = column;
            })*
            Ok(replaced)
        }

        #[pymethods]
        impl PacketColumns {
            /// Names of the columns in their order.
            #[classattr]
            #[pyo3(name = "COLUMNS")]
            fn names(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
                PyTuple::new(py, NAMES)
            }

            #[new]
            #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
            fn from_arrays(py: Python<'_>, $($name: PyReadonlyArray1<'_, $element>,)*) -> PyResult<Self> {
                let columns = Columns { $($name: $name.as_array().to_vec(),)* ..Columns::default() };
                if slices(&columns).is_even() {
                    Ok(Self::new(py, columns))
                } else {
                    Err(uneven())
                }
            }

            $(#[getter]
            fn $name(&self, py: Python<'_>) -> Py<PyArray1<$element>> {
                match &self.kept {
                    Kept::Few(columns, range, arrays) => copied(py, &copies(py, arrays).$name, &columns.$name[range.clone()]),
                    Kept::Many(arrays) => arrays.$name.clone_ref(py),
                }
            })*

            fn __len__(&self, py: Python<'_>) -> usize {
                match &self.kept {
                    Kept::Few(_, range, _) => range.len(),
                    Kept::Many(arrays) => arrays.time_ns.bind(py).len(),
                }
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                format!("<PacketColumns: {} packets>", self.__len__(py))
            }

            /// One of the packets.
            fn packet(&self, py: Python<'_>, row: usize) -> PyResult<Packet> {
                let arrays = self.arrays(py)?;
                let found = packet(self.packets(arrays.as_deref())?, row);
                found.ok_or_else(|| PyIndexError::new_err("there is no such packet"))
            }

            /// Which packets are of this flow.
            fn going<'py>(&self, py: Python<'py>, direction: u8) -> PyResult<Bound<'py, PyArray1<bool>>> {
                let arrays = self.arrays(py)?;
                let found = self.packets(arrays.as_deref())?.direction.iter().map(|&of| of == direction);
                Ok(PyArray1::from_iter(py, found))
            }

            /// Which packets bear any of these flags.
            fn flagged<'py>(&self, py: Python<'py>, flags: u16) -> PyResult<Bound<'py, PyArray1<bool>>> {
                let arrays = self.arrays(py)?;
                let found = self.packets(arrays.as_deref())?.flags.iter().map(|&own| own & flags != 0);
                Ok(PyArray1::from_iter(py, found))
            }

            /// Which packets have any of these marks.
            fn marked<'py>(&self, py: Python<'py>, marks: u16) -> PyResult<Bound<'py, PyArray1<bool>>> {
                let arrays = self.arrays(py)?;
                let found = self.packets(arrays.as_deref())?.marks.iter().map(|&own| own & marks != 0);
                Ok(PyArray1::from_iter(py, found))
            }

            /// The same packets with these columns instead of their own.
            #[pyo3(signature = (**columns))]
            fn replaced(&self, py: Python<'_>, columns: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                let none = PyDict::new(py);
                let columns = columns.unwrap_or(&none);
                for name in columns.keys() {
                    let name: String = name.extract()?;
                    if !NAMES.contains(&name.as_str()) {
                        return Err(PyTypeError::new_err(format!("packets have no column {name:?}")));
                    }
                }
                Ok(match &self.kept {
                    Kept::Few(own, range, _) => Self::new(py, with_replaced(owned(rows(own, range.clone())), columns)?),
                    Kept::Many(own) => Self::keeping(Kept::Many(own.replaced(py, columns)?)),
                })
            }

            /// The columns as a pandas frame.
            fn to_frame<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let columns = PyDict::new(py);
                $(columns.set_item(stringify!($name), self.$name(py))?;)*
                let not_copied = PyDict::new(py);
                not_copied.set_item("copy", false)?;
                py.import("pandas")?.call_method("DataFrame", (columns,), Some(&not_copied))
            }
        }
    };
}

packet_columns! {
    time_ns: i64,
    direction: u8,
    sequence_offset: i64,
    acknowledgement_offset: i64,
    payload_bytes: u32,
    window_bytes: u32,
    flags: u16,
    tsval: u32,
    tsecr: u32,
    ip_id: u16,
    ttl: u8,
    payload_hash: u32,
    marks: u16,
    round_trip_time_ns: i64,
}

/// Packets of one connection in capture order.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct PacketColumns {
    kept: Kept,
    /// What methods made of these packets.
    staircases: Staircases,
}

enum Kept {
    /// Rows of columns that several connections may share.
    Few(Arc<Columns>, Range<usize>, PyOnceLock<Box<Copies>>),
    Many(Arrays),
}

impl PacketColumns {
    pub(crate) fn new(py: Python<'_>, columns: Columns) -> Self {
        if columns.time_ns.len() > MOST_COPIED {
            Self::keeping(Kept::Many(Arrays::new(py, columns)))
        } else {
            let all = 0..columns.time_ns.len();
            Self::keeping(Kept::Few(Arc::new(columns), all, PyOnceLock::new()))
        }
    }

    /// The packets of a connection in some rows, at most `MOST_SHARED`, of columns that it shares with others.
    pub(crate) fn shared(columns: &Arc<Columns>, range: Range<usize>) -> Self {
        Self::keeping(Kept::Few(columns.clone(), range, PyOnceLock::new()))
    }

    /// Whether times fall by more than this from one packet to the next.
    pub(crate) fn clock_falls(&self, py: Python<'_>, least_fall_ns: i64) -> PyResult<bool> {
        let arrays = self.arrays(py)?;
        Ok(!timestamps::falls(self.packets(arrays.as_deref())?.time_ns, least_fall_ns).is_empty())
    }

    fn keeping(kept: Kept) -> Self {
        Self { kept, staircases: Staircases::default() }
    }

    /// The arrays of many packets, lent by NumPy; None of few.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Option<Box<BorrowedArrays<'py>>>> {
        match &self.kept {
            Kept::Few(..) => Ok(None),
            Kept::Many(arrays) => Ok(Some(Box::new(arrays.borrowed(py)?))),
        }
    }

    /// The packets; `arrays` are their own.
    fn packets<'a>(&'a self, arrays: Option<&'a BorrowedArrays<'_>>) -> PyResult<Packets<'a>> {
        let packets = match &self.kept {
            Kept::Few(columns, range, _) => rows(columns, range.clone()),
            Kept::Many(_) => arrays.map(BorrowedArrays::columns).transpose()?.unwrap_or_default(),
        };
        Ok(Packets { staircases: Some(&self.staircases), ..packets })
    }
}

/// A `PacketColumns` that Python gave, and its arrays where it holds many packets.
pub(crate) struct PacketArrays<'py> {
    given: Bound<'py, PacketColumns>,
    arrays: Option<Box<BorrowedArrays<'py>>>,
}

impl<'py> FromPyObject<'_, 'py> for PacketArrays<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given = given.cast::<PacketColumns>()?.to_owned();
        let arrays = given.get().arrays(given.py())?;
        Ok(Self { given, arrays })
    }
}

impl PacketArrays<'_> {
    pub(crate) fn columns(&self) -> PyResult<Packets<'_>> {
        self.given.get().packets(self.arrays.as_deref())
    }
}

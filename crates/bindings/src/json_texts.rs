//! JSON text of many documents: values in, runs of bytes out.

use numpy::PyReadonlyArray1;
use pepscope_json::filters::write_connection_filter;
use pepscope_json::listed::{Around, Pieces};
use pepscope_json::template::{filled, Filling};
use pepscope_json::texts::Texts;
use pepscope_json::times::write_time;
use pepscope_json::values::{write_float, write_integer, write_text};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

/// JSON texts one behind the other.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct JsonTexts {
    texts: Texts,
}

#[pymethods]
impl JsonTexts {
    /// The JSON text of each value. `encode` gives that of what is neither None nor a number or a text.
    #[new]
    fn new(values: &Bound<'_, PyAny>, encode: &Bound<'_, PyAny>) -> PyResult<Self> {
        let count = values.len()?;
        let mut texts = Texts::with_capacity(count, 8 * count);
        for value in values.try_iter()? {
            let value = value?;
            let mut written = Ok(());
            texts.push_with(|bytes| written = write_value(bytes, &value, encode));
            written?;
        }
        Ok(Self { texts })
    }

    /// Unix times (ns) as texts; null for None.
    #[staticmethod]
    fn times(times_ns: Vec<Option<i64>>) -> Self {
        let mut texts = Texts::with_capacity(times_ns.len(), 32 * times_ns.len());
        for time_ns in times_ns {
            texts.push_with(|bytes| match time_ns {
                Some(time_ns) => write_time(bytes, time_ns),
                None => bytes.extend_from_slice(b"null"),
            });
        }
        Self { texts }
    }

    /// Texts that are JSON already.
    #[staticmethod]
    fn of(made: Vec<Bound<'_, PyBytes>>) -> Self {
        let mut texts = Texts::with_capacity(made.len(), 0);
        made.iter().for_each(|text| texts.push(text.as_bytes()));
        Self { texts }
    }

    /// Documents with values in the gaps between `parts`; a column may be one text for all of them.
    #[staticmethod]
    fn filled(parts: Vec<Bound<'_, PyBytes>>, columns: Vec<Column<'_>>, count: usize) -> PyResult<Self> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        let columns: Vec<Filling<'_>> = columns.iter().map(Column::filling).collect();
        let texts = filled(&parts, &columns, count);
        Ok(Self { texts: texts.ok_or_else(|| PyValueError::new_err("columns do not fit the gaps of the template"))? })
    }

    /// The display filters of connections as texts; of each its first and last frame, or None.
    #[staticmethod]
    fn connection_filters(connections: Vec<FilteredConnection>) -> Self {
        let mut texts = Texts::with_capacity(connections.len(), 128 * connections.len());
        let mut filter = Vec::new();
        for (client, server, transport, frames) in connections {
            filter.clear();
            write_connection_filter(&mut filter, &client, &server, &transport, frames);
            texts.push_with(|bytes| write_text(bytes, &filter));
        }
        Self { texts }
    }

    fn __len__(&self) -> usize {
        self.texts.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyBytes>> {
        let text = self.texts.get(place).ok_or_else(|| PyIndexError::new_err("there is no such text"))?;
        Ok(PyBytes::new(py, text))
    }
}

/// Client, server, transport, first and last frame.
type FilteredConnection = (String, String, String, Option<(i64, i64)>);

/// A text of its own for each document, or one for all.
#[derive(FromPyObject)]
pub(crate) enum Column<'py> {
    Each(PyRef<'py, JsonTexts>),
    All(Bound<'py, PyBytes>),
}

impl Column<'_> {
    fn filling(&self) -> Filling<'_> {
        match self {
            Self::Each(texts) => Filling::Each(&texts.texts),
            Self::All(text) => Filling::All(text.as_bytes()),
        }
    }
}

fn write_value(bytes: &mut Vec<u8>, value: &Bound<'_, PyAny>, encode: &Bound<'_, PyAny>) -> PyResult<()> {
    // Most values are of these types themselves, which is told by one comparison.
    if value.is_exact_instance_of::<PyFloat>() {
        write_float(bytes, value.extract()?);
    } else if value.is_exact_instance_of::<PyInt>() {
        match value.extract::<i64>() {
            Ok(number) => write_integer(bytes, number),
            Err(_) => write_encoded(bytes, value, encode)?,
        }
    } else if value.is_none() {
        bytes.extend_from_slice(b"null");
    } else if let Ok(text) = value.cast::<PyString>() {
        match text.to_str() {
            Ok(text) => write_text(bytes, text.as_bytes()),
            // A path that is no Unicode keeps its surrogates.
            Err(_) => {
                let octets = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
                write_text(bytes, octets.cast::<PyBytes>()?.as_bytes());
            }
        }
    } else if let Ok(is_true) = value.cast::<PyBool>() {
        bytes.extend_from_slice(if is_true.is_true() { b"true" } else { b"false" });
    } else {
        write_encoded(bytes, value, encode)?;
    }
    Ok(())
}

fn write_encoded(bytes: &mut Vec<u8>, value: &Bound<'_, PyAny>, encode: &Bound<'_, PyAny>) -> PyResult<()> {
    bytes.extend_from_slice(encode.call1((value,))?.cast::<PyBytes>()?.as_bytes());
    Ok(())
}

/// Pieces of many documents, made form by form: where those of each document begin and the last ones end, and of each
/// its form and its place among the texts of that form.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct ListedTexts {
    pieces: Pieces,
    forms: Vec<Py<JsonTexts>>,
}

#[pymethods]
impl ListedTexts {
    #[new]
    fn new(
        ends: PyReadonlyArray1<'_, i64>,
        form: PyReadonlyArray1<'_, u32>,
        place: PyReadonlyArray1<'_, u32>,
        forms: Vec<Py<JsonTexts>>,
    ) -> PyResult<Self> {
        let ends = ends.as_slice()?.iter().map(|&end| usize::try_from(end)).collect::<Result<_, _>>()?;
        let pieces = Pieces { ends, form: form.as_slice()?.to_vec(), place: place.as_slice()?.to_vec() };
        Ok(Self { pieces, forms })
    }

    /// Some documents, each its `heads`, then its pieces within `around` (before, between and behind them, or in their
    /// place), one behind the other with `separator` between them. `endings` has what stands behind each piece: of a
    /// document a list, or None where it is `usual`.
    #[expect(clippy::too_many_arguments, reason = "documents, and what stands around their parts")]
    fn joined<'py>(
        &self,
        py: Python<'py>,
        documents: Vec<usize>,
        heads: Vec<Bound<'py, PyBytes>>,
        endings: Vec<Option<Vec<Bound<'py, PyBytes>>>>,
        usual: &[u8],
        around: (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>),
        separator: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        if heads.len() != documents.len() || endings.len() != documents.len() {
            return Err(PyValueError::new_err("documents, heads and endings differ in number"));
        }
        let around = Around {
            before: around.0.as_bytes(),
            between: around.1.as_bytes(),
            behind: around.2.as_bytes(),
            without: around.3.as_bytes(),
        };
        let forms: Vec<&Texts> = self.forms.iter().map(|form| &form.get().texts).collect();
        let mut bytes = Vec::new();
        for (number, ((document, head), ending)) in documents.into_iter().zip(&heads).zip(&endings).enumerate() {
            if number > 0 {
                bytes.extend_from_slice(separator);
            }
            bytes.extend_from_slice(head.as_bytes());
            let wrong = || PyIndexError::new_err("there is no such document, or not so many pieces");
            let own: Option<Vec<&[u8]>> = ending.as_ref().map(|each| each.iter().map(|text| text.as_bytes()).collect());
            if own.as_ref().is_some_and(|own| Some(own.len()) != self.pieces.count(document)) {
                return Err(wrong());
            }
            let ending = |place: usize| own.as_ref().map_or(usual, |own| own[place]);
            self.pieces.write(&mut bytes, document, &forms, around, ending).ok_or_else(wrong)?;
        }
        Ok(PyBytes::new(py, &bytes))
    }
}

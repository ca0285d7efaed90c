//! Columns of texts as one run of UTF-8 with the ends of each, instead of as strings.

use std::collections::HashMap;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pepscope_text::comma_separated::{self, Column};
use pepscope_text::display_filter;
use pepscope_text::sentence;
use pepscope_text::texts::{self, TextColumn, Texts};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

/// A run of text, and where each text begins and ends in it.
pub(crate) type Slices<'py> = (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>);

/// What texts are joined from.
#[derive(FromPyObject)]
pub(crate) enum GivenTexts<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    Sliced(Slices<'py>),
    /// Places in a list.
    Coded(PyReadonlyArray1<'py, u32>, Bound<'py, PyList>),
    Each(Bound<'py, PyList>),
}

impl GivenTexts<'_> {
    fn column(&self) -> PyResult<TextColumn<'_>> {
        Ok(match self {
            GivenTexts::Integers(values) => TextColumn::Integers(values.as_slice()?),
            GivenTexts::Sliced((content, begins, ends)) => {
                TextColumn::Sliced { content: content.as_slice()?, begins: begins.as_slice()?, ends: ends.as_slice()? }
            }
            GivenTexts::Coded(codes, values) => {
                TextColumn::Coded { codes: codes.as_slice()?, values: all_bytes(values)? }
            }
            GivenTexts::Each(values) => TextColumn::Each(all_bytes(values)?),
        })
    }
}

fn all_bytes(values: &Bound<'_, PyList>) -> PyResult<Vec<Vec<u8>>> {
    values.iter().map(|value| utf8_of(&value)).collect()
}

/// A text as UTF-8; what is no Unicode (a path's surrogates) stays as it is.
fn utf8_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let text = value.cast::<PyString>()?;
    match text.to_cow() {
        Ok(unicode) => Ok(unicode.as_bytes().to_vec()),
        Err(_) => {
            let octets = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
            Ok(octets.cast::<PyBytes>()?.as_bytes().to_vec())
        }
    }
}

/// A run of text, and the ends of texts in it, the first of which begins at the first of these.
pub(crate) type Joined<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);

fn no_such_row() -> PyErr {
    PyIndexError::new_err("a column has too few rows, or texts outside its run")
}

fn given(py: Python<'_>, found: Option<Texts>) -> PyResult<Joined<'_>> {
    let found = found.ok_or_else(no_such_row)?;
    Ok((found.content.into_pyarray(py), found.ends.into_pyarray(py)))
}

/// Of so many rows the pieces with the texts of the columns between them.
#[pyfunction]
pub(crate) fn joined_texts<'py>(
    py: Python<'py>,
    rows: usize,
    pieces: Vec<Bound<'py, PyString>>,
    columns: Vec<GivenTexts<'py>>,
) -> PyResult<Joined<'py>> {
    let pieces = pieces.iter().map(|piece| utf8_of(piece)).collect::<PyResult<Vec<_>>>()?;
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    let columns = columns.iter().map(GivenTexts::column).collect::<PyResult<Vec<_>>>()?;
    given(py, texts::joined(rows, &pieces, &columns))
}

/// What fields are made of.
#[derive(FromPyObject)]
pub(crate) enum GivenFields<'py> {
    Floats(PyReadonlyArray1<'py, f64>),
    Texts(GivenTexts<'py>),
}

/// So many rows of comma-separated values.
#[pyfunction]
pub(crate) fn comma_separated_rows<'py>(
    py: Python<'py>,
    rows: usize,
    columns: Vec<GivenFields<'py>>,
    line_end: &str,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let columns = columns.iter().map(|column| match column {
        GivenFields::Floats(values) => Ok(Column::Floats(values.as_slice()?)),
        GivenFields::Texts(texts) => texts.column().map(Column::from),
    });
    let columns = columns.collect::<PyResult<Vec<_>>>()?;
    let written = comma_separated::rows(rows, &columns, line_end.as_bytes());
    Ok(written.ok_or_else(no_such_row)?.into_pyarray(py))
}

/// Display filters of connections, whose frames are rows of two.
#[pyfunction]
pub(crate) fn filter_texts<'py>(
    py: Python<'py>,
    rows: usize,
    clients: GivenTexts<'py>,
    servers: GivenTexts<'py>,
    transports: GivenTexts<'py>,
    frames: Option<PyReadonlyArray2<'py, i64>>,
) -> PyResult<Joined<'py>> {
    let frames = frames.as_ref().map(|frames| frames.as_slice()).transpose()?;
    let (clients, servers, transports) = (clients.column()?, servers.column()?, transports.column()?);
    given(py, display_filter::connection_filters(rows, &clients, &servers, &transports, frames))
}

/// The addresses of end points (`ip:port`, IPv6 in brackets), as places in the list of those that differ.
#[pyfunction]
pub(crate) fn coded_addresses<'py>(
    py: Python<'py>,
    rows: usize,
    end_points: GivenTexts<'py>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Vec<String>)> {
    let column = end_points.column()?;
    let mut code_of = HashMap::new();
    let (mut codes, mut distinct) = (Vec::with_capacity(rows), Vec::new());
    for row in 0..rows {
        let text = column.of(row).ok_or_else(no_such_row)?;
        let colon = text.iter().rposition(|&octet| octet == b':');
        let address = &text[..colon.ok_or_else(|| PyValueError::new_err("an end point is `ip:port`"))?];
        if let Some(&code) = code_of.get(address) {
            codes.push(code);
            continue;
        }
        let code = distinct.len() as i64;
        distinct.push(String::from_utf8_lossy(address).trim_matches(['[', ']']).to_owned());
        code_of.insert(address.to_vec(), code);
        codes.push(code);
    }
    Ok((codes.into_pyarray(py), distinct))
}

/// Times in seconds as sentences state them.
#[pyfunction]
pub(crate) fn duration_texts<'py>(py: Python<'py>, seconds: PyReadonlyArray1<'py, f64>) -> PyResult<Joined<'py>> {
    let seconds = seconds.as_slice()?;
    given(
        py,
        Texts::of(seconds.len(), |out, row| {
            sentence::duration(out, *seconds.get(row)?);
            Some(())
        }),
    )
}

/// Unix times (ns) as RFC 3339 has them.
#[pyfunction]
pub(crate) fn time_texts<'py>(py: Python<'py>, times_ns: PyReadonlyArray1<'py, i64>) -> PyResult<Joined<'py>> {
    let times_ns = times_ns.as_slice()?;
    given(
        py,
        Texts::of(times_ns.len(), |out, row| {
            sentence::time(out, *times_ns.get(row)?);
            Some(())
        }),
    )
}

//! JSON documents that are filled in from columns.

use std::ops::Range;

use numpy::{IntoPyArray, PyReadonlyArray1};
use pepscope_text::json;
use pepscope_text::template::{Columns, Shape};
use pepscope_text::texts::TextColumn;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::packed_columns::NumberColumn;

use crate::texts::{Joined, Slices};

/// What fills a gap, a value a row.
enum Column<'py> {
    Numbers(NumberColumn<'py>),
    /// Places in a list.
    Coded(PyReadonlyArray1<'py, u32>, Bound<'py, PyList>),
    /// Places among texts that are JSON already.
    CodedJson(PyReadonlyArray1<'py, u32>, Slices<'py>),
    Values(Bound<'py, PyList>),
    Texts(Slices<'py>),
}

impl<'py> FromPyObject<'_, 'py> for Column<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(values) = given.cast::<PyList>() {
            return Ok(Self::Values(values.to_owned()));
        }
        if let Ok(parts) = given.cast::<PyTuple>() {
            if parts.len() == 3 {
                return given.extract().map(Self::Texts);
            }
            let (codes, values): (_, Bound<'py, PyAny>) = given.extract()?;
            return Ok(match values.cast_into::<PyList>() {
                Ok(values) => Self::Coded(codes, values),
                Err(other) => Self::CodedJson(codes, other.into_inner().extract()?),
            });
        }
        given.extract().map(Self::Numbers)
    }
}

/// A column as its values lie in memory.
enum Values<'a, 'py> {
    Floats(&'a [f64], LastFloat),
    Integers(&'a [i64]),
    Truths(&'a [bool]),
    Coded(&'a [u32], &'a Bound<'py, PyList>),
    CodedJson(&'a [u32], TextColumn<'a>),
    /// Places among values that are JSON already.
    Written(&'a [u32], Vec<Vec<u8>>),
    Others(&'a Bound<'py, PyList>),
    Texts(TextColumn<'a>),
}

impl<'py> Column<'py> {
    fn values(&self, encode: &Bound<'py, PyAny>) -> PyResult<Values<'_, 'py>> {
        Ok(match self {
            Column::Numbers(NumberColumn::Floats(values)) => Values::Floats(values.as_slice()?, LastFloat::default()),
            Column::Numbers(NumberColumn::Integers(values)) => Values::Integers(values.as_slice()?),
            Column::Numbers(NumberColumn::Truths(values)) => Values::Truths(values.as_slice()?),
            Column::Coded(codes, values) => {
                let codes = codes.as_slice()?;
                if values.len() > codes.len() {
                    return Ok(Values::Coded(codes, values));
                }
                let written = values.iter().map(|value| {
                    let mut text = Vec::new();
                    write_value(&mut text, &value, encode).map(|()| text)
                });
                Values::Written(codes, written.collect::<PyResult<_>>()?)
            }
            Column::CodedJson(codes, texts) => Values::CodedJson(codes.as_slice()?, sliced(texts)?),
            Column::Values(values) => Values::Others(values),
            Column::Texts(texts) => Values::Texts(sliced(texts)?),
        })
    }
}

impl Values<'_, '_> {
    /// What texts take that are JSON already: they may be longer than all else.
    fn written_bytes(&self) -> usize {
        let Values::CodedJson(codes, texts) = self else { return 0 };
        codes.iter().filter_map(|&code| texts.of(code as usize)).map(|text| text.len()).sum()
    }
}

fn sliced<'a>((content, begins, ends): &'a Slices<'_>) -> PyResult<TextColumn<'a>> {
    Ok(TextColumn::Sliced { content: content.as_slice()?, begins: begins.as_slice()?, ends: ends.as_slice()? })
}

/// Where the number that a column wrote last stands: many rows have the number of the row before, and finding its digits
/// takes longer than copying them.
#[derive(Default)]
struct LastFloat {
    bits: u64,
    text: Range<usize>,
}

impl LastFloat {
    fn write(&mut self, out: &mut Vec<u8>, value: f64) {
        let begin = out.len();
        if value.to_bits() == self.bits && !self.text.is_empty() {
            out.extend_from_within(self.text.clone());
        } else {
            json::float(out, value);
        }
        *self = LastFloat { bits: value.to_bits(), text: begin..out.len() };
    }
}

/// The columns of a shape, and what writes values of other types.
struct Filling<'a, 'py> {
    columns: Vec<Values<'a, 'py>>,
    encode: &'a Bound<'py, PyAny>,
}

impl Columns for Filling<'_, '_> {
    type Error = PyErr;

    fn write(&mut self, out: &mut Vec<u8>, gap: usize, row: usize) -> PyResult<()> {
        let short = || PyIndexError::new_err(format!("the column of gap {gap} has no row {row}"));
        match self.columns.get_mut(gap).ok_or_else(short)? {
            Values::Floats(values, last) => last.write(out, *values.get(row).ok_or_else(short)?),
            Values::Integers(values) => json::integer(out, *values.get(row).ok_or_else(short)?),
            Values::Truths(values) => json::boolean(out, *values.get(row).ok_or_else(short)?),
            Values::Coded(codes, values) => {
                let code = *codes.get(row).ok_or_else(short)?;
                write_value(out, &values.get_item(code as usize)?, self.encode)?;
            }
            Values::CodedJson(codes, texts) => {
                let code = *codes.get(row).ok_or_else(short)?;
                out.extend_from_slice(&texts.of(code as usize).ok_or_else(short)?);
            }
            Values::Written(codes, values) => {
                let code = *codes.get(row).ok_or_else(short)?;
                out.extend_from_slice(values.get(code as usize).ok_or_else(short)?);
            }
            Values::Others(values) => write_value(out, &values.get_item(row)?, self.encode)?,
            Values::Texts(texts) => json::text(out, &texts.of(row).ok_or_else(short)?),
        }
        Ok(())
    }
}

fn write_value(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, encode: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(text) = value.cast::<PyString>() {
        match text.to_cow() {
            Ok(unicode) => json::text(out, unicode.as_bytes()),
            Err(_) => out.extend_from_slice(encode.call1((value,))?.cast::<PyBytes>()?.as_bytes()),
        }
    } else if let Ok(ready) = value.cast::<PyBytes>() {
        out.extend_from_slice(ready.as_bytes());
    } else if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(truth) = value.cast::<PyBool>() {
        json::boolean(out, truth.is_true());
    } else if let Ok(number) = value.cast::<PyFloat>() {
        json::float(out, number.value());
    } else if let (true, Ok(number)) = (value.is_instance_of::<PyInt>(), value.extract::<i64>()) {
        json::integer(out, number);
    } else {
        out.extend_from_slice(encode.call1((value,))?.cast::<PyBytes>()?.as_bytes());
    }
    Ok(())
}

/// The pieces of text and the columns of a shape.
type Given<'py> = (Vec<Bound<'py, PyBytes>>, Vec<Bound<'py, PyAny>>);

/// Documents one after the other as bytes: `order` says of which shape each is, `shapes` has the pieces of text and the
/// columns of each. Returns where the first, the second, ... of `ends` documents end, too. The bytes are an array, which
/// takes them over without a copy.
#[pyfunction]
pub(crate) fn filled_json<'py>(
    py: Python<'py>,
    order: PyReadonlyArray1<'py, u32>,
    ends: PyReadonlyArray1<'py, i64>,
    shapes: Vec<Given<'py>>,
    encode: Bound<'py, PyAny>,
) -> PyResult<Joined<'py>> {
    let pieces: Vec<Vec<&[u8]>> =
        shapes.iter().map(|(pieces, _)| pieces.iter().map(|piece| piece.as_bytes()).collect()).collect();
    let columns: Vec<Vec<Column<'_>>> = shapes
        .iter()
        .map(|(_, columns)| columns.iter().map(|column| column.extract()).collect::<PyResult<_>>())
        .collect::<PyResult<_>>()?;
    let (mut filled, mut written) = (Vec::new(), 0);
    for (columns, pieces) in columns.iter().zip(&pieces) {
        let columns = columns.iter().map(|column| column.values(&encode)).collect::<PyResult<Vec<_>>>()?;
        written += columns.iter().map(Values::written_bytes).sum::<usize>();
        filled.push(Shape::new(pieces, Filling { columns, encode: &encode }));
    }
    let (order, ends) = (order.as_slice()?, ends.as_slice()?);
    let typical: usize = order.iter().filter_map(|&shape| filled.get(shape as usize)).map(Shape::typical_bytes).sum();
    let (mut out, mut places, mut begin) = (Vec::with_capacity(typical + written), Vec::with_capacity(ends.len()), 0);
    let misplaced = || PyValueError::new_err("the ends must ascend within the order, whose shapes must exist");
    for &end in ends {
        let end = usize::try_from(end).map_err(|_| misplaced())?;
        for &shape in order.get(begin..end).ok_or_else(misplaced)? {
            filled.get_mut(shape as usize).ok_or_else(misplaced)?.write(&mut out)?;
        }
        begin = end;
        places.push(out.len() as i64);
    }
    Ok((out.into_pyarray(py), places.into_pyarray(py)))
}

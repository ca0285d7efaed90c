//! Rows of columns as comma-separated values (RFC 4180).

use std::borrow::Cow;

use crate::texts::TextColumn;

/// A column of fields.
pub enum Column<'a> {
    /// As Python writes numbers; an empty field for NaN.
    Floats(&'a [f64]),
    Texts(TextColumn<'a>),
    /// Places in a list of fields.
    Fields {
        codes: &'a [u32],
        values: Vec<Vec<u8>>,
    },
}

impl<'a> From<TextColumn<'a>> for Column<'a> {
    /// Texts that many rows share become fields once.
    fn from(texts: TextColumn<'a>) -> Self {
        match texts {
            TextColumn::Coded { codes, values } if values.len() <= codes.len() => {
                Column::Fields { codes, values: values.iter().map(|value| field(value).into_owned()).collect() }
            }
            others => Column::Texts(others),
        }
    }
}

impl Column<'_> {
    fn write(&self, out: &mut Vec<u8>, row: usize) -> Option<()> {
        match self {
            Column::Floats(values) => float(out, *values.get(row)?),
            Column::Texts(texts) => out.extend_from_slice(&field(&texts.of(row)?)),
            Column::Fields { codes, values } => out.extend_from_slice(values.get(*codes.get(row)? as usize)?),
        }
        Some(())
    }
}

/// So many rows, each with an end of line; `None` where a column has too few.
pub fn rows(rows: usize, columns: &[Column<'_>], line_end: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for row in 0..rows {
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            column.write(&mut out, row)?;
        }
        out.extend_from_slice(line_end);
    }
    Some(out)
}

/// A text as a field: in quotes, with each of its quotes twice, where it holds what separates fields and rows.
fn field(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().fold(false, |found, byte| found | matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
        return Cow::Borrowed(text);
    }
    let mut quoted = Vec::with_capacity(text.len() + text.len() / 4 + 2);
    quoted.push(b'"');
    for part in text.split_inclusive(|&byte| byte == b'"') {
        quoted.extend_from_slice(part);
        if part.ends_with(b"\"") {
            quoted.push(b'"');
        }
    }
    quoted.push(b'"');
    Cow::Owned(quoted)
}

/// Numbers from the one to below the other are written without an exponent, as Python does.
const PLAIN_FROM: f64 = 1e-4;
const PLAIN_BELOW: f64 = 1e16;

fn float(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    if size == 0.0 || (PLAIN_FROM..PLAIN_BELOW).contains(&size) {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    } else if let Some((digits, exponent)) = format!("{value:e}").split_once('e') {
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
        out.extend_from_slice(format!("{digits}e{sign}{exponent:0>2}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        for (text, expected) in [
            ("", ""),
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("\"", "\"\"\"\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("one\ntwo\r", "\"one\ntwo\r\""),
        ] {
            assert_eq!(field(text.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn numbers_are_as_python_writes_them() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.25, "0.25"),
            (1e-4, "0.0001"),
            (9.9e-5, "9.9e-05"),
            (-1e-7, "-1e-07"),
            (1.5e-300, "1.5e-300"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1.25e200, "1.25e+200"),
            (f64::INFINITY, "inf"),
            (f64::NAN, ""),
        ] {
            let mut out = Vec::new();
            float(&mut out, value);
            assert_eq!(out, expected.as_bytes());
        }
    }

    #[test]
    fn rows_are_made_of_columns_of_every_kind() {
        let values = || vec![b"a,b".to_vec(), Vec::new()];
        let columns = [
            Column::from(TextColumn::Coded { codes: &[0, 1], values: values() }),
            Column::Floats(&[0.5, f64::NAN]),
            Column::from(TextColumn::Integers(&[-1, 2])),
            Column::from(TextColumn::Each(values())),
        ];
        assert_eq!(rows(2, &columns, b"\r\n"), Some(b"\"a,b\",0.5,-1,\"a,b\"\r\n,,2,\r\n".to_vec()));
        assert_eq!(rows(3, &columns, b"\n"), None);
    }
}

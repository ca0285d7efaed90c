//! Columns of texts, and what is joined from them row by row.

use std::borrow::Cow;

/// A column of texts, or of what is written as text, as its values lie in memory.
pub enum TextColumn<'a> {
    /// Slices of one run of text.
    Sliced {
        content: &'a [u8],
        begins: &'a [i64],
        ends: &'a [i64],
    },
    /// Places in a list.
    Coded {
        codes: &'a [u32],
        values: Vec<Vec<u8>>,
    },
    Each(Vec<Vec<u8>>),
    Integers(&'a [i64]),
}

impl TextColumn<'_> {
    /// The text of a row; `None` where there is no such row.
    pub fn of(&self, row: usize) -> Option<Cow<'_, [u8]>> {
        Some(match self {
            TextColumn::Sliced { content, begins, ends } => {
                let (begin, end) = (*begins.get(row)?, *ends.get(row)?);
                Cow::Borrowed(content.get(usize::try_from(begin).ok()?..usize::try_from(end).ok()?)?)
            }
            TextColumn::Coded { codes, values } => Cow::Borrowed(values.get(*codes.get(row)? as usize)?),
            TextColumn::Each(values) => Cow::Borrowed(values.get(row)?),
            TextColumn::Integers(values) => {
                Cow::Owned(itoa::Buffer::new().format(*values.get(row)?).as_bytes().to_vec())
            }
        })
    }

    fn write(&self, out: &mut Vec<u8>, row: usize) -> Option<()> {
        match self {
            TextColumn::Integers(values) => {
                out.extend_from_slice(itoa::Buffer::new().format(*values.get(row)?).as_bytes());
            }
            _ => out.extend_from_slice(&self.of(row)?),
        }
        Some(())
    }
}

/// Texts one behind the other: that of row i ends at `ends[i + 1]`, and begins where the one before it ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Texts {
    pub content: Vec<u8>,
    pub ends: Vec<i64>,
}

impl Texts {
    /// What `write` appends row by row; `None` where it finds no such row.
    pub fn of(rows: usize, mut write: impl FnMut(&mut Vec<u8>, usize) -> Option<()>) -> Option<Self> {
        let (mut content, mut ends) = (Vec::new(), Vec::with_capacity(rows + 1));
        ends.push(0);
        for row in 0..rows {
            write(&mut content, row)?;
            ends.push(i64::try_from(content.len()).ok()?);
        }
        Some(Texts { content, ends })
    }
}

/// Of each row the first piece, its text in the first column, the second piece and so on; `None` where a column has too
/// few rows, or there is not one piece more than columns.
pub fn joined(rows: usize, pieces: &[&[u8]], columns: &[TextColumn<'_>]) -> Option<Texts> {
    let (last, before) = pieces.split_last()?;
    if before.len() != columns.len() {
        return None;
    }
    Texts::of(rows, |out, row| {
        for (piece, column) in before.iter().zip(columns) {
            out.extend_from_slice(piece);
            column.write(out, row)?;
        }
        out.extend_from_slice(last);
        Some(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_from_columns_of_every_kind() {
        let sliced = TextColumn::Sliced { content: b"onetwo", begins: &[3, 0], ends: &[6, 3] };
        let coded = TextColumn::Coded { codes: &[1, 1], values: vec![Vec::new(), b"!".to_vec()] };
        let each = TextColumn::Each(vec![b"a".to_vec(), b"b".to_vec()]);
        let columns = [sliced, coded, each, TextColumn::Integers(&[-1, 20])];
        let pieces: [&[u8]; 5] = [b"<", b"", b" ", b"=", b">"];
        let content = b"<two! a=-1><one! b=20>".to_vec();
        assert_eq!(joined(2, &pieces, &columns), Some(Texts { content, ends: vec![0, 11, 22] }));
        assert_eq!(joined(3, &pieces, &columns), None);
        assert_eq!(joined(2, &pieces[1..], &columns), None);
    }

    #[test]
    fn slices_outside_their_run_are_no_texts() {
        for (begin, end) in [(-1, 2), (0, 7), (4, 3)] {
            let column = TextColumn::Sliced { content: b"onetwo", begins: &[begin], ends: &[end] };
            assert_eq!(column.of(0), None);
        }
    }
}

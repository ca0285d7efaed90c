//! Documents of a few shapes, one after the other, whose gaps are filled from columns.

/// What fills the gaps of a shape, each gap from a column of its own.
pub trait Columns {
    type Error;

    /// Append the value of a gap in a row; both are counted from 0.
    fn write(&mut self, out: &mut Vec<u8>, gap: usize, row: usize) -> Result<(), Self::Error>;
}

/// What a value takes, if it is short.
const VALUE_BYTES: usize = 40;

/// The text of a shape between its gaps, one piece more than there are gaps, and what fills these.
pub struct Shape<'a, Filling> {
    pieces: &'a [&'a [u8]],
    filling: Filling,
    next_row: usize,
}

impl<'a, Filling: Columns> Shape<'a, Filling> {
    pub fn new(pieces: &'a [&'a [u8]], filling: Filling) -> Self {
        Shape { pieces, filling, next_row: 0 }
    }

    /// About how many bytes a row takes, if values are short.
    pub fn typical_bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len() + VALUE_BYTES).sum()
    }

    /// Append the text of its next row.
    pub fn write(&mut self, out: &mut Vec<u8>) -> Result<(), Filling::Error> {
        let row = self.next_row;
        self.next_row += 1;
        let Some((last, before)) = self.pieces.split_last() else { return Ok(()) };
        for (gap, piece) in before.iter().enumerate() {
            out.extend_from_slice(piece);
            self.filling.write(out, gap, row)?;
        }
        out.extend_from_slice(last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Digits(Vec<Vec<u8>>);

    impl Columns for Digits {
        type Error = ();

        fn write(&mut self, out: &mut Vec<u8>, gap: usize, row: usize) -> Result<(), ()> {
            out.push(*self.0.get(gap).and_then(|column| column.get(row)).ok_or(())?);
            Ok(())
        }
    }

    #[test]
    fn each_shape_goes_through_its_own_rows() {
        let pieces: [&[u8]; 3] = [b"<", b":", b">"];
        let mut one = Shape::new(&pieces, Digits(vec![b"12".to_vec(), b"ab".to_vec()]));
        let mut other = Shape::new(&pieces[2..], Digits(Vec::new()));
        let mut out = Vec::new();
        assert!(one.write(&mut out).and(other.write(&mut out)).and(one.write(&mut out)).is_ok());
        assert_eq!(out, b"<1:a>><2:b>");
        assert!(one.write(&mut out).is_err());
    }
}

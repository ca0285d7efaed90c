//! Documents that end with a list of pieces, which are made form by form and read document by document.

use crate::texts::Texts;

/// Pieces of many documents: those of document i are `form` and `place` from `ends[i]` to `ends[i + 1]`.
#[derive(Debug)]
pub struct Pieces {
    /// Where the pieces of each document begin, and where the last ones end.
    pub ends: Vec<usize>,
    /// Which of the columns of texts holds a piece.
    pub form: Vec<u32>,
    /// Its place in that column.
    pub place: Vec<u32>,
}

/// White space, brackets and commas around the pieces of a document.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// Before the first piece.
    pub before: &'a [u8],
    /// Between two pieces.
    pub between: &'a [u8],
    /// Behind the last piece.
    pub behind: &'a [u8],
    /// In the place of all of them where there is no piece.
    pub without: &'a [u8],
}

impl Pieces {
    /// How many pieces a document has; None where there is no such document.
    #[must_use]
    pub fn count(&self, document: usize) -> Option<usize> {
        self.ends.get(document + 1)?.checked_sub(*self.ends.get(document)?)
    }

    /// Appends the pieces of a document. Behind each stands what `ending` gives for its place among them. None where
    /// there is no such document or piece; then a part may have been written.
    #[must_use]
    pub fn write<'e>(
        &self,
        bytes: &mut Vec<u8>,
        document: usize,
        forms: &[&Texts],
        around: Around<'_>,
        ending: impl Fn(usize) -> &'e [u8],
    ) -> Option<()> {
        let (begin, end) = (*self.ends.get(document)?, *self.ends.get(document + 1)?);
        if begin == end {
            bytes.extend_from_slice(around.without);
            return Some(());
        }
        for at in begin..end {
            bytes.extend_from_slice(if at == begin { around.before } else { around.between });
            let texts = forms.get(usize::try_from(*self.form.get(at)?).ok()?)?;
            bytes.extend_from_slice(texts.get(usize::try_from(*self.place.get(at)?).ok()?)?);
            bytes.extend_from_slice(ending(at - begin));
        }
        bytes.extend_from_slice(around.behind);
        Some(())
    }
}

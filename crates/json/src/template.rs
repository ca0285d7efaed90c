//! Documents of one shape: what is common to all of them, with a gap for each value.

use crate::texts::Texts;

/// What fills a gap of a template.
#[derive(Clone, Copy, Debug)]
pub enum Filling<'a> {
    /// A text of its own for each document.
    Each(&'a Texts),
    /// The same text in all of them.
    All(&'a [u8]),
}

/// Fills the gaps between `parts` in so many documents; None where gaps and columns differ in number, or a column has
/// too few texts.
#[must_use]
pub fn filled(parts: &[&[u8]], columns: &[Filling<'_>], count: usize) -> Option<Texts> {
    if parts.len() != columns.len() + 1 {
        return None;
    }
    let common: usize = parts.iter().map(|part| part.len()).sum();
    let own: usize = columns
        .iter()
        .map(|column| match column {
            Filling::Each(texts) => texts.total_bytes(),
            Filling::All(text) => text.len() * count,
        })
        .sum();
    let mut documents = Texts::with_capacity(count, common * count + own);
    let (first, others) = parts.split_first()?;
    for place in 0..count {
        let mut is_complete = true;
        documents.push_with(|bytes| {
            bytes.extend_from_slice(first);
            for (column, part) in columns.iter().zip(others) {
                let text = match column {
                    Filling::Each(texts) => texts.get(place),
                    Filling::All(text) => Some(*text),
                };
                is_complete &= text.is_some();
                bytes.extend_from_slice(text.unwrap_or_default());
                bytes.extend_from_slice(part);
            }
        });
        if !is_complete {
            return None;
        }
    }
    Some(documents)
}

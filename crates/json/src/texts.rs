//! Many texts as one run of bytes.

/// Texts one behind the other; text i ends at `ends[i]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// Room for so many texts of so many bytes together.
    #[must_use]
    pub fn with_capacity(texts: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(texts) }
    }

    /// How many texts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all texts together.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// One of the texts; None beyond the last one.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        let end = *self.ends.get(place)?;
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(begin..end)
    }

    /// Adds a text that is written to the end of the bytes.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Adds a text.
    pub fn push(&mut self, text: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(text));
    }
}

//! Payload by name.

use crate::packets::segment::ContentId;

/// Consecutive bytes of one content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub content: ContentId,
    /// The offset of the first byte in its content.
    pub content_offset: u64,
    pub bytes: u64,
}

/// A run at a position of a stream, up to and without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedRun {
    pub start: u64,
    pub end: u64,
    pub content: ContentId,
    pub content_offset: u64,
}

impl PlacedRun {
    /// Where the content continues after the run.
    #[inline]
    pub fn next_offset(&self) -> u64 {
        self.content_offset.wrapping_add(self.end - self.start)
    }

    /// Whether `next` continues both the stream and the content.
    #[inline]
    pub fn is_continued_by(&self, next: &Self) -> bool {
        self.end == next.start && self.content == next.content && self.next_offset() == next.content_offset
    }

    /// The part from `position` on.
    #[inline]
    pub fn from(mut self, position: u64) -> Self {
        let skipped = position.saturating_sub(self.start).min(self.end - self.start);
        self.start += skipped;
        self.content_offset = self.content_offset.wrapping_add(skipped);
        self
    }
}

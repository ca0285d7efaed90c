//! A byte stream in one buffer: records are parsed in place.

use std::io::{ErrorKind, Read};

/// Large enough that the cost of a read call vanishes, small enough to stay in the second-level cache.
const BUFFER_BYTES: usize = 256 << 10;

/// Why the stream has fewer bytes than asked for.
#[derive(Clone, Debug)]
pub(crate) enum Shortage {
    /// The stream is over.
    Ended,
    /// Reading or decompressing failed.
    Failed(String),
}

pub(crate) struct ByteWindow {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Stream offset of `buffer[0]`.
    base_offset: u64,
    failure: Option<Shortage>,
}

impl ByteWindow {
    pub(crate) fn new(source: Box<dyn Read + Send>) -> Self {
        ByteWindow { source, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, base_offset: 0, failure: None }
    }

    /// Offset in the stream of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base_offset + self.start as u64
    }

    /// Index in the buffer of the next byte.
    pub(crate) fn position(&self) -> usize {
        self.start
    }

    /// Bytes that are in the buffer now.
    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Bytes at buffer indices that were valid when they were taken; valid until the next `demand`.
    #[inline]
    pub(crate) fn slice(&self, position: usize, length: usize) -> &[u8] {
        &self.buffer[position..position + length]
    }

    /// The last `count` bytes that were consumed; valid until the next `demand`.
    pub(crate) fn latest(&self, count: usize) -> &[u8] {
        self.buffer.get(self.start.saturating_sub(count)..self.start).unwrap_or_default()
    }

    /// Makes at least `count` bytes available.
    #[inline]
    pub(crate) fn demand(&mut self, count: usize) -> Result<(), Shortage> {
        if self.end - self.start >= count {
            return Ok(());
        }
        self.fill(count)
    }

    /// Steps over `count` bytes that are available.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Steps over `count` bytes without keeping them.
    pub(crate) fn skip(&mut self, mut count: u64) -> Result<(), Shortage> {
        loop {
            let here = (self.end - self.start) as u64;
            if count <= here {
                self.start += count as usize;
                return Ok(());
            }
            count -= here;
            self.start = self.end;
            self.fill(1)?;
        }
    }

    #[cold]
    fn fill(&mut self, count: usize) -> Result<(), Shortage> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.base_offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < count {
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            if self.end == self.buffer.len() {
                // Grow only as bytes arrive, so that a lying length field costs nothing.
                let larger = (self.buffer.len() * 2).min(count.max(BUFFER_BYTES));
                self.buffer.resize(larger, 0);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.failure = Some(Shortage::Ended),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.failure = Some(Shortage::Failed(error.to_string())),
            }
        }
        Ok(())
    }
}

//! A cursor over one frame that counts both the captured bytes and those on the wire.

use crate::error::Reject;

#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    base: &'a [u8],
    start: usize,
    end: usize,
    wire_bytes: usize,
}

impl<'a> View<'a> {
    /// All of `base`, of which `wire_bytes` were on the wire (at least as many as were captured).
    pub(crate) fn new(base: &'a [u8], wire_bytes: usize) -> Self {
        View { base, start: 0, end: base.len(), wire_bytes: wire_bytes.max(base.len()) }
    }

    /// Index of the first byte in the frame.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Index after the last captured byte in the frame.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Bytes on the wire from here on.
    pub(crate) fn wire_bytes(&self) -> usize {
        self.wire_bytes
    }

    /// The captured bytes from here on.
    pub(crate) fn captured(&self) -> &'a [u8] {
        &self.base[self.start..self.end]
    }

    /// Sets the length on the wire; captured bytes beyond it are padding and drop out.
    pub(crate) fn with_wire_bytes(mut self, wire_bytes: usize) -> Self {
        self.wire_bytes = wire_bytes;
        self.end = self.end.min(self.start.saturating_add(wire_bytes));
        self
    }

    /// Why `count` bytes from here cannot be had.
    fn shortage(&self, count: usize) -> Reject {
        if count > self.wire_bytes {
            Reject::Malformed
        } else {
            Reject::CutShort
        }
    }

    /// Steps over `count` bytes.
    pub(crate) fn advance(self, count: usize) -> Result<Self, Reject> {
        if count > self.end - self.start {
            return Err(self.shortage(count));
        }
        Ok(View { start: self.start + count, wire_bytes: self.wire_bytes - count, ..self })
    }

    /// The `N` bytes that stand `at` bytes from here.
    pub(crate) fn bytes<const N: usize>(&self, at: usize) -> Result<[u8; N], Reject> {
        match self.captured().get(at..).and_then(<[u8]>::first_chunk::<N>) {
            Some(chunk) => Ok(*chunk),
            None => Err(self.shortage(at.saturating_add(N))),
        }
    }

    pub(crate) fn byte(&self, at: usize) -> Result<u8, Reject> {
        self.bytes::<1>(at).map(|[byte]| byte)
    }

    pub(crate) fn u16_be(&self, at: usize) -> Result<u16, Reject> {
        self.bytes(at).map(u16::from_be_bytes)
    }

    pub(crate) fn u16_le(&self, at: usize) -> Result<u16, Reject> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    pub(crate) fn u32_be(&self, at: usize) -> Result<u32, Reject> {
        self.bytes(at).map(u32::from_be_bytes)
    }

    pub(crate) fn u32_le(&self, at: usize) -> Result<u32, Reject> {
        self.bytes(at).map(u32::from_le_bytes)
    }
}

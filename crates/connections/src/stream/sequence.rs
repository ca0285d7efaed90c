//! Wire sequence numbers of one stream, which wrap around, to 64-bit offsets.
//!
//! A number is placed within 2 GiB of the furthest point that sequence and acknowledgement numbers have reached.
//! A number far beyond what a window could allow is not accepted at once (a reset with sequence number 0, a late
//! packet of an earlier connection, a corrupt header): it is placed, but the stream moves there only when a second
//! packet confirms it, so that a long hole in the capture is survived as well.

/// Smallest jump that a second segment must confirm, in bytes; above any unscaled window and most buffers.
const LEAST_SUSPICIOUS_JUMP_BYTES: i64 = 4 << 20;

/// What the stream made of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sighting {
    Accepted,
    /// Accepted, and so is the earlier doubtful packet, which covered this range.
    Confirms {
        start: i64,
        end: i64,
    },
    Doubtful,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sequence {
    /// Furthest offset reached, relative to `reference`.
    frontier: i64,
    doubtful: (i64, i64),
    /// Wire number of offset 0.
    reference: u32,
    anchored: bool,
    in_doubt: bool,
}

impl Sequence {
    pub(crate) fn anchored(&self) -> bool {
        self.anchored
    }

    /// Let the first number known of the stream be offset 0.
    pub(crate) fn anchor(&mut self, number: u32) {
        if !self.anchored {
            self.reference = number;
            self.anchored = true;
        }
    }

    /// The wire number of an offset.
    pub(crate) fn number(&self, offset: i64) -> u32 {
        self.reference.wrapping_add(offset as u32)
    }

    #[inline]
    pub(crate) fn offset(&self, number: u32) -> i64 {
        let expected = self.reference.wrapping_add(self.frontier as u32);
        self.frontier + i64::from(number.wrapping_sub(expected) as i32)
    }

    /// Note that the stream was seen from `start` to `end`; `window_bytes` is the largest window that allowed it.
    #[inline]
    pub(crate) fn advance(&mut self, start: i64, end: i64, window_bytes: u32) -> Sighting {
        if end <= self.frontier {
            // A stream that continues at its old position does not confirm the jump.
            self.in_doubt &= end != self.frontier;
            return Sighting::Accepted;
        }
        let allowed = LEAST_SUSPICIOUS_JUMP_BYTES.max(4 * i64::from(window_bytes));
        if start - self.frontier <= allowed {
            self.frontier = end;
            self.in_doubt = false;
            return Sighting::Accepted;
        }
        self.advance_far(start, end, allowed)
    }

    /// Whether `advance` accepts a packet that starts here whatever the window, and settles no doubt.
    #[inline]
    pub(crate) fn takes(&self, start: i64) -> bool {
        !self.in_doubt && start - self.frontier <= LEAST_SUSPICIOUS_JUMP_BYTES
    }

    /// Note that the stream was seen up to `end`, from a place that `takes` accepts.
    #[inline]
    pub(crate) fn reach(&mut self, end: i64) {
        self.frontier = self.frontier.max(end);
    }

    #[cold]
    fn advance_far(&mut self, start: i64, end: i64, allowed: i64) -> Sighting {
        let (doubtful_start, doubtful_end) = self.doubtful;
        let near = start >= doubtful_start - allowed && start <= doubtful_end + allowed;
        if self.in_doubt && near {
            self.in_doubt = false;
            self.frontier = end.max(doubtful_end);
            return Sighting::Confirms { start: doubtful_start, end: doubtful_end };
        }
        self.in_doubt = true;
        self.doubtful = (start, end);
        Sighting::Doubtful
    }
}

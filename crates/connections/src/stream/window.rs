//! The receive window that one side advertises.

/// Largest shift allowed (RFC 7323 section 2.3).
const LARGEST_SHIFT: u8 = 14;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    latest_bytes: u32,
    minimum_bytes: u32,
    maximum_bytes: u32,
    pub(crate) times_zero: u32,
    /// Packets without SYN that were captured before the shift was known.
    pub(crate) unscaled_packets: u64,
    shift: u8,
    seen: bool,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            latest_bytes: 0,
            minimum_bytes: u32::MAX,
            maximum_bytes: 0,
            times_zero: 0,
            unscaled_packets: 0,
            shift: 0,
            seen: false,
        }
    }
}

impl Window {
    /// Scales windows; `packets` without SYN were captured before.
    pub(crate) fn scale_by(&mut self, shift: u8, packets: u64) {
        let shift = shift.min(LARGEST_SHIFT);
        if shift == self.shift {
            return;
        }
        self.shift = shift;
        self.unscaled_packets = packets;
        self.latest_bytes <<= shift;
        self.maximum_bytes <<= shift;
        if self.seen {
            self.minimum_bytes <<= shift;
        }
    }

    pub(crate) fn shift(&self) -> u8 {
        self.shift
    }

    pub(crate) fn scaled(&self, raw: u16) -> u32 {
        u32::from(raw) << self.shift
    }

    /// Notes a scaled window of a packet without SYN and RST.
    #[inline(always)]
    pub(crate) fn advertise(&mut self, window_bytes: u32) {
        if window_bytes == 0 && !self.is_zero() {
            self.times_zero = self.times_zero.saturating_add(1);
        }
        self.latest_bytes = window_bytes;
        self.minimum_bytes = self.minimum_bytes.min(window_bytes);
        self.maximum_bytes = self.maximum_bytes.max(window_bytes);
        self.seen = true;
    }

    /// The other side may send nothing.
    pub(crate) fn is_zero(&self) -> bool {
        self.seen && self.latest_bytes == 0
    }

    pub(crate) fn latest_bytes(&self) -> u32 {
        self.latest_bytes
    }

    /// 0 where none was seen.
    pub(crate) fn minimum_bytes(&self) -> u32 {
        if self.seen {
            self.minimum_bytes
        } else {
            0
        }
    }

    pub(crate) fn maximum_bytes(&self) -> u32 {
        self.maximum_bytes
    }
}

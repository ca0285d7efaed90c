//! One TCP segment in one IP packet, as simulated endpoints exchange it.

use core::ops::{BitOr, BitOrAssign};

pub const IPV4_HEADER_BYTES: u32 = 20;
pub const IPV6_HEADER_BYTES: u32 = 40;
/// Without options (RFC 9293, section 3.1).
pub const TCP_HEADER_BYTES: u32 = 20;

const TIMESTAMPS_OPTION_BYTES: u32 = 12; // with its two NOPs (RFC 7323, appendix A)
const SACK_OPTION_BYTES: u32 = 4; // kind, length and two NOPs; each block adds 8 (RFC 2018, section 3)

/// The bytes that a payload is cut from: two payloads with one content and offset are the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId(pub u32);

/// Control bits (RFC 9293, section 3.1; RFC 3168, section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    pub const FIN: Self = Self(0x01);
    pub const SYN: Self = Self(0x02);
    pub const RST: Self = Self(0x04);
    pub const PSH: Self = Self(0x08);
    pub const ACK: Self = Self(0x10);
    pub const ECE: Self = Self(0x40);
    pub const CWR: Self = Self(0x80);

    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether ACK is set, and nothing else but perhaps PSH.
    #[inline]
    pub(crate) fn is_ack_alone(self) -> bool {
        self.0 & !Self::PSH.0 == Self::ACK.0
    }

    #[inline]
    pub(crate) fn without_push(self) -> Self {
        Self(self.0 & !Self::PSH.0)
    }

    /// Whether any of `other`'s bits is set.
    #[must_use]
    #[inline]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    #[default]
    NotCapable,
    Capable,
    Congestion,
}

/// The timestamps option (RFC 7323, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    pub value: u32,
    pub echo_reply: u32,
}

/// Up to four blocks of the SACK option (RFC 2018, section 3), the most recently received one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block of sequence numbers [`left`, `right`); `false` if there is no room.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else {
            return false;
        };
        *place = (left, right);
        self.count += 1;
        true
    }

    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The order of the options in a SYN behind the maximum segment size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptionLayout {
    /// SACK permitted and timestamps, window scale (Linux).
    #[default]
    ScaleLast,
    /// Window scale, SACK permitted and timestamps (Windows).
    ScaleSecond,
    /// Window scale, timestamps, SACK permitted and the end of the list (macOS, iOS).
    SackLast,
}

/// A TCP segment and the fields of the IP header that carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The connection it belongs to: what addresses and ports stand for, at every tap of the path.
    pub flow: u32,
    /// The mobile at its radio end.
    pub user: u16,
    pub flags: Flags,
    pub sequence: u32,
    pub acknowledgement: u32,
    /// The window field as the header carries it, not scaled.
    pub window: u16,
    pub payload_bytes: u16,
    pub content: ContentId,
    /// Where the payload starts in its content, in bytes.
    pub content_offset: u64,
    pub timestamps: Option<Timestamps>,
    pub sack: SackBlocks,
    /// The three options of a SYN; `None` and `false` elsewhere.
    pub maximum_segment_size: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub option_layout: OptionLayout,
    pub ecn: Ecn,
    pub ip_identification: u16,
    pub time_to_live: u8,
    /// Carried by IPv6 instead of IPv4.
    pub version_6: bool,
    /// When its sender handed it to the path: no header carries it, it is there to know true one-way delays.
    pub sent_ns: u64,
}

impl Segment {
    /// Length of the TCP options, padded to whole words.
    #[must_use]
    #[inline(always)]
    pub fn option_bytes(&self) -> u32 {
        let mut bytes = 0;
        if self.maximum_segment_size.is_some() {
            bytes += 4;
        }
        if self.window_scale.is_some() {
            bytes += 4; // with a NOP
        }
        match (self.sack_permitted, self.timestamps.is_some()) {
            (true, true) if self.option_layout == OptionLayout::SackLast => bytes += TIMESTAMPS_OPTION_BYTES + 4,
            (true, true) | (false, true) => bytes += TIMESTAMPS_OPTION_BYTES, // SACK permitted takes the NOPs' place
            (true, false) => bytes += 4,
            (false, false) => {}
        }
        if !self.sack.is_empty() {
            bytes += SACK_OPTION_BYTES + 8 * u32::from(self.sack.count);
        }
        bytes
    }

    /// Length of the IP and TCP headers.
    #[must_use]
    #[inline(always)]
    pub fn header_bytes(&self) -> u32 {
        let ip = if self.version_6 { IPV6_HEADER_BYTES } else { IPV4_HEADER_BYTES };
        ip + TCP_HEADER_BYTES + self.option_bytes()
    }

    /// Length of the IP packet.
    #[must_use]
    #[inline(always)]
    pub fn length_bytes(&self) -> u32 {
        self.header_bytes() + u32::from(self.payload_bytes)
    }

    /// Sequence numbers that it takes: payload, SYN and FIN (RFC 9293, section 3.4).
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        u32::from(self.payload_bytes) + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}

#[cfg(test)]
mod tests {
    use super::{Flags, OptionLayout, Segment, Timestamps};

    #[test]
    fn options_take_the_room_that_linux_gives_them() {
        let mut segment = Segment { flags: Flags::SYN, maximum_segment_size: Some(1460), ..Segment::default() };
        assert_eq!(segment.option_bytes(), 4);
        segment.sack_permitted = true;
        assert_eq!(segment.option_bytes(), 8);
        segment.timestamps = Some(Timestamps::default());
        segment.window_scale = Some(7);
        assert_eq!(segment.option_bytes(), 20);
    }

    #[test]
    fn darwin_gives_sack_permitted_a_word_of_its_own() {
        let mut segment = Segment { sack_permitted: true, option_layout: OptionLayout::SackLast, ..Segment::default() };
        assert_eq!(segment.option_bytes(), 4);
        segment.timestamps = Some(Timestamps::default());
        assert_eq!(segment.option_bytes(), 16);
    }

    #[test]
    fn three_sack_blocks_fit_beside_timestamps() {
        let mut segment = Segment { timestamps: Some(Timestamps::default()), ..Segment::default() };
        for left in [1, 3, 5] {
            assert!(segment.sack.push(left, left + 1));
        }
        assert_eq!(segment.option_bytes(), 40);
    }

    #[test]
    fn a_fifth_sack_block_is_refused() {
        let mut segment = Segment::default();
        for left in 0..4 {
            assert!(segment.sack.push(left, left + 1));
        }
        assert!(!segment.sack.push(9, 10));
        assert_eq!(segment.sack.as_slice().len(), 4);
    }
}

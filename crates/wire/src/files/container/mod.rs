//! Capture files: a stream of bytes to frames with a time and a link type.

pub(crate) mod pcap;
pub(crate) mod pcapng;
pub(crate) mod snoop;
mod timestamps;

use crate::files::window::{ByteWindow, Shortage};

/// Largest captured frame that is accepted where the file names no snap length (libpcap's MAXIMUM_SNAPLEN).
pub(crate) const USUAL_FRAME_BYTES: u32 = 256 << 10;
/// Largest captured frame that is accepted at all.
pub(crate) const LARGEST_FRAME_BYTES: u32 = 16 << 20;

/// A frame in the window's buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameSpan {
    pub(crate) position: usize,
    pub(crate) captured_bytes: usize,
    pub(crate) wire_bytes: u32,
    pub(crate) time_ns: i64,
    pub(crate) link_type: u16,
    /// False where the file gives no time (simple packet blocks).
    pub(crate) timed: bool,
}

/// Why no further frame can be read.
#[derive(Clone, Debug)]
pub(crate) struct Break {
    pub(crate) byte_offset: u64,
    pub(crate) cause: String,
}

impl Break {
    #[cold]
    pub(crate) fn new(byte_offset: u64, cause: String) -> Self {
        Break { byte_offset, cause }
    }

    /// The stream gave fewer than the `wanted` bytes of `what` at `byte_offset`.
    #[cold]
    pub(crate) fn short(window: &ByteWindow, shortage: Shortage, what: &str, wanted: u64) -> Self {
        let cause = match shortage {
            Shortage::Ended => {
                format!("it ends within {what} ({} of {wanted} bytes are there)", window.available().len())
            }
            Shortage::Failed(reason) => format!("{what} cannot be read ({reason})"),
        };
        Break { byte_offset: window.offset(), cause }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Big,
    Little,
}

impl ByteOrder {
    /// The 32-bit word at `at`; zero beyond the end.
    #[inline]
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).copied().unwrap_or_default();
        match self {
            ByteOrder::Big => u32::from_be_bytes(word),
            ByteOrder::Little => u32::from_le_bytes(word),
        }
    }

    /// The four 32-bit words of 16 bytes.
    #[inline(always)]
    pub(crate) fn words(self, bytes: &[u8; 16]) -> [u32; 4] {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let words = [word(0), word(4), word(8), word(12)];
        match self {
            ByteOrder::Big => words.map(u32::from_be_bytes),
            ByteOrder::Little => words.map(u32::from_le_bytes),
        }
    }

    /// The four bytes of a 32-bit word.
    pub(crate) fn bytes(self, word: u32) -> [u8; 4] {
        match self {
            ByteOrder::Big => word.to_be_bytes(),
            ByteOrder::Little => word.to_le_bytes(),
        }
    }

    /// The two bytes of a 16-bit word.
    pub(crate) fn half_bytes(self, word: u16) -> [u8; 2] {
        match self {
            ByteOrder::Big => word.to_be_bytes(),
            ByteOrder::Little => word.to_le_bytes(),
        }
    }

    /// The 16-bit word at `at`; zero beyond the end.
    #[inline]
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let word = bytes.get(at..).and_then(<[u8]>::first_chunk::<2>).copied().unwrap_or_default();
        match self {
            ByteOrder::Big => u16::from_be_bytes(word),
            ByteOrder::Little => u16::from_le_bytes(word),
        }
    }
}

/// The kind of capture file, with the reader's state.
pub(crate) enum Container {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
    Snoop(snoop::Snoop),
}

impl Container {
    /// Recognises the container by its first four bytes.
    pub(crate) fn recognise(magic: [u8; 4]) -> Option<Container> {
        if magic == pcapng::SECTION_HEADER.to_be_bytes() {
            return Some(Container::Pcapng(pcapng::Pcapng::new()));
        }
        let snoop = snoop::Snoop::recognise(magic).map(Container::Snoop);
        snoop.or_else(|| pcap::Pcap::recognise(magic).map(Container::Pcap))
    }

    /// Steps to the next frame and writes where it is; false at a clean end.
    ///
    /// Written in place, field by field: a structure that is handed on by value is read back in wider words than it was
    /// written in, which stalls the processor for every packet.
    #[inline]
    pub(crate) fn next_frame(&mut self, window: &mut ByteWindow, span: &mut FrameSpan) -> Result<bool, Break> {
        match self {
            Container::Pcap(pcap) => pcap.next_frame(window, span),
            Container::Snoop(snoop) => snoop.next_frame(window, span),
            Container::Pcapng(pcapng) => {
                let Some(next) = pcapng.next_frame(window)? else { return Ok(false) };
                *span = next;
                Ok(true)
            }
        }
    }
}

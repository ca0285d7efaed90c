//! Captures of Solaris' snoop (RFC 1761), always big-endian, with microseconds.

use super::{Break, ByteOrder, FrameSpan, LARGEST_FRAME_BYTES};
use crate::files::window::{ByteWindow, Shortage};

/// The first four of the eight bytes that the file begins with.
const MAGIC: [u8; 4] = *b"snoo";
const WHOLE_MAGIC: [u8; 8] = *b"snoop\0\0\0";
const VERSION: u32 = 2;

pub(crate) const FILE_HEADER_BYTES: usize = 16;
/// Where in a record header the number of captured bytes stands.
pub(crate) const CAPTURED_BYTES_AT: usize = 4;
/// Where in a record header the length of the whole record stands.
pub(crate) const RECORD_BYTES_AT: usize = 8;
pub(crate) const RECORD_HEADER_BYTES: usize = 24;

/// A frame with its header and some padding.
const LARGEST_RECORD_BYTES: u32 = LARGEST_FRAME_BYTES + 64;

const ORDER: ByteOrder = ByteOrder::Big;

#[derive(Default)]
pub(crate) struct Snoop {
    link_type: u16,
}

impl Snoop {
    pub(crate) fn recognise(magic: [u8; 4]) -> Option<Snoop> {
        (magic == MAGIC).then(Snoop::default)
    }

    /// Takes the file header, which must be available in full; gives the link-layer type, or what is wrong.
    pub(crate) fn read_file_header(&mut self, window: &mut ByteWindow) -> Result<u16, String> {
        let header = window.available();
        if !header.starts_with(&WHOLE_MAGIC) {
            return Err("it begins like one of snoop and goes on otherwise".to_owned());
        }
        let version = ORDER.u32(header, 8);
        if version != VERSION {
            return Err(format!("snoop's version must be {VERSION}, got {version}"));
        }
        let media = ORDER.u32(header, 12);
        self.link_type =
            link_type_of(media).ok_or_else(|| format!("snoop's media type {media} is none that can be read"))?;
        window.consume(FILE_HEADER_BYTES);
        Ok(self.link_type)
    }

    pub(crate) fn order(&self) -> ByteOrder {
        ORDER
    }

    pub(crate) fn link_type(&self) -> u16 {
        self.link_type
    }

    /// Steps to the next frame and writes where it is; false at a clean end.
    pub(crate) fn next_frame(&mut self, window: &mut ByteWindow, span: &mut FrameSpan) -> Result<bool, Break> {
        if let Err(shortage) = window.demand(RECORD_HEADER_BYTES) {
            return match shortage {
                Shortage::Ended if window.available().is_empty() => Ok(false),
                other => Err(Break::short(window, other, "a record header", RECORD_HEADER_BYTES as u64)),
            };
        }
        let header = window.available();
        let [wire_bytes, captured_bytes, record_bytes] =
            [0, CAPTURED_BYTES_AT, RECORD_BYTES_AT].map(|at| ORDER.u32(header, at));
        let [seconds, microseconds] = [16, 20].map(|at| ORDER.u32(header, at));
        let needed_bytes = RECORD_HEADER_BYTES + captured_bytes as usize;
        let fits = captured_bytes <= LARGEST_FRAME_BYTES && needed_bytes <= record_bytes as usize;
        if !fits || record_bytes > LARGEST_RECORD_BYTES {
            let cause =
                format!("a record of {record_bytes} bytes claims {captured_bytes} captured bytes, which no record has");
            return Err(Break::new(window.offset(), cause));
        }
        // The padding behind the last frame may be missing.
        let demanded = window.demand(record_bytes as usize);
        if let (Err(shortage), true) = (demanded, window.available().len() < needed_bytes) {
            return Err(Break::short(window, shortage, "a record", needed_bytes as u64));
        }
        let position = window.position() + RECORD_HEADER_BYTES;
        window.consume(record_bytes as usize);
        *span = FrameSpan {
            position,
            captured_bytes: captured_bytes as usize,
            wire_bytes,
            time_ns: i64::from(seconds) * 1_000_000_000 + i64::from(microseconds) * 1_000,
            link_type: self.link_type,
            timed: true,
        };
        Ok(true)
    }
}

/// The tcpdump.org number of a media type (RFC 1761, RFC 3827).
fn link_type_of(media: u32) -> Option<u16> {
    Some(match media {
        // IEEE 802.3, Ethernet
        0 | 4 => 1,
        // IEEE 802.5
        2 => 6,
        // FDDI
        8 => 10,
        // Fibre Channel
        16 => 122,
        // IP over InfiniBand
        26 => 242,
        _ => return None,
    })
}

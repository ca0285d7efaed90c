//! Classic pcap files (draft-ietf-opsawg-pcap): microseconds or nanoseconds, either byte order.

use super::{Break, ByteOrder, FrameSpan, LARGEST_FRAME_BYTES, USUAL_FRAME_BYTES};
use crate::files::window::{ByteWindow, Shortage};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Kuznetzov's variant, whose record headers are eight bytes longer.
const MODIFIED: u32 = 0xa1b2_cd34;

pub(crate) const FILE_HEADER_BYTES: usize = 24;
/// Where in a record header the number of captured bytes stands.
pub(crate) const CAPTURED_BYTES_AT: usize = 8;
const RECORD_HEADER_BYTES: usize = 16;
const MODIFIED_RECORD_HEADER_BYTES: usize = 24;

pub(crate) struct Pcap {
    order: ByteOrder,
    nanoseconds_per_fraction: i64,
    record_header_bytes: usize,
    largest_frame_bytes: u32,
    link_type: u16,
}

impl Pcap {
    pub(crate) fn recognise(magic: [u8; 4]) -> Option<Pcap> {
        let known = |number: u32| match number {
            MICROSECONDS => Some((1_000, RECORD_HEADER_BYTES)),
            NANOSECONDS => Some((1, RECORD_HEADER_BYTES)),
            MODIFIED => Some((1_000, MODIFIED_RECORD_HEADER_BYTES)),
            _ => None,
        };
        let little = known(u32::from_le_bytes(magic)).map(|found| (ByteOrder::Little, found));
        let big = known(u32::from_be_bytes(magic)).map(|found| (ByteOrder::Big, found));
        let (order, (nanoseconds_per_fraction, record_header_bytes)) = little.or(big)?;
        Some(Pcap {
            order,
            nanoseconds_per_fraction,
            record_header_bytes,
            largest_frame_bytes: USUAL_FRAME_BYTES,
            link_type: 0,
        })
    }

    /// Takes the file header, which must be available in full; gives the link-layer type.
    pub(crate) fn read_file_header(&mut self, window: &mut ByteWindow) -> u16 {
        let header = window.available();
        let snap_length = self.order.u32(header, 16);
        // Files state snap lengths of 0 and of 2^32-1, and hold larger frames than they state.
        self.largest_frame_bytes = snap_length.clamp(USUAL_FRAME_BYTES, LARGEST_FRAME_BYTES);
        // The upper half holds the length of the frame check sequence.
        self.link_type = (self.order.u32(header, 20) & 0xffff) as u16;
        window.consume(FILE_HEADER_BYTES);
        self.link_type
    }

    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// Whether times are in nanoseconds instead of microseconds.
    pub(crate) fn has_nanoseconds(&self) -> bool {
        self.nanoseconds_per_fraction == 1
    }

    /// Steps to the next frame and writes where it is; false at a clean end.
    #[inline]
    pub(crate) fn next_frame(&mut self, window: &mut ByteWindow, span: &mut FrameSpan) -> Result<bool, Break> {
        if self.step(window, span) {
            return Ok(true);
        }
        self.next_frame_after_reading(window, span)
    }

    /// The link-layer type of all frames.
    pub(crate) fn link_type(&self) -> u16 {
        self.link_type
    }

    /// Frame and time of the record at the start of `bytes`, and the bytes behind it; `None` where `bytes` do not hold
    /// all of it.
    #[inline(always)]
    pub(crate) fn split_record<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], i64, &'a [u8])> {
        let [seconds, fraction, captured_bytes, _] = self.order.words(bytes.first_chunk::<RECORD_HEADER_BYTES>()?);
        if captured_bytes > self.largest_frame_bytes {
            return None;
        }
        let behind_header = bytes.get(self.record_header_bytes..)?;
        let (frame, behind) = behind_header.split_at_checked(captured_bytes as usize)?;
        Some((frame, self.time_ns(seconds, fraction), behind))
    }

    #[inline(always)]
    fn time_ns(&self, seconds: u32, fraction: u32) -> i64 {
        i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.nanoseconds_per_fraction
    }

    /// Steps to the next frame where all of its record is available, which is nearly always.
    #[inline(always)]
    fn step(&self, window: &mut ByteWindow, span: &mut FrameSpan) -> bool {
        let available = window.available();
        let Some(header) = available.first_chunk::<RECORD_HEADER_BYTES>() else { return false };
        let [seconds, fraction, captured_bytes, wire_bytes] = self.order.words(header);
        let record_bytes = self.record_header_bytes + captured_bytes as usize;
        if captured_bytes > self.largest_frame_bytes || record_bytes > available.len() {
            return false;
        }
        let position = window.position() + self.record_header_bytes;
        window.consume(record_bytes);
        *span = FrameSpan {
            position,
            captured_bytes: captured_bytes as usize,
            wire_bytes,
            time_ns: self.time_ns(seconds, fraction),
            link_type: self.link_type,
            timed: true,
        };
        true
    }

    /// Reads more of the file, then steps to the next frame or says why there is none.
    #[cold]
    #[inline(never)]
    fn next_frame_after_reading(&mut self, window: &mut ByteWindow, span: &mut FrameSpan) -> Result<bool, Break> {
        if let Err(shortage) = window.demand(self.record_header_bytes) {
            return match shortage {
                Shortage::Ended if window.available().is_empty() => Ok(false),
                other => Err(Break::short(window, other, "a record header", self.record_header_bytes as u64)),
            };
        }
        let captured_bytes = self.order.u32(window.available(), CAPTURED_BYTES_AT);
        if captured_bytes > self.largest_frame_bytes {
            return Err(Break::new(
                window.offset(),
                format!("a record claims {captured_bytes} captured bytes, which no frame has"),
            ));
        }
        let record_bytes = self.record_header_bytes + captured_bytes as usize;
        if let Err(shortage) = window.demand(record_bytes) {
            return Err(Break::short(window, shortage, "a record", record_bytes as u64));
        }
        Ok(self.step(window, span))
    }
}

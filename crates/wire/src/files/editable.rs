//! A whole capture in memory whose frames can be replaced: its records with their raw framing, and the file again.
//!
//! A frame may become shorter or be left out; times, lengths on the wire and everything else that reading a frame needs
//! stay as they are. Of a pcapng file nothing else is written: no options but those that say how to read times, no
//! names of hosts, no secrets, no comments, no statistics.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use crate::decoding::decode::{Decoder, Frame};
use crate::error::CaptureError;
use crate::files::container::pcapng::{
    Block, PacketBlock, BYTE_ORDER_MAGIC, OPTION_END, SECTION_HEADER, TIMESTAMP_OPTIONS,
};
use crate::files::container::{pcap, snoop, Break, ByteOrder, Container, FrameSpan};
use crate::files::opening::{decompressed, recognise, FileSource};
use crate::files::window::ByteWindow;
use crate::segment::Segment;
use crate::tally::Tally;

/// How a record stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// The file header of a pcap or snoop file.
    FileHeader,
    PcapRecord,
    SnoopRecord,
    SectionHeader,
    InterfaceDescription,
    PacketBlock(PacketBlock),
}

/// A frame of the capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Where its captured bytes stand in the content.
    bytes: Range<usize>,
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    /// Its length on the wire.
    pub wire_bytes: u32,
    /// Number of the tcpdump.org registry.
    pub link_type: u16,
}

#[derive(Debug)]
struct Record {
    framing: Framing,
    order: ByteOrder,
    bytes: Range<usize>,
    frame: Option<CapturedFrame>,
}

/// A capture up to its end, or up to the first damage.
#[derive(Debug)]
pub struct EditableCapture {
    /// The bytes of all records, one behind the other.
    content: Vec<u8>,
    records: Vec<Record>,
}

impl EditableCapture {
    /// Reads a capture file as [`crate::CaptureReader::open`] does, into memory.
    pub fn open(path: &Path) -> Result<EditableCapture, CaptureError> {
        let FileSource { name, source, .. } = FileSource::open(path)?;
        Self::read(name, source, |_| true)
    }

    /// Reads a capture file, and keeps of its frames those whose TCP segment is `wanted`. Of a datagram that came in
    /// fragments that is the last one alone.
    pub fn open_segments(
        path: &Path,
        mut wanted: impl FnMut(&Segment<'_>) -> bool,
    ) -> Result<EditableCapture, CaptureError> {
        let FileSource { name, source, .. } = FileSource::open(path)?;
        let mut decoder = Decoder::new();
        Self::read(name, source, |frame| decoder.decode(frame).is_ok_and(|segment| wanted(&segment)))
    }

    /// Reads a capture from anything that gives its bytes.
    pub fn from_reader(source: Box<dyn Read + Send>) -> Result<EditableCapture, CaptureError> {
        Self::read("the capture".to_owned(), source, |_| true)
    }

    fn read(
        name: String,
        source: Box<dyn Read + Send>,
        mut wanted: impl FnMut(Frame<'_>) -> bool,
    ) -> Result<EditableCapture, CaptureError> {
        let mut window = ByteWindow::new(decompressed(&name, source)?);
        let mut container = recognise(&name, &mut window, &mut Tally::default())?;
        let mut capture = EditableCapture { content: Vec::new(), records: Vec::new() };
        match &container {
            Container::Pcap(pcap) => {
                capture.add(Framing::FileHeader, pcap.order(), window.latest(pcap::FILE_HEADER_BYTES), None);
            }
            Container::Snoop(snoop) => {
                capture.add(Framing::FileHeader, snoop.order(), window.latest(snoop::FILE_HEADER_BYTES), None);
            }
            Container::Pcapng(pcapng) => capture.add(Framing::SectionHeader, pcapng.order(), &[], None),
        }
        while let Ok(true) = capture.read_record(&mut container, &mut window, &mut wanted) {}
        Ok(capture)
    }

    fn add(&mut self, framing: Framing, order: ByteOrder, raw: &[u8], frame: Option<CapturedFrame>) {
        let start = self.content.len();
        self.content.extend_from_slice(raw);
        self.records.push(Record { framing, order, bytes: start..self.content.len(), frame });
    }

    /// Reads the next record; false at a clean end.
    fn read_record(
        &mut self,
        container: &mut Container,
        window: &mut ByteWindow,
        wanted: &mut impl FnMut(Frame<'_>) -> bool,
    ) -> Result<bool, Break> {
        let before = window.offset();
        let (framing, order, span) = match container {
            Container::Pcap(pcap) => {
                let mut span = FrameSpan::default();
                if !pcap.next_frame(window, &mut span)? {
                    return Ok(false);
                }
                (Framing::PcapRecord, pcap.order(), Some(span))
            }
            Container::Snoop(snoop) => {
                let mut span = FrameSpan::default();
                if !snoop.next_frame(window, &mut span)? {
                    return Ok(false);
                }
                (Framing::SnoopRecord, snoop.order(), Some(span))
            }
            Container::Pcapng(pcapng) => {
                let Some(block) = pcapng.next_block(window)? else { return Ok(false) };
                match block {
                    Block::SectionHeader => {
                        self.add(Framing::SectionHeader, pcapng.order(), &[], None);
                        return Ok(true);
                    }
                    Block::Other => return Ok(true),
                    Block::InterfaceDescription => (Framing::InterfaceDescription, pcapng.order(), None),
                    Block::Packet(packet, span) => (Framing::PacketBlock(packet), pcapng.order(), Some(span)),
                }
            }
        };
        if let Some(span) = &span {
            let FrameSpan { time_ns, link_type, wire_bytes, .. } = *span;
            let bytes = window.slice(span.position, span.captured_bytes);
            if !wanted(Frame { index: 0, time_ns, link_type, bytes, wire_bytes }) {
                return Ok(true);
            }
        }
        let raw = window.latest((window.offset() - before) as usize);
        let frame = span.map(|span| {
            let start = self.content.len() + raw.len() - (window.position() - span.position);
            CapturedFrame {
                bytes: start..start + span.captured_bytes,
                time_ns: span.time_ns,
                wire_bytes: span.wire_bytes,
                link_type: span.link_type,
            }
        });
        self.add(framing, order, raw, frame);
        Ok(true)
    }

    /// The frames in file order.
    pub fn frames(&self) -> impl Iterator<Item = &CapturedFrame> {
        self.records.iter().filter_map(|record| record.frame.as_ref())
    }

    /// The captured bytes of a frame of this capture.
    pub fn bytes(&self, frame: &CapturedFrame) -> &[u8] {
        self.content.get(frame.bytes.clone()).unwrap_or_default()
    }

    /// The file with the frames that it holds.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.with_frames(self.frames().map(|frame| Some(self.bytes(frame))))
    }

    /// The file with `frames` in the places of its own frames, one for one; `None` leaves a frame out. A frame that is
    /// longer than the one that it replaces is cut to that length.
    pub fn with_frames<'a>(&self, frames: impl IntoIterator<Item = Option<&'a [u8]>>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.content.len());
        let mut frames = frames.into_iter();
        for record in &self.records {
            let raw = self.content.get(record.bytes.clone()).unwrap_or_default();
            let Some(frame) = &record.frame else {
                match record.framing {
                    Framing::SectionHeader => write_section_header(&mut out, record.order),
                    Framing::InterfaceDescription => write_interface_description(&mut out, record.order, raw),
                    _ => out.extend_from_slice(raw),
                }
                continue;
            };
            let Some(Some(bytes)) = frames.next() else { continue };
            let bytes = bytes.get(..frame.bytes.len()).unwrap_or(bytes);
            let header = self.content.get(record.bytes.start..frame.bytes.start).unwrap_or_default();
            write_frame(&mut out, record, header, bytes, bytes.len() == frame.bytes.len());
        }
        out
    }
}

/// Writes a frame behind its record header, in which only lengths change.
fn write_frame(out: &mut Vec<u8>, record: &Record, header: &[u8], bytes: &[u8], is_whole: bool) {
    match record.framing {
        Framing::PacketBlock(PacketBlock::Timed) => {
            const CAPTURED_BYTES_AT: usize = 20;
            let mut body = header.get(8..).unwrap_or_default().to_vec();
            put(&mut body, CAPTURED_BYTES_AT - 8, record.order.bytes(bytes.len() as u32));
            body.extend_from_slice(bytes);
            write_block(out, record.order, header, &body);
        }
        Framing::PacketBlock(PacketBlock::Simple) => {
            // The block has no field for the captured length: readers take all bytes, padding included.
            let kept = if is_whole { bytes.len() } else { bytes.len() / 4 * 4 };
            let mut body = header.get(8..).unwrap_or_default().to_vec();
            body.extend_from_slice(bytes.get(..kept).unwrap_or_default());
            write_block(out, record.order, header, &body);
        }
        Framing::SnoopRecord => {
            let mut header = header.to_vec();
            put(&mut header, snoop::CAPTURED_BYTES_AT, record.order.bytes(bytes.len() as u32));
            let padded_bytes = bytes.len().next_multiple_of(4);
            let record_bytes = (header.len() + padded_bytes) as u32;
            put(&mut header, snoop::RECORD_BYTES_AT, record.order.bytes(record_bytes));
            out.extend_from_slice(&header);
            out.extend_from_slice(bytes);
            out.resize(out.len() + padded_bytes - bytes.len(), 0);
        }
        _ => {
            let mut header = header.to_vec();
            put(&mut header, pcap::CAPTURED_BYTES_AT, record.order.bytes(bytes.len() as u32));
            out.extend_from_slice(&header);
            out.extend_from_slice(bytes);
        }
    }
}

/// Writes a section header without options; the section's length is not stated.
fn write_section_header(out: &mut Vec<u8>, order: ByteOrder) {
    const LENGTH_NOT_STATED: [u8; 8] = [0xff; 8];
    let version = match order {
        ByteOrder::Big => [0, 1, 0, 0],
        ByteOrder::Little => [1, 0, 0, 0],
    };
    let body = [&order.bytes(BYTE_ORDER_MAGIC)[..], &version, &LENGTH_NOT_STATED].concat();
    write_block(out, order, &SECTION_HEADER.to_be_bytes(), &body);
}

/// Writes an interface description with no options but those that say how to read times.
fn write_interface_description(out: &mut Vec<u8>, order: ByteOrder, raw: &[u8]) {
    let mut body = raw.get(8..16).unwrap_or_default().to_vec();
    let mut options = raw.get(16..raw.len().saturating_sub(4)).unwrap_or_default();
    while let Some(head) = options.first_chunk::<4>() {
        let (code, length) = (order.u16(head, 0), usize::from(order.u16(head, 2)));
        let Some(option) = options.get(..(4 + length).next_multiple_of(4)) else { break };
        if code == OPTION_END {
            break;
        }
        if TIMESTAMP_OPTIONS.contains(&code) {
            body.extend_from_slice(option);
        }
        options = options.get(option.len()..).unwrap_or_default();
    }
    body.extend_from_slice(&[0; 4]);
    write_block(out, order, raw, &body);
}

/// Writes a block of the type that `raw` begins with.
fn write_block(out: &mut Vec<u8>, order: ByteOrder, raw: &[u8], body: &[u8]) {
    let padded = body.len().next_multiple_of(4);
    let total = order.bytes((padded + 12) as u32);
    out.extend_from_slice(raw.get(..4).unwrap_or_default());
    out.extend_from_slice(&total);
    out.extend_from_slice(body);
    out.resize(out.len() + padded - body.len(), 0);
    out.extend_from_slice(&total);
}

fn put(bytes: &mut [u8], at: usize, word: [u8; 4]) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&word);
    }
}

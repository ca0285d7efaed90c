//! A copy of a capture as pcapng with comments: on frames, on interfaces and on sections.
//!
//! Frames keep bytes, times, lengths and order. Of a pcapng file every block and every option is kept, but for the
//! lengths of sections, which are no longer stated.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use crate::error::{CaptureError, Damage};
use crate::files::container::pcapng::{
    Block, PacketBlock, Pcapng, BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE_DESCRIPTION, OBSOLETE_PACKET,
    OPTION_COMMENT, OPTION_END, OPTION_TIMESTAMP_RESOLUTION, SECTION_HEADER, SIMPLE_PACKET,
};
use crate::files::container::{pcap, Break, ByteOrder, Container, FrameSpan, LARGEST_FRAME_BYTES};
use crate::files::opening::{self, FileSource};
use crate::files::window::ByteWindow;
use crate::tally::Tally;

const OPTION_USER_APPLICATION: u16 = 4;
const OPTION_CHECK_SEQUENCE_LENGTH: u16 = 13;
/// Type, length, and in packet blocks what stands before the bytes: where the options of a block begin.
const SECTION_FIXED_BYTES: usize = 16;
const INTERFACE_FIXED_BYTES: usize = 8;
const PACKET_FIXED_BYTES: usize = 20;
/// Blocks up to this size are held in memory.
const LARGEST_HELD_BYTES: u64 = LARGEST_FRAME_BYTES as u64 + (1 << 20);
const LENGTH_NOT_STATED: [u8; 8] = [0xff; 8];

/// What to write into the copy.
#[derive(Clone, Debug, Default)]
pub struct Comments {
    /// Of every section.
    pub section: String,
    /// Of every interface.
    pub interface: String,
    /// By index of the frame in the capture, from 0.
    pub frames: HashMap<u64, String>,
    /// The program that wrote the copy, of captures that are not pcapng yet.
    pub application: String,
}

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub frames: u64,
    /// Frames to be commented whose block has no room for options (simple packet blocks), by index.
    pub without_room: Vec<u64>,
    /// Where the capture broke off; everything before it was copied.
    pub damage: Option<Damage>,
}

/// Why there is no copy.
#[derive(Debug)]
pub enum CopyError {
    Capture(CaptureError),
    Write(io::Error),
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        CopyError::Write(error)
    }
}

/// Writes the capture at `path` with comments to `out`.
pub fn copy_with_comments(path: &Path, comments: &Comments, out: &mut dyn Write) -> Result<Copied, CopyError> {
    let FileSource { name, source, .. } = FileSource::open(path).map_err(CopyError::Capture)?;
    let content = opening::decompressed(&name, source).map_err(CopyError::Capture)?;
    let mut window = ByteWindow::new(content);
    // A section header is consumed where the container is recognised, so it is looked at before.
    let first_section = held_section(&mut window);
    let container = opening::recognise(&name, &mut window, &mut Tally::default()).map_err(CopyError::Capture)?;
    let mut copy = Copy { comments, window, out, copied: Copied::default() };
    let broken = match container {
        Container::Pcapng(pcapng) => copy.pcapng(pcapng, &first_section.unwrap_or_default())?,
        Container::Pcap(pcap) => {
            let header = copy.window.latest(pcap::FILE_HEADER_BYTES);
            let (snap_length, link_word) = (pcap.order().u32(header, 16), pcap.order().u32(header, 20));
            let has_nanoseconds = pcap.has_nanoseconds();
            copy.write_pcapng_headers(snap_length, link_word, has_nanoseconds)?;
            copy.records(Container::Pcap(pcap), if has_nanoseconds { 1 } else { 1_000 })?
        }
        Container::Snoop(snoop) => {
            copy.write_pcapng_headers(0, snoop.link_type().into(), false)?;
            copy.records(Container::Snoop(snoop), 1_000)?
        }
    };
    copy.copied.damage = broken.map(|Break { byte_offset, cause }| Damage { byte_offset, cause });
    Ok(copy.copied)
}

/// The bytes of the section header that a pcapng file begins with.
fn held_section(window: &mut ByteWindow) -> Option<Vec<u8>> {
    let (kind, total) = Pcapng::new().peek(window)?;
    if kind != SECTION_HEADER || total > LARGEST_HELD_BYTES {
        return None;
    }
    window.demand(total as usize).ok()?;
    window.available().get(..total as usize).map(<[u8]>::to_vec)
}

struct Copy<'a> {
    comments: &'a Comments,
    window: ByteWindow,
    out: &'a mut dyn Write,
    copied: Copied,
}

impl Copy<'_> {
    /// The comment on the next frame, which is counted.
    fn next_comment(&mut self) -> Option<&str> {
        let index = self.copied.frames;
        self.copied.frames += 1;
        self.comments.frames.get(&index).map(String::as_str)
    }

    /// Turns records into enhanced packet blocks whose times count units of so many nanoseconds. Gives what is wrong
    /// where the file ends too early.
    fn records(&mut self, mut container: Container, unit_ns: i64) -> io::Result<Option<Break>> {
        let mut span = FrameSpan::default();
        loop {
            match container.next_frame(&mut self.window, &mut span) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(broken) => return Ok(Some(broken)),
            }
            let units = (span.time_ns / unit_ns) as u64;
            let mut body = Vec::with_capacity(PACKET_FIXED_BYTES + span.captured_bytes + 4);
            for word in [0, (units >> 32) as u32, units as u32, span.captured_bytes as u32, span.wire_bytes] {
                body.extend_from_slice(&ByteOrder::Little.bytes(word));
            }
            body.extend_from_slice(self.window.slice(span.position, span.captured_bytes));
            body.resize(body.len().next_multiple_of(4), 0);
            if let Some(comment) = self.next_comment() {
                push_option(&mut body, ByteOrder::Little, OPTION_COMMENT, comment_bytes(comment));
                body.extend_from_slice(&[0; 4]);
            }
            self.write_block(ByteOrder::Little, ENHANCED_PACKET, &body)?;
        }
    }

    fn write_pcapng_headers(&mut self, snap_length: u32, link_word: u32, has_nanoseconds: bool) -> io::Result<()> {
        const ORDER: ByteOrder = ByteOrder::Little;
        /// Of a pcap file's link word: the bit that says that the upper ones hold the length of the check sequence.
        const CHECK_SEQUENCE_STATED: u32 = 1 << 26;
        let mut section = [&ORDER.bytes(BYTE_ORDER_MAGIC)[..], &version_1(ORDER), &LENGTH_NOT_STATED].concat();
        push_option(&mut section, ORDER, OPTION_COMMENT, comment_bytes(&self.comments.section));
        push_option(&mut section, ORDER, OPTION_USER_APPLICATION, comment_bytes(&self.comments.application));
        section.extend_from_slice(&[0; 4]);
        self.write_block(ORDER, SECTION_HEADER, &section)?;
        let mut interface = [ORDER.bytes(link_word & 0xffff), ORDER.bytes(snap_length)].concat();
        push_option(&mut interface, ORDER, OPTION_COMMENT, comment_bytes(&self.comments.interface));
        push_option(&mut interface, ORDER, OPTION_TIMESTAMP_RESOLUTION, &[if has_nanoseconds { 9 } else { 6 }]);
        if link_word & CHECK_SEQUENCE_STATED != 0 {
            // In units of 16 bits there, in bytes here.
            push_option(&mut interface, ORDER, OPTION_CHECK_SEQUENCE_LENGTH, &[(link_word >> 28) as u8 * 2]);
        }
        interface.extend_from_slice(&[0; 4]);
        self.write_block(ORDER, INTERFACE_DESCRIPTION, &interface)
    }

    /// Copies blocks, of which some get a comment more.
    fn pcapng(&mut self, mut pcapng: Pcapng, first_section: &[u8]) -> io::Result<Option<Break>> {
        self.write_section(pcapng.order(), first_section)?;
        loop {
            let Some((kind, total)) = pcapng.peek(&mut self.window) else {
                // The reader says whether this is the end of the file, or what is wrong.
                return Ok(pcapng.next_block(&mut self.window).err());
            };
            if is_other(kind) {
                if let Some(broken) = self.copy_bytes(total)? {
                    return Ok(Some(broken));
                }
                continue;
            }
            if total <= LARGEST_HELD_BYTES {
                // Held as a whole, so that it is still there behind the reader. What is missing is the reader's to say.
                let _ = self.window.demand(total as usize);
            }
            let block = match pcapng.next_block(&mut self.window) {
                Ok(Some(block)) => block,
                Ok(None) => return Ok(None),
                Err(broken) => return Ok(Some(broken)),
            };
            let order = pcapng.order();
            let raw = self.window.latest(total as usize).to_vec();
            match block {
                Block::SectionHeader => self.write_section(order, &raw)?,
                Block::InterfaceDescription => {
                    let comment = self.comments.interface.clone();
                    self.write_with_comment(order, &raw, INTERFACE_FIXED_BYTES, &comment)?;
                }
                Block::Packet(packet, span) => self.write_packet(order, &raw, packet, &span)?,
                Block::Other => self.out.write_all(&raw)?,
            }
        }
    }

    fn write_packet(&mut self, order: ByteOrder, raw: &[u8], packet: PacketBlock, span: &FrameSpan) -> io::Result<()> {
        let index = self.copied.frames;
        let comment = self.next_comment().map(str::to_owned);
        match (comment, packet) {
            (None, _) => self.out.write_all(raw),
            (Some(_), PacketBlock::Simple) => {
                self.copied.without_room.push(index);
                self.out.write_all(raw)
            }
            (Some(comment), PacketBlock::Timed) => {
                let fixed = PACKET_FIXED_BYTES + span.captured_bytes.next_multiple_of(4);
                self.write_with_comment(order, raw, fixed, &comment)
            }
        }
    }

    fn write_section(&mut self, order: ByteOrder, raw: &[u8]) -> io::Result<()> {
        const LENGTH_AT: usize = 16;
        let mut raw = raw.to_vec();
        if raw.is_empty() {
            // Too large to be held.
            raw =
                [&order.bytes(SECTION_HEADER)[..], &[0; 4], &order.bytes(BYTE_ORDER_MAGIC), &version_1(order)].concat();
            raw.resize(raw.len() + LENGTH_NOT_STATED.len() + 4, 0);
        }
        if let Some(length) = raw.get_mut(LENGTH_AT..LENGTH_AT + LENGTH_NOT_STATED.len()) {
            length.copy_from_slice(&LENGTH_NOT_STATED);
        }
        let comment = self.comments.section.clone();
        self.write_with_comment(order, &raw, SECTION_FIXED_BYTES, &comment)
    }

    /// Writes a block whose options begin behind `fixed` bytes of its body, with a comment behind its own options.
    fn write_with_comment(&mut self, order: ByteOrder, raw: &[u8], fixed: usize, comment: &str) -> io::Result<()> {
        if comment.is_empty() {
            return self.out.write_all(raw);
        }
        let body = raw.get(8..raw.len().saturating_sub(4)).unwrap_or_default();
        let (before, mut options) = body.split_at(fixed.min(body.len()));
        let mut made = before.to_vec();
        while let Some(head) = options.first_chunk::<4>() {
            let (code, length) = (order.u16(head, 0), usize::from(order.u16(head, 2)));
            let Some(option) = options.get(..(4 + length).next_multiple_of(4)) else { break };
            if code == OPTION_END {
                break;
            }
            made.extend_from_slice(option);
            options = options.get(option.len()..).unwrap_or_default();
        }
        push_option(&mut made, order, OPTION_COMMENT, comment_bytes(comment));
        made.extend_from_slice(&[0; 4]);
        self.write_block(order, order.u32(raw, 0), &made)
    }

    /// Writes a block; `body` fills words of four bytes.
    fn write_block(&mut self, order: ByteOrder, kind: u32, body: &[u8]) -> io::Result<()> {
        let total = order.bytes((body.len() + 12) as u32);
        self.out.write_all(&order.bytes(kind))?;
        self.out.write_all(&total)?;
        self.out.write_all(body)?;
        self.out.write_all(&total)
    }

    /// Copies so many bytes as they are; gives what is wrong where there are fewer.
    fn copy_bytes(&mut self, total: u64) -> io::Result<Option<Break>> {
        let mut rest = total;
        while rest > 0 {
            if let Err(shortage) = self.window.demand(1) {
                return Ok(Some(Break::short(&self.window, shortage, "a block", total)));
            }
            let here = self.window.available().len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            self.window.consume(here);
            self.out.write_all(self.window.latest(here))?;
            rest -= here as u64;
        }
        Ok(None)
    }
}

/// Version 1.0.
fn version_1(order: ByteOrder) -> [u8; 4] {
    let [one, two] = order.half_bytes(1);
    [one, two, 0, 0]
}

/// Whether a block holds neither a section, nor an interface, nor a packet.
fn is_other(kind: u32) -> bool {
    ![SECTION_HEADER, INTERFACE_DESCRIPTION, OBSOLETE_PACKET, SIMPLE_PACKET, ENHANCED_PACKET].contains(&kind)
}

/// The text as an option can hold it.
fn comment_bytes(text: &str) -> &[u8] {
    let mut end = text.len().min(usize::from(u16::MAX) & !3);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.as_bytes().get(..end).unwrap_or_default()
}

fn push_option(body: &mut Vec<u8>, order: ByteOrder, code: u16, value: &[u8]) {
    if value.is_empty() {
        return;
    }
    body.extend_from_slice(&order.half_bytes(code));
    body.extend_from_slice(&order.half_bytes(value.len() as u16));
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

//! Writing pcapng (IETF draft-ietf-opsawg-pcapng): one section, one interface, nanoseconds.

use std::io::{self, Write};

use super::sink::ChunkSink;

/// How frames begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// IPv4 or IPv6 by its first half-byte (LINKTYPE_RAW).
    Raw,
    Ipv4,
    Ipv6,
    Ethernet,
}

impl LinkType {
    /// Its number in the registry of link types.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::Raw => 101,
            Self::Ipv4 => 228,
            Self::Ipv6 => 229,
            Self::Ethernet => 1,
        }
    }
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const INTERFACE_STATISTICS: u32 = 5;
const END_OF_OPTIONS: u16 = 0;
const NANOSECONDS: u8 = 9; // if_tsresol: 10^-9

/// Written out whenever so much has gathered: whole pages, and few calls.
const CHUNK_BYTES: usize = 1 << 18;

/// Contents of the interface block.
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: String,
    pub description: String,
    pub link_type: LinkType,
    /// Most captured bytes of a packet; 0 for no limit.
    pub snap_bytes: u32,
}

/// A capture file that is being written. The first failure is stored and ends all writing.
pub struct PcapngWriter {
    sink: ChunkSink,
    /// A chunk, and behind it room for the packet that makes it full.
    buffer: Box<[u8]>,
    /// Less than a chunk.
    used: usize,
}

impl PcapngWriter {
    /// Begins a file with its section and interface; `longest_packet_bytes` bounds what one packet block takes while it
    /// is written.
    #[must_use]
    pub fn new(sink: Box<dyn Write + Send>, interface: &Interface, longest_packet_bytes: usize) -> Self {
        let room = CHUNK_BYTES + longest_packet_bytes;
        let sink = ChunkSink::new(sink, room);
        let mut writer = Self { sink, buffer: vec![0; room].into_boxed_slice(), used: 0 };
        let mut section = BYTE_ORDER_MAGIC.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]); // version 1.0
        section.extend(u64::MAX.to_le_bytes()); // length of the section: not known
        option(&mut section, 4, format!("pepscope {}", env!("CARGO_PKG_VERSION")).as_bytes());
        option(&mut section, END_OF_OPTIONS, &[]);
        writer.block(SECTION_HEADER, &section);
        let mut description = interface.link_type.number().to_le_bytes().to_vec();
        description.extend([0, 0]);
        description.extend(interface.snap_bytes.to_le_bytes());
        option(&mut description, 2, interface.name.as_bytes());
        option(&mut description, 3, interface.description.as_bytes());
        option(&mut description, 9, &[NANOSECONDS]);
        option(&mut description, END_OF_OPTIONS, &[]);
        writer.block(INTERFACE_DESCRIPTION, &description);
        writer
    }

    /// Room for a packet block; [`Self::take`] gets how much of it was used.
    #[inline(always)]
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.used..]
    }

    /// Takes what was written at the beginning of the room.
    #[inline(always)]
    pub fn take(&mut self, bytes: usize) {
        self.used = self.used.wrapping_add(bytes);
        if self.used >= CHUNK_BYTES {
            self.flush();
        }
    }

    /// Whether something could not be written.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.sink.has_failed()
    }

    /// Closes the file with its statistics (as dumpcap does): packets that the interface saw, and that it missed.
    ///
    /// # Errors
    /// The first failure to write, also one of long ago.
    pub fn finish(mut self, time_ns: u64, received: u64, missed: u64) -> io::Result<()> {
        let mut statistics = vec![0; 4];
        statistics.extend(((time_ns >> 32) as u32).to_le_bytes());
        statistics.extend((time_ns as u32).to_le_bytes());
        option(&mut statistics, 4, &received.to_le_bytes());
        option(&mut statistics, 5, &missed.to_le_bytes());
        option(&mut statistics, END_OF_OPTIONS, &[]);
        self.block(INTERFACE_STATISTICS, &statistics);
        self.flush();
        self.sink.finish()
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let total = ((body.len() + 12) as u32).to_le_bytes();
        for part in [&kind.to_le_bytes()[..], &total, body, &total] {
            // Pieces for which there always is room.
            for piece in part.chunks(PACKET_HEADER_BYTES) {
                self.room()[..piece.len()].copy_from_slice(piece);
                self.take(piece.len());
            }
        }
    }

    /// Hands over the chunk, or what there is of it; what stands behind it begins the next one.
    #[cold]
    fn flush(&mut self) {
        let chunk = self.used.min(CHUNK_BYTES);
        self.sink.write(&mut self.buffer, chunk, self.used);
        self.used -= chunk;
    }
}

/// Bytes of a packet block before those captured.
pub(super) const PACKET_HEADER_BYTES: usize = 28;
/// Behind them at most: padding, and the length again.
pub(super) const PACKET_TRAILER_BYTES: usize = 8;

/// The offset of the time in a packet block: the upper half, then the lower half.
pub(super) const PACKET_TIME_AT: usize = 12;

/// Writes the header of a packet block at time 0; the length of the block.
pub(super) fn begin_packet(block: &mut [u8], captured: usize, original: usize) -> usize {
    let total = (PACKET_HEADER_BYTES + captured).next_multiple_of(4) + 4;
    let words = [ENHANCED_PACKET, total as u32, 0, 0, 0, captured as u32, original as u32];
    for (place, word) in block.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    total
}

/// What stands behind the captured bytes of a packet block of `total` bytes: padding and its length, and zeros perhaps,
/// which do not belong to it.
pub(super) fn packet_trailer(captured: usize, total: usize) -> [u8; PACKET_TRAILER_BYTES] {
    let padding = captured.next_multiple_of(4) - captured;
    ((total as u64) << (8 * padding)).to_le_bytes()
}

/// Appends an option, padded to whole words; one that is too long for its length field is cut.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend(code.to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(&value[..usize::from(length)]);
    body.resize(body.len().div_ceil(4) * 4, 0);
}

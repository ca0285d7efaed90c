//! Writing pcapng (IETF draft-ietf-opsawg-pcapng): one section, one interface, nanoseconds.

use std::io::{self, Write};

use super::background::BackgroundSink;

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

/// Written out whenever so much has gathered.
const BUFFER_BYTES: usize = 1 << 18;
/// Room that one packet block may take on top of the bytes captured.
const BLOCK_OVERHEAD_BYTES: usize = 36;

/// What the interface block says.
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: String,
    pub description: String,
    pub link_type: LinkType,
    /// Most bytes kept of a packet; 0 for no limit.
    pub snap_bytes: u32,
}

/// A capture file that is being written. The first failure is kept and ends all writing.
pub struct PcapngWriter {
    sink: BackgroundSink,
    buffer: Box<[u8]>,
    used: usize,
    packets: u64,
}

impl PcapngWriter {
    /// Begins a file with its section and interface; `largest_packet_bytes` bounds what is captured of one packet.
    #[must_use]
    pub fn new(sink: Box<dyn Write + Send>, interface: &Interface, largest_packet_bytes: usize) -> Self {
        let room = BUFFER_BYTES.max(2 * (largest_packet_bytes + BLOCK_OVERHEAD_BYTES));
        let sink = BackgroundSink::new(sink, room);
        let mut writer = Self { sink, buffer: vec![0; room].into_boxed_slice(), used: 0, packets: 0 };
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

    /// Adds a packet: `write` fills in the captured bytes, all of them.
    #[inline]
    pub fn packet(&mut self, time_ns: u64, captured: usize, original: usize, write: impl FnOnce(&mut [u8])) {
        let padded = captured.div_ceil(4) * 4;
        let total = padded + 32;
        if self.buffer.len() - self.used < total {
            self.flush();
        }
        let start = self.used;
        let Some(block) = self.buffer.get_mut(start..start + total) else { return };
        let Some((head, rest)) = block.split_first_chunk_mut::<28>() else { return };
        let words = [
            ENHANCED_PACKET,
            total as u32,
            0, // the interface
            (time_ns >> 32) as u32,
            time_ns as u32,
            captured as u32,
            original as u32,
        ];
        for (place, word) in head.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        write(&mut rest[..captured]);
        if padded > captured {
            rest[captured..padded].fill(0);
        }
        rest[padded..].copy_from_slice(&(total as u32).to_le_bytes());
        self.used += total;
        self.packets += 1;
    }

    /// Packets written so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
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
            if self.buffer.len() - self.used < part.len() {
                self.flush();
            }
            if let Some(room) = self.buffer.get_mut(self.used..self.used + part.len()) {
                room.copy_from_slice(part);
                self.used += part.len();
            }
        }
    }

    #[cold]
    fn flush(&mut self) {
        if let Some(empty) = self.sink.buffer() {
            self.sink.write(std::mem::replace(&mut self.buffer, empty), self.used);
        }
        self.used = 0;
    }
}

/// Appends an option, padded to whole words; one that is too long for its length field is cut.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend(code.to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(&value[..usize::from(length)]);
    body.resize(body.len().div_ceil(4) * 4, 0);
}

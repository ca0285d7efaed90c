//! pcapng files (draft-ietf-opsawg-pcapng): sections of either byte order, interfaces, packet blocks.

use super::{Break, ByteOrder, FrameSpan, LARGEST_FRAME_BYTES};
use crate::files::container::timestamps::TimestampUnit;
use crate::files::window::{ByteWindow, Shortage};

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
pub(crate) const OBSOLETE_PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const ENHANCED_PACKET: u32 = 6;

pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
pub(crate) const OPTION_END: u16 = 0;
pub(crate) const OPTION_COMMENT: u16 = 1;
pub(crate) const OPTION_TIMESTAMP_RESOLUTION: u16 = 9;
const OPTION_TIMESTAMP_OFFSET: u16 = 14;
/// The options of an interface without which its time stamps cannot be read.
pub(crate) const TIMESTAMP_OPTIONS: [u16; 2] = [OPTION_TIMESTAMP_RESOLUTION, OPTION_TIMESTAMP_OFFSET];

/// Type, length and the length repeated at the end.
const BLOCK_FRAME_BYTES: u64 = 12;
/// Largest block that is held in memory: a frame and its options.
const LARGEST_HELD_BLOCK_BYTES: u64 = LARGEST_FRAME_BYTES as u64 + (1 << 20);
/// More interfaces than any section describes.
const MOST_INTERFACES: usize = 1 << 16;

/// A block that was stepped over.
pub(crate) enum Block {
    SectionHeader,
    InterfaceDescription,
    Packet(PacketBlock, FrameSpan),
    Other,
}

/// The two shapes of packet blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketBlock {
    /// Enhanced or obsolete.
    Timed,
    Simple,
}

struct Interface {
    link_type: u16,
    snap_length: u32,
    unit: TimestampUnit,
}

pub(crate) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// Simple packet blocks have no time: they get the one before them.
    last_time_ns: i64,
}

impl Pcapng {
    pub(crate) fn new() -> Self {
        Pcapng { order: ByteOrder::Little, interfaces: Vec::new(), last_time_ns: 0 }
    }

    /// Not inlined, so that the loop over the frames of pcap files stays small.
    #[inline(never)]
    pub(crate) fn next_frame(&mut self, window: &mut ByteWindow) -> Result<Option<FrameSpan>, Break> {
        while let Some(block) = self.next_block(window)? {
            if let Block::Packet(_, span) = block {
                return Ok(Some(span));
            }
        }
        Ok(None)
    }

    /// Steps over the next block; `None` at a clean end.
    #[inline]
    pub(crate) fn next_block(&mut self, window: &mut ByteWindow) -> Result<Option<Block>, Break> {
        if let Err(shortage) = window.demand(8) {
            return match shortage {
                Shortage::Ended if window.available().is_empty() => Ok(None),
                other => Err(Break::short(window, other, "a block header", 8)),
            };
        }
        let kind = self.order.u32(window.available(), 0);
        if kind == SECTION_HEADER {
            self.begin_section(window)?;
            return Ok(Some(Block::SectionHeader));
        }
        let stated = self.order.u32(window.available(), 4);
        let total = checked_block_bytes(stated, window.offset())?;
        match kind {
            INTERFACE_DESCRIPTION | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET => {}
            _ => {
                skip_block(window, total)?;
                return Ok(Some(Block::Other));
            }
        }
        if total > LARGEST_HELD_BLOCK_BYTES {
            return Err(Break::new(window.offset(), format!("a block claims {total} bytes, which no packet has")));
        }
        let total = total as usize;
        if let Err(shortage) = window.demand(total) {
            return Err(Break::short(window, shortage, "a block", total as u64));
        }
        let block = &window.available()[..total];
        let repeated = self.order.u32(block, total - 4);
        if repeated != stated {
            return Err(Break::new(
                window.offset(),
                format!("a block gives its length as {stated} bytes at its start and {repeated} at its end"),
            ));
        }
        let body = &block[8..total - 4];
        let packet = match kind {
            INTERFACE_DESCRIPTION => self.describe_interface(body).map(|()| None),
            SIMPLE_PACKET => self.simple_packet(body).map(|span| Some((PacketBlock::Simple, span))),
            ENHANCED_PACKET => {
                let interface = self.order.u32(body, 0) as usize;
                self.timed_packet(body, interface).map(|span| Some((PacketBlock::Timed, span)))
            }
            _ => {
                let interface = usize::from(self.order.u16(body, 0));
                self.timed_packet(body, interface).map(|span| Some((PacketBlock::Timed, span)))
            }
        };
        let packet = packet.map_err(|cause| Break::new(window.offset(), cause))?;
        let body_position = window.position() + 8;
        window.consume(total);
        let Some((block, mut span)) = packet else { return Ok(Some(Block::InterfaceDescription)) };
        span.position += body_position;
        self.last_time_ns = span.time_ns;
        Ok(Some(Block::Packet(block, span)))
    }

    /// Type and length in the file of the block that comes next, in the byte order of the current section; `None` where
    /// the file ends.
    pub(crate) fn peek(&self, window: &mut ByteWindow) -> Option<(u32, u64)> {
        window.demand(8).ok()?;
        let (header, mut order) = (window.available(), self.order);
        let kind = order.u32(header, 0);
        if kind == SECTION_HEADER {
            window.demand(12).ok()?;
            order = section_order(window.available()).ok()?;
        }
        Some((kind, checked_block_bytes(order.u32(window.available(), 4), window.offset()).ok()?))
    }

    /// Byte order of the current section.
    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// Reads the byte order of a section and drops the interfaces of the one before.
    pub(crate) fn begin_section(&mut self, window: &mut ByteWindow) -> Result<(), Break> {
        if let Err(shortage) = window.demand(12) {
            return Err(Break::short(window, shortage, "a section header", 12));
        }
        let header = window.available();
        self.order = section_order(header).map_err(|other| {
            Break::new(window.offset(), format!("a section header has {other:08x} where its byte order should stand"))
        })?;
        let total = checked_block_bytes(self.order.u32(header, 4), window.offset())?;
        self.interfaces.clear();
        skip_block(window, total)
    }

    fn describe_interface(&mut self, body: &[u8]) -> Result<(), String> {
        if body.len() < 8 {
            return Err(format!("an interface description has {} bytes instead of at least 8", body.len()));
        }
        if self.interfaces.len() >= MOST_INTERFACES {
            return Err(format!("a section describes more than {MOST_INTERFACES} interfaces"));
        }
        let mut unit = TimestampUnit::default();
        let mut options = body.get(8..).unwrap_or_default();
        while options.len() >= 4 {
            let code = self.order.u16(options, 0);
            let length = usize::from(self.order.u16(options, 2));
            let Some(value) = options.get(4..4 + length) else { break };
            match (code, length) {
                (OPTION_END, _) => break,
                (OPTION_TIMESTAMP_RESOLUTION, 1) => unit.set_resolution(value[0]),
                (OPTION_TIMESTAMP_OFFSET, 8) => {
                    let (low, high) = match self.order {
                        ByteOrder::Big => (self.order.u32(value, 4), self.order.u32(value, 0)),
                        ByteOrder::Little => (self.order.u32(value, 0), self.order.u32(value, 4)),
                    };
                    unit.set_offset_s(((u64::from(high) << 32) | u64::from(low)) as i64);
                }
                _ => {}
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(Interface {
            link_type: self.order.u16(body, 0),
            snap_length: self.order.u32(body, 4),
            unit,
        });
        Ok(())
    }

    /// An enhanced or an obsolete packet block: from the time stamp on they look alike.
    fn timed_packet(&mut self, body: &[u8], interface: usize) -> Result<FrameSpan, String> {
        const HEADER_BYTES: usize = 20;
        if body.len() < HEADER_BYTES {
            return Err(format!("a packet block has {} bytes instead of at least {HEADER_BYTES}", body.len()));
        }
        let Some(description) = self.interfaces.get(interface) else {
            return Err(format!("a packet names interface {interface}, which was not described"));
        };
        let units = (u64::from(self.order.u32(body, 4)) << 32) | u64::from(self.order.u32(body, 8));
        let captured_bytes = self.order.u32(body, 12) as usize;
        let room = body.len() - HEADER_BYTES;
        if captured_bytes > room || captured_bytes > LARGEST_FRAME_BYTES as usize {
            return Err(format!("a packet claims {captured_bytes} captured bytes in a block with room for {room}"));
        }
        Ok(FrameSpan {
            position: HEADER_BYTES,
            captured_bytes,
            wire_bytes: self.order.u32(body, 16),
            time_ns: description.unit.nanoseconds(units),
            link_type: description.link_type,
            timed: true,
        })
    }

    fn simple_packet(&mut self, body: &[u8]) -> Result<FrameSpan, String> {
        if body.len() < 4 {
            return Err(format!("a simple packet block has {} bytes instead of at least 4", body.len()));
        }
        let Some(description) = self.interfaces.first() else {
            return Err("a simple packet comes before any interface was described".to_owned());
        };
        let wire_bytes = self.order.u32(body, 0);
        let snap_length = if description.snap_length == 0 { u32::MAX } else { description.snap_length };
        let captured_bytes = (wire_bytes.min(snap_length) as usize).min(body.len() - 4);
        Ok(FrameSpan {
            position: 4,
            captured_bytes,
            wire_bytes,
            time_ns: self.last_time_ns,
            link_type: description.link_type,
            timed: false,
        })
    }
}

/// The byte order of a section with this header, or what stands where it should be stated.
fn section_order(header: &[u8]) -> Result<ByteOrder, u32> {
    match ByteOrder::Little.u32(header, 8) {
        BYTE_ORDER_MAGIC => Ok(ByteOrder::Little),
        swapped if swapped.swap_bytes() == BYTE_ORDER_MAGIC => Ok(ByteOrder::Big),
        other => Err(other),
    }
}

/// The room that a block takes in the file, or why it cannot be.
fn checked_block_bytes(stated: u32, byte_offset: u64) -> Result<u64, Break> {
    let total = u64::from(stated).next_multiple_of(4);
    if total < BLOCK_FRAME_BYTES {
        return Err(Break::new(
            byte_offset,
            format!("a block claims to be {stated} bytes long, less than its own frame"),
        ));
    }
    Ok(total)
}

fn skip_block(window: &mut ByteWindow, total: u64) -> Result<(), Break> {
    let byte_offset = window.offset();
    window.skip(total).map_err(|shortage| {
        let mut broken = Break::short(window, shortage, "a block", total);
        broken.byte_offset = byte_offset;
        broken
    })
}

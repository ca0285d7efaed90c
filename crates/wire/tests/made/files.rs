//! Capture files of both kinds, in both byte orders.

use std::io::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Big,
    Little,
}

impl Order {
    pub fn u16(self, value: u16) -> [u8; 2] {
        match self {
            Order::Big => value.to_be_bytes(),
            Order::Little => value.to_le_bytes(),
        }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Order::Big => value.to_be_bytes(),
            Order::Little => value.to_le_bytes(),
        }
    }

    pub fn u64(self, value: u64) -> [u8; 8] {
        match self {
            Order::Big => value.to_be_bytes(),
            Order::Little => value.to_le_bytes(),
        }
    }
}

pub const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub const NANOSECONDS: u32 = 0xa1b2_3c4d;
pub const MODIFIED: u32 = 0xa1b2_cd34;

/// One record: time stamp as seconds and fraction, captured bytes, length on the wire.
pub type Record<'a> = (u32, u32, &'a [u8], u32);

pub fn pcap(order: Order, magic: u32, snap_length: u32, link_type: u32, records: &[Record<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(order.u32(magic));
    out.extend(order.u16(2));
    out.extend(order.u16(4));
    out.extend([0; 8]);
    out.extend(order.u32(snap_length));
    out.extend(order.u32(link_type));
    for (seconds, fraction, captured, wire) in records {
        out.extend(order.u32(*seconds));
        out.extend(order.u32(*fraction));
        out.extend(order.u32(captured.len() as u32));
        out.extend(order.u32(*wire));
        if magic == MODIFIED {
            out.extend([0; 8]);
        }
        out.extend(*captured);
    }
    out
}

/// A pcap file of one frame.
pub fn pcap_of(link_type: u16, frame: &[u8]) -> Vec<u8> {
    pcap(Order::Little, NANOSECONDS, 262_144, u32::from(link_type), &[(1, 2, frame, frame.len() as u32)])
}

pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let total = order.u32((12 + body.len() + padding) as u32);
    [&order.u32(kind)[..], &total, body, &[0; 3][..padding], &total].concat()
}

pub fn section(order: Order) -> Vec<u8> {
    let body = [&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &[0xff; 8]].concat();
    block(order, 0x0a0d_0d0a, &body)
}

pub fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let padding = value.len().next_multiple_of(4) - value.len();
    [&order.u16(code)[..], &order.u16(value.len() as u16), value, &[0; 3][..padding]].concat()
}

/// An interface description with time stamp resolution and offset where given.
pub fn interface(order: Order, link_type: u16, resolution: Option<u8>, offset_s: Option<i64>) -> Vec<u8> {
    let mut body = [&order.u16(link_type)[..], &[0, 0], &order.u32(0)].concat();
    body.extend(option(order, 2, b"eth0"));
    if let Some(resolution) = resolution {
        body.extend(option(order, 9, &[resolution]));
    }
    if let Some(offset_s) = offset_s {
        body.extend(option(order, 14, &order.u64(offset_s as u64)));
    }
    body.extend(option(order, 0, &[]));
    block(order, 1, &body)
}

pub fn enhanced_packet(order: Order, interface: u32, units: u64, frame: &[u8], wire: u32) -> Vec<u8> {
    let mut body = Vec::new();
    for word in [interface, (units >> 32) as u32, units as u32, frame.len() as u32, wire] {
        body.extend(order.u32(word));
    }
    body.extend(padded(frame));
    body.extend(option(order, 1, b"a comment"));
    body.extend(option(order, 0, &[]));
    block(order, 6, &body)
}

pub fn obsolete_packet(order: Order, interface: u16, units: u64, frame: &[u8]) -> Vec<u8> {
    let mut body = [order.u16(interface), order.u16(0)].concat();
    for word in [(units >> 32) as u32, units as u32, frame.len() as u32, frame.len() as u32] {
        body.extend(order.u32(word));
    }
    body.extend(padded(frame));
    block(order, 2, &body)
}

pub fn simple_packet(order: Order, frame: &[u8], wire: u32) -> Vec<u8> {
    block(order, 3, &[&order.u32(wire)[..], &padded(frame)].concat())
}

fn padded(frame: &[u8]) -> Vec<u8> {
    let mut out = frame.to_vec();
    out.resize(frame.len().next_multiple_of(4), 0);
    out
}

/// A capture of Solaris' snoop; times are seconds and microseconds.
pub fn snoop(media: u32, records: &[Record<'_>]) -> Vec<u8> {
    let mut out = b"snoop\0\0\0".to_vec();
    out.extend(2_u32.to_be_bytes());
    out.extend(media.to_be_bytes());
    for (seconds, microseconds, captured, wire) in records {
        let padded = captured.len().next_multiple_of(4);
        let header = [*wire, captured.len() as u32, 24 + padded as u32, 0, *seconds, *microseconds];
        out.extend(header.map(u32::to_be_bytes).concat());
        out.extend(*captured);
        out.resize(out.len() + padded - captured.len(), 0);
    }
    out
}

pub fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn lz4(bytes: &[u8]) -> Vec<u8> {
    // Blocks are decoded whole or not at all.
    let settings = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(settings, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// With a checksum, as the `zstd` command writes it.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

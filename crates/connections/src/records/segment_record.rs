//! A segment as bytes in a temporary file: everything that the analysis uses, and no more of the payload.

use crate::records::payload_sample::PIECE_BYTES;
use pepscope_wire::segment::{flag, Segment, TcpOptions, Tunnel, TunnelKind};

/// No record is longer: fixed part, four SACK blocks, 255 bytes of SYN options, payload.
pub(crate) const SCRATCH_BYTES: usize = 1024;

const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// Bits of a record's first byte.
mod has {
    pub const IPV4: u8 = 0x01;
    pub const TIMESTAMPS: u8 = 0x02;
    pub const MAXIMUM_SEGMENT_SIZE: u8 = 0x04;
    pub const WINDOW_SCALE: u8 = 0x08;
    pub const SACK_PERMITTED: u8 = 0x10;
    pub const TRUNCATED_HEADER: u8 = 0x20;
    pub const TUNNEL: u8 = 0x40;
    pub const TRUNCATED_OPTIONS: u8 = 0x80;
}

pub(crate) fn encode_segment(segment: &Segment<'_>, out: &mut Vec<u8>) {
    let options = &segment.options;
    let both_mapped = segment.source.starts_with(&MAPPED) && segment.destination.starts_with(&MAPPED);
    let tunnelled = segment.tunnel.kind != TunnelKind::None || segment.tunnel.identifier != 0;
    let present = [
        (both_mapped, has::IPV4),
        (options.timestamps.is_some(), has::TIMESTAMPS),
        (options.maximum_segment_size.is_some(), has::MAXIMUM_SEGMENT_SIZE),
        (options.window_scale.is_some(), has::WINDOW_SCALE),
        (options.sack_permitted, has::SACK_PERMITTED),
        (segment.header_truncated, has::TRUNCATED_HEADER),
        (tunnelled, has::TUNNEL),
        (segment.options_truncated, has::TRUNCATED_OPTIONS),
    ];
    out.push(present.iter().filter(|(is, _)| *is).fold(0, |bits, (_, bit)| bits | bit));
    let from = if both_mapped { MAPPED.len() } else { 0 };
    out.extend_from_slice(&segment.source[from..]);
    out.extend_from_slice(&segment.destination[from..]);
    out.extend_from_slice(&segment.frame_index.to_le_bytes());
    out.extend_from_slice(&segment.time_ns.to_le_bytes());
    out.extend_from_slice(&segment.source_port.to_le_bytes());
    out.extend_from_slice(&segment.destination_port.to_le_bytes());
    out.extend_from_slice(&[segment.ip_version, segment.ttl, segment.traffic_class]);
    out.extend_from_slice(&segment.ip_id.to_le_bytes());
    out.extend_from_slice(&segment.flags.to_le_bytes());
    out.extend_from_slice(&segment.sequence.to_le_bytes());
    out.extend_from_slice(&segment.acknowledgement.to_le_bytes());
    out.extend_from_slice(&segment.window.to_le_bytes());
    out.extend_from_slice(&segment.payload_length.to_le_bytes());
    if let Some((tsval, tsecr)) = options.timestamps {
        out.extend_from_slice(&tsval.to_le_bytes());
        out.extend_from_slice(&tsecr.to_le_bytes());
    }
    if let Some(size) = options.maximum_segment_size {
        out.extend_from_slice(&size.to_le_bytes());
    }
    out.extend(options.window_scale);
    if tunnelled {
        out.push(segment.tunnel.kind as u8);
        out.extend_from_slice(&segment.tunnel.identifier.to_le_bytes());
    }
    let sack_count = options.sack_count.min(options.sack_blocks.len() as u8);
    out.push(sack_count);
    for (left, right) in options.sack_blocks.iter().take(usize::from(sack_count)) {
        out.extend_from_slice(&left.to_le_bytes());
        out.extend_from_slice(&right.to_le_bytes());
    }
    // Only a SYN's options are kept as bytes.
    let raw = if segment.flags & flag::SYN != 0 { segment.options_raw } else { &[] };
    let raw = &raw[..raw.len().min(usize::from(u8::MAX))];
    out.push(raw.len() as u8);
    out.extend_from_slice(raw);
    let payload = &segment.payload[..segment.payload.len().min(PIECE_BYTES)];
    out.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    out.extend_from_slice(payload);
}

/// The segment at the beginning of `bytes`, and the length of its record.
pub(crate) fn decode_segment(bytes: &[u8]) -> Option<(Segment<'_>, usize)> {
    let mut rest = Rest { bytes };
    let [present] = rest.array()?;
    let (source, destination) = if present & has::IPV4 != 0 {
        (mapped(rest.array()?), mapped(rest.array()?))
    } else {
        (rest.array()?, rest.array()?)
    };
    let frame_index = u64::from_le_bytes(rest.array()?);
    let time_ns = i64::from_le_bytes(rest.array()?);
    let source_port = u16::from_le_bytes(rest.array()?);
    let destination_port = u16::from_le_bytes(rest.array()?);
    let [ip_version, ttl, traffic_class] = rest.array()?;
    let ip_id = u16::from_le_bytes(rest.array()?);
    let flags = u16::from_le_bytes(rest.array()?);
    let sequence = u32::from_le_bytes(rest.array()?);
    let acknowledgement = u32::from_le_bytes(rest.array()?);
    let window = u16::from_le_bytes(rest.array()?);
    let payload_length = u32::from_le_bytes(rest.array()?);
    let mut options = TcpOptions { sack_permitted: present & has::SACK_PERMITTED != 0, ..TcpOptions::default() };
    if present & has::TIMESTAMPS != 0 {
        options.timestamps = Some((u32::from_le_bytes(rest.array()?), u32::from_le_bytes(rest.array()?)));
    }
    if present & has::MAXIMUM_SEGMENT_SIZE != 0 {
        options.maximum_segment_size = Some(u16::from_le_bytes(rest.array()?));
    }
    if present & has::WINDOW_SCALE != 0 {
        let [shift] = rest.array()?;
        options.window_scale = Some(shift);
    }
    let mut tunnel = Tunnel { kind: TunnelKind::None, identifier: 0 };
    if present & has::TUNNEL != 0 {
        let [code] = rest.array()?;
        tunnel = Tunnel { kind: tunnel_of(code)?, identifier: u32::from_le_bytes(rest.array()?) };
    }
    let [sack_count] = rest.array()?;
    options.sack_count = sack_count;
    for index in 0..usize::from(sack_count) {
        let block = options.sack_blocks.get_mut(index)?;
        *block = (u32::from_le_bytes(rest.array()?), u32::from_le_bytes(rest.array()?));
    }
    let [raw_length] = rest.array()?;
    let options_raw = rest.take(usize::from(raw_length))?;
    let length = u16::from_le_bytes(rest.array()?);
    let payload = rest.take(usize::from(length))?;
    let segment = Segment {
        frame_index,
        time_ns,
        ip_version,
        source,
        destination,
        source_port,
        destination_port,
        ttl,
        ip_id,
        traffic_class,
        flags,
        sequence,
        acknowledgement,
        window,
        payload_length,
        payload,
        options_raw,
        options,
        header_truncated: present & has::TRUNCATED_HEADER != 0,
        options_truncated: present & has::TRUNCATED_OPTIONS != 0,
        tunnel,
    };
    Some((segment, bytes.len() - rest.bytes.len()))
}

struct Rest<'a> {
    bytes: &'a [u8],
}

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = tail;
        Some(*head)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(length)?;
        self.bytes = tail;
        Some(head)
    }
}

fn mapped(last: [u8; 4]) -> [u8; 16] {
    let mut address = [0; 16];
    address[..12].copy_from_slice(&MAPPED);
    address[12..].copy_from_slice(&last);
    address
}

fn tunnel_of(code: u8) -> Option<TunnelKind> {
    Some(match code {
        0 => TunnelKind::None,
        1 => TunnelKind::GtpU,
        2 => TunnelKind::Gre,
        3 => TunnelKind::IpInIp,
        4 => TunnelKind::Vxlan,
        5 => TunnelKind::Udp,
        6 => TunnelKind::Geneve,
        7 => TunnelKind::L2tp,
        _ => return None,
    })
}

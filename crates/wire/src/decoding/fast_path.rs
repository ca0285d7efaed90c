//! The fast path for nearly every frame: TCP in IP without options or fragments, right behind the link header.

use crate::decoding::position::SegmentPosition;
use crate::headers::layer::{mapped_ipv4, IpHeader, WalkState};
use crate::headers::link::LinkType;
use crate::headers::tcp;

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
pub(crate) const TCP: u8 = crate::headers::ip::protocol::TCP;

/// Where the IP header of such a frame begins.
#[inline(always)]
pub(crate) fn ip_start(link: LinkType, frame: &[u8]) -> Option<usize> {
    Some(match link {
        LinkType::Raw => 0,
        LinkType::Ethernet => match frame.get(12..14)? {
            [0x08, 0x00] | [0x86, 0xdd] => 14,
            _ => return None,
        },
        LinkType::LinuxSll => match frame.get(14..16)? {
            [0x08, 0x00] | [0x86, 0xdd] => 16,
            _ => return None,
        },
        LinkType::LinuxSll2 => match frame.get(0..2)? {
            [0x08, 0x00] | [0x86, 0xdd] => 20,
            _ => return None,
        },
        _ => return None,
    })
}

/// Finds the TCP header of such a frame; `None` for any other frame, which then takes the slow path.
#[inline(always)]
pub(crate) fn locate(link: LinkType, frame: &[u8]) -> Option<SegmentPosition> {
    let ip_start = ip_start(link, frame)?;
    let packet = frame.get(ip_start..)?;
    match packet.first()? {
        0x45 => version_4(packet, ip_start),
        0x60..=0x6f => version_6(packet, ip_start),
        _ => None,
    }
}

#[inline(always)]
fn version_4(packet: &[u8], ip_start: usize) -> Option<SegmentPosition> {
    let header = packet.first_chunk::<{ IPV4_HEADER_BYTES + tcp::NEEDED_BYTES }>()?;
    let total_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragmented = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let tcp_header_bytes = usize::from(header[IPV4_HEADER_BYTES + 12] >> 4) * 4;
    if header[9] != TCP
        || fragmented
        || tcp_header_bytes < tcp::HEADER_BYTES
        || total_bytes < IPV4_HEADER_BYTES + tcp_header_bytes
    {
        return None;
    }
    Some(SegmentPosition {
        tcp_start: ip_start + IPV4_HEADER_BYTES,
        captured_end: ip_start + packet.len().min(total_bytes),
        wire_bytes: total_bytes - IPV4_HEADER_BYTES,
        assembled: false,
        ip: IpHeader {
            version: 4,
            source: mapped_ipv4([header[12], header[13], header[14], header[15]]),
            destination: mapped_ipv4([header[16], header[17], header[18], header[19]]),
            ttl: header[8],
            id: u16::from_be_bytes([header[4], header[5]]),
            traffic_class: header[1],
        },
        tunnel: WalkState::start().tunnel,
    })
}

#[inline(always)]
fn version_6(packet: &[u8], ip_start: usize) -> Option<SegmentPosition> {
    let header = packet.first_chunk::<{ IPV6_HEADER_BYTES + tcp::NEEDED_BYTES }>()?;
    let payload_bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let tcp_header_bytes = usize::from(header[IPV6_HEADER_BYTES + 12] >> 4) * 4;
    if header[6] != TCP || tcp_header_bytes < tcp::HEADER_BYTES || payload_bytes < tcp_header_bytes {
        return None;
    }
    Some(SegmentPosition {
        tcp_start: ip_start + IPV6_HEADER_BYTES,
        captured_end: ip_start + packet.len().min(IPV6_HEADER_BYTES + payload_bytes),
        wire_bytes: payload_bytes,
        assembled: false,
        ip: IpHeader {
            version: 6,
            source: *header[8..].first_chunk::<16>()?,
            destination: *header[24..].first_chunk::<16>()?,
            ttl: header[7],
            id: 0,
            traffic_class: (header[0] << 4) | (header[1] >> 4),
        },
        tunnel: WalkState::start().tunnel,
    })
}

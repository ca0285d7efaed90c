//! Plain segments: TCP right behind an IP header without options or fragments and a link header, with ACK, without SYN,
//! FIN and RST, and with timestamps as the only option or none. Nearly all packets of a capture are, and most of them
//! only continue a stream.

use crate::decoding::fast_path;
use crate::headers::link::LinkType;
use crate::headers::tcp;
use crate::segment::flag;

/// What a plain segment says, without the fields of [`crate::segment::Segment`] that it cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainSegment<'a> {
    pub frame_index: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    /// The upper and the lower half of the address, IPv4 behind `::ffff:0:0/96`.
    pub source: [u64; 2],
    pub destination: [u64; 2],
    pub source_port: u16,
    pub destination_port: u16,
    pub ttl: u8,
    /// IPv4 identification; zero for IPv6.
    pub ip_id: u16,
    pub flags: u16,
    pub sequence: u32,
    pub acknowledgement: u32,
    /// As on the wire, not scaled.
    pub window: u16,
    /// Payload bytes on the wire.
    pub payload_length: u32,
    /// The part of the payload that the capture holds.
    pub payload: &'a [u8],
    /// (TSval, TSecr)
    pub timestamps: Option<(u32, u32)>,
}

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const WITH_TIMESTAMPS_BYTES: usize = 32;
/// Upper part of the lower half of an IPv4-mapped address.
const MAPPED: u64 = 0xffff_0000_0000;

impl<'a> PlainSegment<'a> {
    /// The plain segment of a frame; `None` where the frame holds anything else, and where its headers were cut.
    #[inline(always)]
    pub(crate) fn of(link: LinkType, frame: &'a [u8], frame_index: u64, time_ns: i64) -> Option<Self> {
        let packet = frame.get(fast_path::ip_start(link, frame)?..)?;
        match packet.first()? {
            0x45 => Self::of_version_4(packet, frame_index, time_ns),
            0x60..=0x6f => Self::of_version_6(packet, frame_index, time_ns),
            _ => None,
        }
    }

    #[inline(always)]
    fn of_version_4(packet: &'a [u8], frame_index: u64, time_ns: i64) -> Option<Self> {
        let (ip, rest) = packet.split_first_chunk::<IPV4_HEADER_BYTES>()?;
        let fragmented = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
        if ip[9] != fast_path::TCP || fragmented {
            return None;
        }
        let total_bytes = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let address =
            |at: usize| [0, MAPPED | u64::from(u32::from_be_bytes([ip[at], ip[at + 1], ip[at + 2], ip[at + 3]]))];
        let segment = Self::of_tcp(rest, total_bytes.checked_sub(IPV4_HEADER_BYTES)?, frame_index, time_ns)?;
        let ip_id = u16::from_be_bytes([ip[4], ip[5]]);
        Some(PlainSegment { source: address(12), destination: address(16), ttl: ip[8], ip_id, ..segment })
    }

    #[inline(always)]
    fn of_version_6(packet: &'a [u8], frame_index: u64, time_ns: i64) -> Option<Self> {
        let (ip, rest) = packet.split_first_chunk::<IPV6_HEADER_BYTES>()?;
        if ip[6] != fast_path::TCP {
            return None;
        }
        let payload_bytes = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
        let address = |at: usize| {
            let half = |at: usize| ip.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u64::from_be_bytes);
            [half(at), half(at + 8)]
        };
        let segment = Self::of_tcp(rest, payload_bytes, frame_index, time_ns)?;
        Some(PlainSegment { source: address(8), destination: address(24), ttl: ip[7], ..segment })
    }

    /// The part that the TCP header tells, which stands at the start of `rest`; `wire_bytes` is its length on the wire
    /// with the payload.
    #[inline(always)]
    fn of_tcp(rest: &'a [u8], wire_bytes: usize, frame_index: u64, time_ns: i64) -> Option<Self> {
        let header = rest.first_chunk::<{ tcp::HEADER_BYTES }>()?;
        let (flags, timestamps, header_bytes) = match header[12] >> 4 {
            5 => (flags_of(header)?, None, tcp::HEADER_BYTES),
            8 => {
                let with_options = rest.first_chunk::<WITH_TIMESTAMPS_BYTES>()?;
                (flags_of(header)?, Some(tcp::usual_timestamps(with_options.last_chunk()?)?), WITH_TIMESTAMPS_BYTES)
            }
            _ => return None,
        };
        let payload_length = wire_bytes.checked_sub(header_bytes)? as u32;
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Some(PlainSegment {
            frame_index,
            time_ns,
            source: [0; 2],
            destination: [0; 2],
            source_port: u16::from_be_bytes([header[0], header[1]]),
            destination_port: u16::from_be_bytes([header[2], header[3]]),
            ttl: 0,
            ip_id: 0,
            flags,
            sequence: word(4),
            acknowledgement: word(8),
            window: u16::from_be_bytes([header[14], header[15]]),
            payload_length,
            payload: rest.get(header_bytes..rest.len().min(wire_bytes)).unwrap_or_default(),
            timestamps,
        })
    }
}

/// The flags, where ACK is set and SYN, FIN and RST are not.
#[inline(always)]
fn flags_of(header: &[u8; tcp::HEADER_BYTES]) -> Option<u16> {
    let flags = (u16::from(header[12] & 1) << 8) | u16::from(header[13]);
    (flags & (flag::SYN | flag::FIN | flag::RST | flag::ACK) == flag::ACK).then_some(flags)
}

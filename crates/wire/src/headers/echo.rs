//! ICMP and ICMPv6 echo messages (RFC 792, RFC 4443): the host itself answers them, whatever splits its TCP.

use crate::headers::ip::protocol;
use crate::headers::layer::{IpHeader, WalkState};
use crate::headers::view::View;

/// An echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Index of its frame in the capture file, from 0.
    pub frame_index: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    /// 4 or 6.
    pub ip_version: u8,
    /// IPv6, or IPv4 in the last four bytes behind `::ffff:0:0/96`.
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub is_reply: bool,
    pub identifier: u16,
    pub sequence: u16,
    /// Bytes on the wire behind the eight of the header.
    pub data_bytes: u32,
}

/// What a walk finds of an echo message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundEcho {
    ip: IpHeader,
    is_reply: bool,
    identifier: u16,
    sequence: u16,
    data_bytes: u32,
}

const HEADER_BYTES: usize = 8;

/// Stores the echo message that stands at the start of `view`, if one does.
pub(crate) fn find(number: u8, view: View<'_>, state: &mut WalkState) {
    let Ok([kind, code, _, _, id_high, id_low, sequence_high, sequence_low]) = view.bytes::<HEADER_BYTES>(0) else {
        return;
    };
    let is_reply = match (number, state.ip.version, kind, code) {
        (protocol::ICMP, 4, 8, 0) | (protocol::ICMP_6, 6, 128, 0) => false,
        (protocol::ICMP, 4, 0, 0) | (protocol::ICMP_6, 6, 129, 0) => true,
        _ => return,
    };
    state.echo = Some(FoundEcho {
        ip: state.ip,
        is_reply,
        identifier: u16::from_be_bytes([id_high, id_low]),
        sequence: u16::from_be_bytes([sequence_high, sequence_low]),
        data_bytes: u32::try_from(view.wire_bytes().saturating_sub(HEADER_BYTES)).unwrap_or(u32::MAX),
    });
}

impl FoundEcho {
    pub(crate) fn echo(&self, frame_index: u64, time_ns: i64) -> Echo {
        let FoundEcho { ip, is_reply, identifier, sequence, data_bytes } = *self;
        Echo {
            frame_index,
            time_ns,
            ip_version: ip.version,
            source: ip.source,
            destination: ip.destination,
            is_reply,
            identifier,
            sequence,
            data_bytes,
        }
    }
}

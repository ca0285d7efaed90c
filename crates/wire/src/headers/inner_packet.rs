//! Whole IP packets with TCP behind an undocumented header, found by the fields that only an IP packet has.
//!
//! A packet is accepted only where all fields agree: version, protocol TCP, a length that ends exactly
//! where the datagram ends, a TCP header that fits, and a checksum (the header's own for IPv4; TCP's for IPv6). Of a
//! packet that was captured on the host that sends it, the network card still has to complete TCP's checksum: there the
//! field holds the sum of the pseudo-header alone. Random bytes pass at one place in about 2^44 for IPv4, and 2^46 for
//! IPv6.

use crate::headers::ip::protocol;
use crate::headers::view::View;

/// Largest unknown header in front of a packet: tunnels in use put 4 to 60 bytes there.
const LARGEST_OFFSET: usize = 64;

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const TCP_HEADER_BYTES: usize = 20;
const TCP_CHECKSUM_AT: usize = 16;

/// The IP packet that fills the rest of `view` behind at most 64 bytes of something else.
pub(crate) fn find(view: View<'_>) -> Option<View<'_>> {
    let captured = view.captured();
    let last = LARGEST_OFFSET.min(view.wire_bytes().checked_sub(IPV4_HEADER_BYTES + TCP_HEADER_BYTES)?);
    for (offset, first) in captured.iter().enumerate().take(last + 1) {
        let rest = captured.get(offset..)?;
        let wire_bytes = view.wire_bytes() - offset;
        let found = match first >> 4 {
            4 => is_version_4(rest, wire_bytes),
            6 => is_version_6(rest, wire_bytes),
            _ => false,
        };
        if found {
            return view.advance(offset).ok();
        }
    }
    None
}

/// Whether an IP header stands at the start of `view` whose packet fills it: of IPv4 by its checksum and length, of IPv6
/// by its length. Behind it may be what Ethernet pads a short frame with.
pub(crate) fn is_ip_header(view: View<'_>) -> bool {
    const LEAST_ETHERNET_PAYLOAD_BYTES: usize = 46;
    let captured = view.captured();
    let wire_bytes = view.wire_bytes();
    let fills = |packet_bytes: usize| {
        packet_bytes == wire_bytes || (packet_bytes < wire_bytes && wire_bytes <= LEAST_ETHERNET_PAYLOAD_BYTES)
    };
    if let Some(header) = captured.first_chunk::<IPV6_HEADER_BYTES>().filter(|header| header[0] >> 4 == 6) {
        return fills(IPV6_HEADER_BYTES + usize::from(u16::from_be_bytes([header[4], header[5]])));
    }
    let Some(header) = captured.first_chunk::<IPV4_HEADER_BYTES>().filter(|header| header[0] >> 4 == 4) else {
        return false;
    };
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    header_bytes >= IPV4_HEADER_BYTES
        && fills(usize::from(u16::from_be_bytes([header[2], header[3]])))
        && captured.get(..header_bytes).is_some_and(|header| folded_sum(sum(header)) == 0xffff)
}

fn is_version_4(packet: &[u8], wire_bytes: usize) -> bool {
    let Some(header) = packet.first_chunk::<IPV4_HEADER_BYTES>() else { return false };
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    header[9] == protocol::TCP
        && usize::from(u16::from_be_bytes([header[2], header[3]])) == wire_bytes
        && header_bytes >= IPV4_HEADER_BYTES
        && packet.get(..header_bytes).is_some_and(|header| folded_sum(sum(header)) == 0xffff)
        && is_tcp(packet.get(header_bytes..).unwrap_or_default(), wire_bytes.saturating_sub(header_bytes))
}

fn is_version_6(packet: &[u8], wire_bytes: usize) -> bool {
    let Some((header, segment)) = packet.split_first_chunk::<IPV6_HEADER_BYTES>() else { return false };
    let segment_bytes = u16::from_be_bytes([header[4], header[5]]);
    header[6] == protocol::TCP
        && usize::from(segment_bytes) + IPV6_HEADER_BYTES == wire_bytes
        && is_tcp(segment, usize::from(segment_bytes))
        && has_tcp_checksum(&header[8..IPV6_HEADER_BYTES], segment_bytes, segment)
}

/// Whether the checksum of a TCP segment between two IPv6 addresses is right: complete, which takes the whole segment,
/// or as segmentation offload leaves it, where it is the sum of the pseudo-header (RFC 8200 section 8.1) alone.
fn has_tcp_checksum(addresses: &[u8], segment_bytes: u16, segment: &[u8]) -> bool {
    let pseudo_header = sum(addresses) + u64::from(segment_bytes) + u64::from(protocol::TCP);
    let is_complete = segment.len() == usize::from(segment_bytes) && folded_sum(pseudo_header + sum(segment)) == 0xffff;
    let field = segment.get(TCP_CHECKSUM_AT..).and_then(<[u8]>::first_chunk::<2>);
    is_complete || field.is_some_and(|field| u64::from(u16::from_be_bytes(*field)) == folded_sum(pseudo_header))
}

/// Does a TCP header fit (RFC 9293 section 3.1)?
fn is_tcp(segment: &[u8], wire_bytes: usize) -> bool {
    segment.get(12).is_some_and(|offset| {
        let header_bytes = usize::from(offset >> 4) * 4;
        header_bytes >= TCP_HEADER_BYTES && header_bytes <= wire_bytes
    })
}

/// Sum of 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let mut total: u64 = words.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    if let [odd] = words.remainder() {
        total += u64::from(*odd) << 8;
    }
    total
}

/// The sum in 16 bits; 0xffff where the checksum within is right.
fn folded_sum(mut total: u64) -> u64 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total
}

//! Headers made once for each flow and direction, in which only numbers and checksums change from packet to packet.

use std::net::IpAddr;

use pepscope_path::Direction;
use pepscope_tcp::{Ecn, OptionLayout, Segment};

use super::addresses::{AddressBook, FlowKind};
use super::content::{fold, words_sum};
use super::pcapng::LinkType;

pub(super) const ETHERNET_HEADER_BYTES: usize = 14;
pub(super) const IPV4_HEADER_BYTES: usize = 20;
pub(super) const IPV6_HEADER_BYTES: usize = 40;
pub(super) const TCP_HEADER_BYTES: usize = 20;
const TCP_PROTOCOL: u8 = 6;
const UDP_PROTOCOL: u8 = 17;
const ICMP_PROTOCOL: u8 = 1;
const UDP_HEADER_BYTES: usize = 8;
const MOST_OPTION_BYTES: usize = 40;
/// Link, IP and TCP header without options.
const MOST_FIXED_BYTES: usize = ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES + TCP_HEADER_BYTES;
/// Ethernet, IPv6 and TCP with all its options.
pub(super) const MOST_HEADER_BYTES: usize = MOST_FIXED_BYTES + MOST_OPTION_BYTES;

/// The headers of one flow in one direction, as far as they never change, and the sums of these parts.
#[derive(Clone, Debug)]
pub(super) struct Template {
    /// Link and IP header, ports, and zeros to the end of a TCP header.
    fixed: [u8; MOST_FIXED_BYTES],
    link_bytes: usize,
    /// The sum of the pseudo-header without the length.
    pseudo_sum: u64,
    version_6: bool,
}

impl Template {
    pub(super) fn new(
        link_type: LinkType,
        book: &AddressBook,
        kind: FlowKind,
        user: u16,
        direction: Direction,
    ) -> Self {
        let ends = book.ends(kind, user);
        let (source, destination) = match direction {
            Direction::Down => (ends.server, ends.mobile),
            Direction::Up => (ends.mobile, ends.server),
        };
        let protocol = match kind {
            FlowKind::Tcp { .. } => TCP_PROTOCOL,
            FlowKind::Datagrams { has_ports: false, .. } => ICMP_PROTOCOL,
            FlowKind::Datagrams { .. } | FlowKind::Voice | FlowKind::Report => UDP_PROTOCOL,
        };
        let version_6 = source.address.is_ipv6();
        let mut headers = Vec::with_capacity(MOST_FIXED_BYTES);
        if link_type == LinkType::Ethernet {
            // Locally administered, one for each side of the tap.
            let (here, there) = if direction == Direction::Down { (2, 1) } else { (1, 2) };
            headers.extend([2, 0, 0, 0, 0, here, 2, 0, 0, 0, 0, there]);
            headers.extend(if version_6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        }
        let link_bytes = headers.len();
        let addresses = match (source.address, destination.address) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                headers.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 0, protocol, 0, 0]); // do not fragment
                [source.octets(), destination.octets()].concat()
            }
            (source, destination) => {
                headers.extend([0x60, 0, 0, 0, 0, 0, protocol, 0]);
                [octets_6(source), octets_6(destination)].concat()
            }
        };
        let address_sum = words_sum(&addresses);
        headers.extend(addresses);
        let ports = [source.port.to_be_bytes(), destination.port.to_be_bytes()].concat();
        headers.extend(ports);
        let pseudo_sum = address_sum + u64::from(protocol);
        let mut fixed = [0; MOST_FIXED_BYTES];
        fixed[..headers.len()].copy_from_slice(&headers);
        Self { fixed, link_bytes, pseudo_sum, version_6 }
    }

    /// All headers of `segment`.
    pub(super) fn tcp_headers(&self, segment: &Segment) -> TcpHeaders {
        let tcp_at = self.link_bytes + self.ip_header_bytes();
        let tcp_bytes = TCP_HEADER_BYTES + segment.option_bytes() as usize;
        let segment_bytes = (tcp_bytes + usize::from(segment.payload_bytes)) as u64;
        let fields = IpFields {
            ecn_bits: match segment.ecn {
                Ecn::NotCapable => 0,
                Ecn::Capable => 2,
                Ecn::Congestion => 3,
            },
            identification: segment.ip_identification,
            time_to_live: segment.time_to_live,
            behind_bytes: segment_bytes,
        };
        let mut bytes = [0; MOST_HEADER_BYTES];
        let ip_sum = self.write_start(fields, &mut bytes);
        let tcp = &mut bytes[tcp_at..tcp_at + tcp_bytes];
        tcp[4..8].copy_from_slice(&segment.sequence.to_be_bytes());
        tcp[8..12].copy_from_slice(&segment.acknowledgement.to_be_bytes());
        tcp[12..14].copy_from_slice(&((tcp_bytes as u16 / 4) << 12 | u16::from(segment.flags.bits())).to_be_bytes());
        tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
        write_options(segment, &mut tcp[TCP_HEADER_BYTES..]);
        let tcp_sum = self.pseudo_sum + segment_bytes + words_sum(tcp);
        TcpHeaders { bytes, length: tcp_at + tcp_bytes, ip_sum, tcp_sum }
    }

    /// Bytes of the link header.
    pub(super) fn link_bytes(&self) -> usize {
        self.link_bytes
    }

    pub(super) fn is_version_6(&self) -> bool {
        self.version_6
    }

    fn ip_header_bytes(&self) -> usize {
        if self.version_6 {
            IPV6_HEADER_BYTES
        } else {
            IPV4_HEADER_BYTES
        }
    }

    /// Writes link and IP header and ports; the sum of an IPv4 header without its checksum.
    fn write_start(&self, fields: IpFields, out: &mut [u8; MOST_HEADER_BYTES]) -> u64 {
        let IpFields { ecn_bits, identification, time_to_live, behind_bytes } = fields;
        out[..MOST_FIXED_BYTES].copy_from_slice(&self.fixed);
        let ip = &mut out[self.link_bytes..];
        if self.version_6 {
            ip[1] = ecn_bits << 4;
            ip[4..6].copy_from_slice(&(behind_bytes as u16).to_be_bytes());
            ip[7] = time_to_live;
            return 0;
        }
        ip[1] = ecn_bits;
        ip[2..4].copy_from_slice(&(IPV4_HEADER_BYTES as u16 + behind_bytes as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        ip[8] = time_to_live;
        let sum = words_sum(&ip[..IPV4_HEADER_BYTES]);
        ip[10..12].copy_from_slice(&(!fold(sum)).to_be_bytes());
        sum
    }

    /// The frame of a UDP datagram.
    pub(super) fn udp_frame(&self, identification: u16, time_to_live: u8, payload: &[u8]) -> Vec<u8> {
        let udp_bytes = (UDP_HEADER_BYTES + payload.len()) as u64;
        let mut headers = [0; MOST_HEADER_BYTES];
        let fields = IpFields { ecn_bits: 0, identification, time_to_live, behind_bytes: udp_bytes };
        self.write_start(fields, &mut headers);
        let udp_at = self.link_bytes + self.ip_header_bytes();
        let udp = &mut headers[udp_at..udp_at + UDP_HEADER_BYTES];
        udp[4..6].copy_from_slice(&(udp_bytes as u16).to_be_bytes());
        let sum = self.pseudo_sum + udp_bytes + words_sum(udp) + words_sum(payload);
        // A checksum of zero would mean that there is none (RFC 768).
        let checksum = if fold(sum) == 0xffff { 0xffff } else { !fold(sum) };
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
        [&headers[..udp_at + UDP_HEADER_BYTES], payload].concat()
    }

    /// The frame of an ICMP message, which has its header and checksum.
    pub(super) fn icmp_frame(&self, identification: u16, time_to_live: u8, message: &[u8]) -> Vec<u8> {
        let mut headers = [0; MOST_HEADER_BYTES];
        let behind_bytes = message.len() as u64;
        self.write_start(IpFields { ecn_bits: 0, identification, time_to_live, behind_bytes }, &mut headers);
        [&headers[..self.link_bytes + self.ip_header_bytes()], message].concat()
    }
}

/// The headers of a segment.
pub(super) struct TcpHeaders {
    pub(super) bytes: [u8; MOST_HEADER_BYTES],
    pub(super) length: usize,
    /// The sum of the words of the IPv4 header without its checksum.
    pub(super) ip_sum: u64,
    /// The sum of pseudo-header and TCP header without its checksum, which is not written: it covers the payload, too.
    pub(super) tcp_sum: u64,
}

/// The fields of an IP header that change from packet to packet.
#[derive(Clone, Copy)]
struct IpFields {
    ecn_bits: u8,
    identification: u16,
    time_to_live: u8,
    /// Length of what follows the header.
    behind_bytes: u64,
}

/// Writes the options in the order that the sender's kernel gives them; every one fills whole words.
fn write_options(segment: &Segment, out: &mut [u8]) {
    let mut places = out.chunks_exact_mut(4);
    let mut put = |word: u32| {
        if let Some(place) = places.next() {
            place.copy_from_slice(&word.to_be_bytes());
        }
    };
    if let Some(size) = segment.maximum_segment_size {
        put(0x0204_0000 | u32::from(size));
    }
    let scale = segment.window_scale.map(|shift| 0x0103_0300 | u32::from(shift));
    if segment.option_layout != OptionLayout::ScaleLast {
        scale.map(&mut put);
    }
    let has_sack_last = segment.option_layout == OptionLayout::SackLast && segment.sack_permitted;
    match (segment.timestamps, segment.sack_permitted && !has_sack_last) {
        (Some(timestamps), permitted) => {
            put(if permitted { 0x0402_080a } else { 0x0101_080a });
            put(timestamps.value);
            put(timestamps.echo_reply);
        }
        (None, true) => put(0x0101_0402),
        (None, false) => {}
    }
    if has_sack_last {
        put(0x0402_0000); // with the end of the list, twice
    }
    if segment.option_layout == OptionLayout::ScaleLast {
        scale.map(&mut put);
    }
    let blocks = segment.sack.as_slice();
    if !blocks.is_empty() {
        put(0x0101_0500 | (2 + 8 * blocks.len() as u32));
        for &(left, right) in blocks {
            put(left);
            put(right);
        }
    }
}

fn octets_6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use pepscope_tcp::{Flags, OptionLayout, Segment, Timestamps};

    use super::write_options;

    /// Kinds of the options up to the end of the list, and how many bytes stand behind it; `None` if a length is wrong.
    fn kinds(options: &[u8]) -> Option<(Vec<u8>, usize)> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(kind) = options.get(at) {
            match kind {
                0 => return options[at..].iter().all(|byte| *byte == 0).then_some((found, options.len() - at)),
                1 => at += 1,
                _ => at += usize::from(*options.get(at + 1).filter(|length| **length > 1)?),
            }
            found.push(*kind);
        }
        (at == options.len()).then_some((found, 0))
    }

    #[test]
    fn every_layout_fills_the_length_that_the_segment_has() {
        for layout in [OptionLayout::ScaleLast, OptionLayout::ScaleSecond, OptionLayout::SackLast] {
            for choice in 0..8_u8 {
                let segment = Segment {
                    flags: Flags::SYN,
                    maximum_segment_size: Some(1460),
                    window_scale: (choice & 1 > 0).then_some(8),
                    sack_permitted: choice & 2 > 0,
                    timestamps: (choice & 4 > 0).then_some(Timestamps { value: 7, echo_reply: 9 }),
                    option_layout: layout,
                    ..Segment::default()
                };
                let mut options = vec![0xff; segment.option_bytes() as usize];
                write_options(&segment, &mut options);
                let (found, padding) = kinds(&options).expect("options that can be read");
                assert!(padding == 0 || layout == OptionLayout::SackLast && padding == 2, "{layout:?} {options:?}");
                for (kind, is_there) in [(3, choice & 1 > 0), (4, choice & 2 > 0), (8, choice & 4 > 0)] {
                    assert_eq!(found.contains(&kind), is_there, "{layout:?} {options:?}");
                }
            }
        }
    }
}

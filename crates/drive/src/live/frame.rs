//! A real IP packet as hops carry it.

use pepscope_path::{Datagram, Direction, QueueReport};

use super::pool;
use super::report_datagram;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const IPV6_HEADER_BYTES: usize = 40;
const UDP_HEADER_BYTES: usize = 8;
/// Options of one hop, routing, fragment and destination options (RFC 8200, section 4).
const IPV6_EXTENSIONS: [u8; 4] = [0, 43, 44, 60];
const IPV6_FRAGMENT: u8 = 44;

/// The addresses of a cell's terminals: the first of either version, and how many follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminals {
    pub first_ipv4: u32,
    pub first_ipv6: u128,
    pub count: u16,
}

/// An IP packet, as a TUN device gives it.
#[derive(Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    header_bytes: u16,
    user: u16,
}

impl Drop for Frame {
    fn drop(&mut self) {
        pool::give_back(std::mem::take(&mut self.bytes));
    }
}

impl Frame {
    /// An empty buffer for [`Frame::new`], from the pool of this thread.
    #[must_use]
    pub fn buffer(most_bytes: usize) -> Vec<u8> {
        pool::take(most_bytes)
    }

    /// A packet that goes in `direction`; one to or from none of the `terminals` counts as the first's.
    #[must_use]
    pub fn new(bytes: Vec<u8>, direction: Direction, terminals: &Terminals) -> Self {
        let header_bytes = header_bytes(&bytes);
        let user = if terminals.count > 1 { user(&bytes, direction, terminals) } else { 0 };
        Self { bytes, header_bytes, user }
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The offset of its TCP header, if it has one.
    pub(super) fn tcp_at(&self) -> Option<usize> {
        let network = match self.bytes.first().map(|first| first >> 4) {
            Some(4) => ipv4_header(&self.bytes),
            Some(6) => ipv6_header(&self.bytes),
            _ => None,
        };
        network.filter(|(_, transport)| *transport == Some(PROTOCOL_TCP)).map(|(bytes, _)| bytes)
    }

    /// Gives a buffer that holds no packet back to the pool.
    pub fn give_back(buffer: Vec<u8>) {
        pool::give_back(buffer);
    }
}

/// Length of the IP and transport headers; of the whole packet at most. Other protocols than TCP and UDP count as
/// payload.
fn header_bytes(packet: &[u8]) -> u16 {
    let network = match packet.first().map(|first| first >> 4) {
        Some(4) => ipv4_header(packet),
        Some(6) => ipv6_header(packet),
        _ => None,
    };
    let Some((network_bytes, transport)) = network else { return 0 };
    let transport_bytes = match transport {
        Some(PROTOCOL_TCP) => packet.get(network_bytes + 12).map_or(0, |offset| usize::from(offset >> 4) * 4),
        Some(PROTOCOL_UDP) => UDP_HEADER_BYTES,
        _ => 0,
    };
    (network_bytes + transport_bytes).min(packet.len()).min(usize::from(u16::MAX)) as u16
}

/// Length of the header, and the transport protocol if its header follows.
fn ipv4_header(packet: &[u8]) -> Option<(usize, Option<u8>)> {
    let bytes = usize::from(packet.first()? & 15) * 4;
    let fragment_offset = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff;
    let protocol = *packet.get(9)?;
    Some((bytes, (fragment_offset == 0).then_some(protocol)))
}

fn ipv6_header(packet: &[u8]) -> Option<(usize, Option<u8>)> {
    let mut next = *packet.get(6)?;
    let mut bytes = IPV6_HEADER_BYTES;
    while IPV6_EXTENSIONS.contains(&next) {
        let following = *packet.get(bytes)?;
        if next == IPV6_FRAGMENT {
            let offset = u16::from_be_bytes([*packet.get(bytes + 2)?, *packet.get(bytes + 3)?]) >> 3;
            if offset != 0 {
                return Some((bytes + 8, None));
            }
            bytes += 8;
        } else {
            bytes += (usize::from(*packet.get(bytes + 1)?) + 1) * 8;
        }
        next = following;
    }
    Some((bytes, Some(next)))
}

/// The number of the terminal at the mobile end.
fn user(packet: &[u8], direction: Direction, terminals: &Terminals) -> u16 {
    let number = match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let at = if direction == Direction::Down { 16 } else { 12 };
            let address = packet.get(at..at + 4).and_then(|address| address.try_into().ok()).map(u32::from_be_bytes);
            address.and_then(|address| address.checked_sub(terminals.first_ipv4)).map(u128::from)
        }
        Some(6) => {
            let at = if direction == Direction::Down { 24 } else { 8 };
            let address = packet.get(at..at + 16).and_then(|address| address.try_into().ok()).map(u128::from_be_bytes);
            address.and_then(|address| address.checked_sub(terminals.first_ipv6))
        }
        _ => None,
    };
    number.filter(|&number| number < u128::from(terminals.count)).map_or(0, |number| number as u16)
}

impl Datagram for Frame {
    #[inline]
    fn length_bytes(&self) -> u32 {
        self.bytes.len() as u32
    }

    #[inline]
    fn header_bytes(&self) -> u32 {
        u32::from(self.header_bytes)
    }

    #[inline]
    fn user(&self) -> u16 {
        self.user
    }

    fn understands_marks(&self) -> bool {
        match self.bytes.as_slice() {
            [first, second, ..] if first >> 4 == 4 => second & 0b11 != 0,
            [first, second, ..] if first >> 4 == 6 => second >> 4 & 0b11 != 0,
            _ => false,
        }
    }

    fn mark_congestion(&mut self) {
        match self.bytes.as_mut_slice() {
            [first, second, rest @ ..] if *first >> 4 == 4 && rest.len() >= 10 => {
                let before = u16::from_be_bytes([*first, *second]);
                *second |= 0b11;
                let after = u16::from_be_bytes([*first, *second]);
                let checksum = u16::from_be_bytes([rest[8], rest[9]]);
                rest[8..10].copy_from_slice(&updated_checksum(checksum, before, after).to_be_bytes());
            }
            [first, second, ..] if *first >> 4 == 6 => *second |= 0b11 << 4,
            _ => {}
        }
    }

    fn from_report(user: u16, report: QueueReport) -> Option<Self> {
        let bytes = report_datagram::packet(report, pool::take)?;
        let header_bytes = header_bytes(&bytes);
        Some(Self { bytes, header_bytes, user })
    }

    fn duplicate(&self) -> Self {
        let mut bytes = pool::take(self.bytes.len());
        bytes.clear();
        bytes.extend_from_slice(&self.bytes);
        Self { bytes, ..*self }
    }

    /// FNV-1a over addresses, protocol and ports; over addresses and protocol where there are no ports.
    fn flow(&self) -> u64 {
        let (network, addresses) = match self.bytes.first().map(|first| first >> 4) {
            Some(4) => (ipv4_header(&self.bytes), self.bytes.get(12..20)),
            Some(6) => (ipv6_header(&self.bytes), self.bytes.get(8..40)),
            _ => (None, None),
        };
        let transport = network.and_then(|(at, transport)| Some((at, transport?)));
        let ported = transport.filter(|(_, protocol)| [PROTOCOL_TCP, PROTOCOL_UDP].contains(protocol));
        let ports = ported.and_then(|(at, _)| self.bytes.get(at..at + 4));
        let protocol = transport.map(|(_, protocol)| protocol);
        let hashed = addresses.into_iter().chain(ports).flatten().copied().chain(protocol);
        hashed.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// RFC 1624, equation 3.
fn updated_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::super::report_datagram::internet_checksum;
    use super::{Frame, Terminals};
    use pepscope_path::{Datagram, Direction};

    const ONE: Terminals = Terminals { first_ipv4: 0x0a2d_0002, first_ipv6: 2, count: 1 };

    /// An IPv4 packet from 10.45.0.3 to 203.0.113.10 with a right checksum.
    fn ipv4(protocol: u8, type_of_service: u8, payload: &[u8]) -> Vec<u8> {
        let length = 20 + payload.len() as u16;
        let mut packet =
            vec![0x45, type_of_service, 0, 0, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 45, 0, 3, 203, 0, 113, 10];
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        let checksum = internet_checksum(&[&packet]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    fn tcp(options_bytes: u8, data_bytes: usize) -> Vec<u8> {
        let mut segment = vec![0; 20 + usize::from(options_bytes) + data_bytes];
        segment[12] = (5 + options_bytes / 4) << 4;
        segment
    }

    fn up(bytes: Vec<u8>) -> Frame {
        Frame::new(bytes, Direction::Up, &ONE)
    }

    #[test]
    fn headers_are_those_of_ip_and_transport() {
        assert_eq!(up(ipv4(6, 0, &tcp(12, 100))).header_bytes(), 52);
        assert_eq!(up(ipv4(17, 0, &[0; 30])).header_bytes(), 28);
        assert_eq!(up(ipv4(1, 0, &[0; 30])).header_bytes(), 20);
        let mut fragment = ipv4(6, 0, &tcp(12, 100));
        fragment[7] = 9;
        assert_eq!(up(fragment).header_bytes(), 20);
    }

    #[test]
    fn headers_of_version_6_lie_behind_its_extensions() {
        let mut plain = vec![0; 40];
        plain[0] = 0x60;
        plain[6] = 6;
        plain.extend_from_slice(&tcp(20, 9));
        assert_eq!(up(plain).header_bytes(), 80);
        let mut extended = vec![0; 48];
        extended[0] = 0x60;
        extended[6] = 60;
        extended[40] = 17;
        extended.extend_from_slice(&[0; 20]);
        assert_eq!(up(extended).header_bytes(), 56);
    }

    #[test]
    fn nothing_that_is_cut_short_or_strange_reaches_beyond_the_packet() {
        let whole = ipv4(6, 2, &tcp(12, 0));
        for length in 0..whole.len() {
            let mut frame = up(whole[..length].to_vec());
            assert!(frame.header_bytes() as usize <= length);
            frame.mark_congestion();
            assert_eq!(frame.length_bytes() as usize, length);
        }
        for first in [0x00, 0x4f, 0x6f, 0xff] {
            assert!(up(vec![first; 13]).header_bytes() <= 13);
        }
    }

    #[test]
    fn a_mark_leaves_the_checksum_right_and_only_reaches_who_understands() {
        assert!(!up(ipv4(6, 0, &tcp(0, 0))).understands_marks());
        for codepoint in [1, 2, 3] {
            let mut frame = up(ipv4(6, 0xb8 | codepoint, &tcp(0, 5)));
            assert!(frame.understands_marks());
            frame.mark_congestion();
            assert_eq!(frame.bytes()[1], 0xbb);
            assert_eq!(internet_checksum(&[&frame.bytes()[..20]]), 0);
        }
        let mut packet = vec![0; 60];
        packet[..2].copy_from_slice(&[0x60, 0x20]);
        let mut frame = up(packet);
        assert!(frame.understands_marks());
        frame.mark_congestion();
        assert_eq!(frame.bytes()[..2], [0x60, 0x30]);
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_flows_differ_by_addresses_and_ports() {
        let ports = |source: u8| [&[source, 80, 0, 80][..], &[7; 26]].concat();
        let frame = up(ipv4(17, 0, &ports(1)));
        let copy = frame.duplicate();
        assert_eq!((copy.bytes(), copy.header_bytes(), copy.flow()), (frame.bytes(), 28, frame.flow()));
        assert_ne!(up(ipv4(17, 0, &ports(2))).flow(), frame.flow());
        assert_ne!(up(ipv4(6, 0, &ports(1))).flow(), frame.flow());
        assert_eq!(up(ipv4(1, 0, &ports(1))).flow(), up(ipv4(1, 0, &ports(2))).flow(), "ICMP has no ports");
        for length in 0..28 {
            up(frame.bytes()[..length].to_vec()).flow();
        }
    }

    #[test]
    fn the_mobiles_address_gives_the_user() {
        let cell = Terminals { count: 3, ..ONE };
        assert_eq!(Frame::new(ipv4(17, 0, &[0; 9]), Direction::Up, &cell).user(), 1);
        assert_eq!(Frame::new(ipv4(17, 0, &[0; 9]), Direction::Down, &cell).user(), 0, "203.0.113.10 is no terminal");
        assert_eq!(up(ipv4(17, 0, &[0; 9])).user(), 0);
    }
}

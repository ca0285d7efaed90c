//! Reports of a Node-B's queue as UDP datagrams to a window-adaptation proxy.
//!
//! The payload is five unsigned 32-bit numbers, big-endian: step, queued, served, dropped, offered radio frames
//! ([`QueueReport`]).

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pepscope_path::QueueReport;

const PAYLOAD_BYTES: u16 = 20;
const UDP_HEADER_BYTES: u16 = 8;
const HOPS_LEFT: u8 = 64;
const PROTOCOL_UDP: u8 = 17;

/// Between whom reports travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportRoute {
    /// The Node-B.
    pub from: IpAddr,
    /// The proxy; of the same IP version.
    pub to: IpAddr,
    /// The UDP port of both ends.
    pub port: u16,
}

thread_local! {
    /// Hops make reports without knowing where these go, which the thread that carries them does.
    static ROUTE: Cell<Option<ReportRoute>> = const { Cell::new(None) };
}

/// Reports made on this thread from now on go there; `None` makes no datagrams of them.
pub fn set_route(route: Option<ReportRoute>) {
    ROUTE.set(route);
}

/// The IP packet of a report, in a buffer that `take` gives for a length; `None` without a route.
pub(super) fn packet(report: QueueReport, take: impl FnOnce(usize) -> Vec<u8>) -> Option<Vec<u8>> {
    let route = ROUTE.get()?;
    let udp_bytes = UDP_HEADER_BYTES + PAYLOAD_BYTES;
    let mut packet = take(128);
    match (route.from, route.to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ipv4_header(&mut packet, from, to, udp_bytes),
        (IpAddr::V6(from), IpAddr::V6(to)) => ipv6_header(&mut packet, from, to, udp_bytes),
        _ => return None,
    }
    let start = packet.len();
    packet.extend_from_slice(&route.port.to_be_bytes());
    packet.extend_from_slice(&route.port.to_be_bytes());
    packet.extend_from_slice(&udp_bytes.to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    for number in
        [report.step, report.queued_frames, report.served_frames, report.dropped_frames, report.offered_frames]
    {
        packet.extend_from_slice(&number.to_be_bytes());
    }
    let addresses = match route.from {
        IpAddr::V4(_) => 12..20,
        IpAddr::V6(_) => 8..40,
    };
    let [high, low] = udp_bytes.to_be_bytes();
    let checksum = internet_checksum(&[&packet[addresses], &[0, PROTOCOL_UDP, high, low], &packet[start..]]);
    // Zero would mean that there is no checksum (RFC 768).
    let checksum = if checksum == 0 { u16::MAX } else { checksum };
    packet[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    Some(packet)
}

fn ipv4_header(packet: &mut Vec<u8>, from: Ipv4Addr, to: Ipv4Addr, payload_bytes: u16) {
    packet.extend_from_slice(&[0x45, 0]);
    packet.extend_from_slice(&(20 + payload_bytes).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, HOPS_LEFT, PROTOCOL_UDP, 0, 0]);
    packet.extend_from_slice(&from.octets());
    packet.extend_from_slice(&to.octets());
    let checksum = internet_checksum(&[packet]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn ipv6_header(packet: &mut Vec<u8>, from: Ipv6Addr, to: Ipv6Addr, payload_bytes: u16) {
    packet.extend_from_slice(&[0x60, 0, 0, 0]);
    packet.extend_from_slice(&payload_bytes.to_be_bytes());
    packet.extend_from_slice(&[PROTOCOL_UDP, HOPS_LEFT]);
    packet.extend_from_slice(&from.octets());
    packet.extend_from_slice(&to.octets());
}

/// RFC 1071, over `parts` one after the other, each of even length but for the last.
pub(super) fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::{internet_checksum, set_route, ReportRoute};
    use crate::live::frame::Frame;
    use pepscope_path::{Datagram, QueueReport};

    const REPORT: QueueReport =
        QueueReport { step: 7, queued_frames: 100, served_frames: 13, dropped_frames: 2, offered_frames: 70_000 };

    fn report(from: &str, to: &str) -> Option<Frame> {
        set_route(Some(ReportRoute { from: from.parse().unwrap(), to: to.parse().unwrap(), port: 31_000 }));
        let frame = Frame::from_report(3, REPORT);
        set_route(None);
        frame
    }

    #[test]
    fn a_report_is_five_numbers_in_a_datagram_whose_checksums_hold() {
        let frame = report("10.44.0.1", "10.44.0.2").unwrap();
        let bytes = frame.bytes();
        assert_eq!((bytes.len(), frame.header_bytes(), frame.user()), (48, 28, 3));
        assert_eq!(internet_checksum(&[&bytes[..20]]), 0);
        assert_eq!(internet_checksum(&[&bytes[12..20], &[0, 17, 0, 28], &bytes[20..]]), 0);
        assert_eq!(bytes[20..24], [0x79, 0x18, 0x79, 0x18]);
        let numbers: Vec<u32> =
            bytes[28..].chunks(4).map(|four| u32::from_be_bytes(four.try_into().unwrap())).collect();
        assert_eq!(numbers, [7, 100, 13, 2, 70_000]);
    }

    #[test]
    fn a_report_may_travel_in_version_6() {
        let frame = report("2001:db8:44::1", "2001:db8:44::2").unwrap();
        let bytes = frame.bytes();
        assert_eq!((bytes.len(), frame.header_bytes()), (68, 48));
        assert_eq!(internet_checksum(&[&bytes[8..40], &[0, 17, 0, 28], &bytes[40..]]), 0);
    }

    #[test]
    fn without_a_proxy_there_are_no_datagrams() {
        assert!(Frame::from_report(0, REPORT).is_none());
        assert!(report("10.44.0.1", "::1").is_none());
    }
}

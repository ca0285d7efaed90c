//! UDP datagrams outside every known tunnel: something else may carry a TCP stream's bytes in them, and what answers
//! them was reached without TCP.

use crate::headers::echo::Echo;
use crate::headers::layer::IpHeader;

/// A UDP datagram. The payload lives until the reader goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Index of its frame in the capture file, from 0.
    pub frame_index: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    /// 4 or 6.
    pub ip_version: u8,
    /// IPv6, or IPv4 in the last four bytes behind `::ffff:0:0/96`.
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub source_port: u16,
    pub destination_port: u16,
    /// Bytes of UDP payload on the wire.
    pub payload_length: u32,
    /// The part of the payload that the capture holds.
    pub payload: &'a [u8],
}

/// Gets every UDP datagram outside known tunnels that a reader meets between segments, and every ICMP echo message.
pub trait DatagramObserver: Send {
    fn observe(&mut self, datagram: &Datagram<'_>);

    fn observe_echo(&mut self, _echo: &Echo) {}
}

/// Where in a frame (or in a datagram put together from fragments) a UDP header stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramPosition {
    pub(crate) start: usize,
    pub(crate) captured_end: usize,
    pub(crate) wire_bytes: usize,
    pub(crate) assembled: bool,
    pub(crate) ip: IpHeader,
}

pub(crate) const HEADER_BYTES: usize = 8;

impl DatagramPosition {
    /// The datagram with payload that stands here in `base`; `None` without payload, or where its header was cut.
    pub(crate) fn datagram<'a>(&self, base: &'a [u8], frame_index: u64, time_ns: i64) -> Option<Datagram<'a>> {
        let bytes = base.get(self.start..self.captured_end)?;
        let (header, payload) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let payload_length = self.wire_bytes.checked_sub(HEADER_BYTES).filter(|length| *length > 0)?;
        Some(Datagram {
            frame_index,
            time_ns,
            ip_version: self.ip.version,
            source: self.ip.source,
            destination: self.ip.destination,
            source_port: u16::from_be_bytes([header[0], header[1]]),
            destination_port: u16::from_be_bytes([header[2], header[3]]),
            payload_length: payload_length as u32,
            payload,
        })
    }
}

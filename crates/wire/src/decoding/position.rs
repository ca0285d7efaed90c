//! The position of a TCP segment in its frame, found first; the segment is borrowed later.

use crate::headers::layer::IpHeader;
use crate::headers::tcp;
use crate::segment::{Segment, TcpOptions, Tunnel};

#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentPosition {
    pub(crate) tcp_start: usize,
    pub(crate) captured_end: usize,
    /// TCP header and payload on the wire.
    pub(crate) wire_bytes: usize,
    /// The bytes are those of a datagram put together from fragments, not of the frame.
    pub(crate) assembled: bool,
    pub(crate) ip: IpHeader,
    pub(crate) tunnel: Tunnel,
}

impl SegmentPosition {
    /// Reads the TCP header that stands here in `base` and shows the segment to `act`; `None` if the position is not
    /// within `base`. The segment is not returned, since moving something so large right after writing it takes long.
    #[inline(always)]
    pub(crate) fn show<'a, T>(
        &self,
        base: &'a [u8],
        frame_index: u64,
        time_ns: i64,
        act: impl FnOnce(&Segment<'a>) -> T,
    ) -> Option<T> {
        let tcp = base.get(self.tcp_start..self.captured_end)?;
        let header = tcp.first_chunk::<{ tcp::NEEDED_BYTES }>()?;
        let header_bytes = usize::from(header[12] >> 4) * 4;
        let options_end = header_bytes.min(tcp.len());
        let options_raw = tcp.get(tcp::HEADER_BYTES..options_end).unwrap_or_default();
        let header_truncated = tcp.len() < header_bytes;
        let mut segment = Segment {
            frame_index,
            time_ns,
            ip_version: self.ip.version,
            source: self.ip.source,
            destination: self.ip.destination,
            source_port: u16::from_be_bytes([header[0], header[1]]),
            destination_port: u16::from_be_bytes([header[2], header[3]]),
            ttl: self.ip.ttl,
            ip_id: self.ip.id,
            traffic_class: self.ip.traffic_class,
            flags: (u16::from(header[12] & 1) << 8) | u16::from(header[13]),
            sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            acknowledgement: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
            window: u16::from_be_bytes([header[14], header[15]]),
            payload_length: self.wire_bytes.saturating_sub(header_bytes) as u32,
            payload: tcp.get(header_bytes..).unwrap_or_default(),
            options_raw,
            options: TcpOptions::default(),
            header_truncated,
            options_truncated: header_truncated && tcp::goes_on(options_raw, header_bytes),
            tunnel: self.tunnel,
        };
        tcp::read_options(options_raw, &mut segment.options);
        Some(act(&segment))
    }
}

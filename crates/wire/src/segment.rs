//! One TCP segment as one capture saw it: what every decoder ends in and every analysis starts from.

/// TCP header flags as they stand on the wire (RFC 9293 section 3.1; the ninth bit is AE, RFC 9768).
pub mod flag {
    pub const FIN: u16 = 0x001;
    pub const SYN: u16 = 0x002;
    pub const RST: u16 = 0x004;
    pub const PSH: u16 = 0x008;
    pub const ACK: u16 = 0x010;
    pub const URG: u16 = 0x020;
    pub const ECE: u16 = 0x040;
    pub const CWR: u16 = 0x080;
    pub const AE: u16 = 0x100;
}

/// The tunnel a segment came through (the innermost, if several). Columns and temporary files hold its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TunnelKind {
    None = 0,
    GtpU = 1,
    Gre = 2,
    IpInIp = 3,
    Vxlan = 4,
    /// An unknown header in UDP with whole IP packets behind it.
    Udp = 5,
    Geneve = 6,
    L2tp = 7,
}

/// Tunnel kind and its identifier: GTP-U TEID, GRE key, VXLAN or Geneve VNI, L2TP tunnel and session; zero where it
/// has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    pub kind: TunnelKind,
    pub identifier: u32,
}

/// TCP options that the analysis uses (RFC 9293, RFC 7323, RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    pub maximum_segment_size: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    /// (TSval, TSecr)
    pub timestamps: Option<(u32, u32)>,
    /// Left and right edges as on the wire; the first `sack_count` are valid.
    pub sack_blocks: [(u32, u32); 4],
    pub sack_count: u8,
}

/// A decoded segment. Borrowed parts live until the reader is asked for the next one.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Index of its frame in the capture file, from 0 (non-TCP frames count).
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
    /// IPv4 TTL or IPv6 hop limit of the innermost IP header.
    pub ttl: u8,
    /// IPv4 identification; zero for IPv6.
    pub ip_id: u16,
    /// TOS or traffic class.
    pub traffic_class: u8,
    pub flags: u16,
    pub sequence: u32,
    pub acknowledgement: u32,
    /// As on the wire, not scaled.
    pub window: u16,
    /// TCP payload bytes on the wire (from the IP length, or from the frame's original length where offload left it zero).
    pub payload_length: u32,
    /// The part of the payload that the capture holds.
    pub payload: &'a [u8],
    /// The option bytes that the capture holds.
    pub options_raw: &'a [u8],
    pub options: TcpOptions,
    /// The TCP header itself was cut by the snap length (behind the window field: else there is no segment).
    pub header_truncated: bool,
    /// Part of the option list was not captured: an option that was not read may have been there all the same.
    pub options_truncated: bool,
    pub tunnel: Tunnel,
}

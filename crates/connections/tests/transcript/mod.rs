//! Conversations written down packet by packet, and what the analysis makes of them.

use pepscope_connections::{Analysis, Columns, Connections, Payload, Settings};
use pepscope_wire::segment::{flag, Segment, TcpOptions, Tunnel, TunnelKind};
use std::sync::OnceLock;

pub const ACK: u16 = flag::ACK;
pub const SYN: u16 = flag::SYN;
pub const SYN_ACK: u16 = flag::SYN | flag::ACK;
pub const FIN: u16 = flag::FIN | flag::ACK;
pub const RST: u16 = flag::RST;

pub const CLIENT_PORT: u16 = 40000;
pub const SERVER_PORT: u16 = 443;

/// Payload that depends on the stream offset alone and repeats every 65,521 bytes.
pub fn payload(offset: i64, length: u32) -> &'static [u8] {
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    let text = TEXT.get_or_init(|| (0..65_521 * 3_u64).map(|at| ((at % 65_521 * 0x9e37) >> 5) as u8).collect());
    let start = offset.rem_euclid(65_521) as usize;
    &text[start..start + (length as usize).min(65_521)]
}

/// The two initial sequence numbers of a conversation.
#[derive(Clone, Copy)]
pub struct Numbers {
    pub client: u32,
    pub server: u32,
}

pub const NUMBERS: Numbers = Numbers { client: 1000, server: 2_000_000 };

impl Numbers {
    /// A packet of the client; offsets as in the columns (a SYN is at -1).
    pub fn up(self, time_us: i64, flags: u16, offset: i64, acknowledged: i64, length: u32) -> Segment<'static> {
        let sequence = wire(self.client, offset);
        packet(true, time_us, flags, sequence, wire(self.server, acknowledged), payload(offset, length))
    }

    pub fn down(self, time_us: i64, flags: u16, offset: i64, acknowledged: i64, length: u32) -> Segment<'static> {
        let sequence = wire(self.server, offset);
        packet(false, time_us, flags, sequence, wire(self.client, acknowledged), payload(offset, length))
    }

    /// SYN at 0 ms, SYN-ACK at 20 ms, ACK at 21 ms; both offer windows scaled by 2^7.
    pub fn handshake(self) -> Vec<Segment<'static>> {
        let options = TcpOptions { window_scale: Some(7), maximum_segment_size: Some(1460), ..TcpOptions::default() };
        vec![
            Segment { options, options_raw: b"\x02\x04\x05\xb4\x03\x03\x07", ..self.up(0, SYN, -1, 0, 0) },
            Segment { options, ..self.down(20_000, SYN_ACK, -1, 0, 0) },
            self.up(21_000, ACK, 0, 0, 0),
        ]
    }
}

pub fn wire(initial: u32, offset: i64) -> u32 {
    initial.wrapping_add(1).wrapping_add(offset as u32)
}

pub fn up(time_us: i64, flags: u16, offset: i64, acknowledged: i64, length: u32) -> Segment<'static> {
    NUMBERS.up(time_us, flags, offset, acknowledged, length)
}

pub fn down(time_us: i64, flags: u16, offset: i64, acknowledged: i64, length: u32) -> Segment<'static> {
    NUMBERS.down(time_us, flags, offset, acknowledged, length)
}

pub fn timestamps(segment: Segment<'static>, tsval: u32, tsecr: u32) -> Segment<'static> {
    Segment { options: TcpOptions { timestamps: Some((tsval, tsecr)), ..segment.options }, ..segment }
}

pub fn address(last: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last]
}

fn packet(
    up: bool,
    time_us: i64,
    flags: u16,
    sequence: u32,
    acknowledgement: u32,
    payload: &'static [u8],
) -> Segment<'static> {
    let (client, server) = ((address(1), CLIENT_PORT), (address(2), SERVER_PORT));
    let (from, to) = if up { (client, server) } else { (server, client) };
    Segment {
        frame_index: 0,
        time_ns: time_us * 1000,
        ip_version: 4,
        source: from.0,
        destination: to.0,
        source_port: from.1,
        destination_port: to.1,
        ttl: if up { 64 } else { 57 },
        ip_id: 0,
        traffic_class: 0,
        flags,
        sequence,
        acknowledgement: if flags & flag::ACK == 0 { 0 } else { acknowledgement },
        window: 500,
        payload_length: payload.len() as u32,
        payload,
        options_raw: &[],
        options: TcpOptions::default(),
        header_truncated: false,
        options_truncated: false,
        tunnel: Tunnel { kind: TunnelKind::None, identifier: 0 },
    }
}

pub fn analyse(segments: &[Segment<'_>]) -> Connections {
    let mut analysis = Analysis::new(Settings { columns: true, payload: Payload::Sample });
    for (index, segment) in segments.iter().enumerate() {
        analysis.push(&Segment { frame_index: index as u64, ..*segment });
    }
    analysis.finish()
}

pub fn columns(connections: &Connections) -> Columns {
    match connections.columns() {
        Some(columns) => columns,
        None => unreachable!("columns were asked for"),
    }
}

/// Handshake, then the packets given: connections, and the marks of the packets given.
pub fn after_handshake(segments: &[Segment<'static>]) -> (Connections, Vec<u16>) {
    let mut all = NUMBERS.handshake();
    let opening = all.len();
    all.extend_from_slice(segments);
    let connections = analyse(&all);
    let marks = columns(&connections).marks[opening..].to_vec();
    (connections, marks)
}

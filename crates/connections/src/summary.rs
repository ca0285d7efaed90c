//! The summary of a connection; fields and meaning are those of `pepscope.captures.connections`.

use crate::connection::{Close, Connection};
use crate::missing::MissingPackets;
use crate::stream::side::NEVER;
use pepscope_wire::segment::TunnelKind;

/// What one side sent. Times are nanoseconds since the epoch; `None` where it was not seen.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSummary<'a> {
    pub packets: u64,
    pub payload_bytes: u64,
    pub stream_bytes: u64,
    pub data_packets: u64,
    pub pure_acknowledgements: u64,
    pub retransmitted_packets: u64,
    pub retransmitted_bytes: u64,
    pub reordered_packets: u64,
    pub duplicate_packets: u64,
    pub missed_bytes: u64,
    pub zero_windows: u32,
    pub zero_window_probes: u32,
    pub window_min_bytes: u32,
    pub window_max_bytes: u32,
    pub round_trip_time_samples: u64,
    pub round_trip_time_min_ns: Option<i64>,
    pub round_trip_time_mean_ns: Option<f64>,
    pub round_trip_time_max_ns: Option<i64>,
    pub first_time_ns: Option<i64>,
    pub first_data_time_ns: Option<i64>,
    pub last_data_time_ns: Option<i64>,
    pub initial_sequence_number: Option<u32>,
    pub syn_count: u32,
    pub syn_options: &'a [u8],
    pub maximum_segment_size: Option<u16>,
    pub window_scale: Option<u8>,
    pub window_shift: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: bool,
    pub options_captured: bool,
    pub options_truncated_packets: u64,
    pub missing_packets: MissingPackets,
    pub ttl: u8,
    pub fin_time_ns: Option<i64>,
    pub reset_time_ns: Option<i64>,
}

impl<'a> FlowSummary<'a> {
    /// What the side at this place sent.
    fn of(connection: &Connection, place: usize, options_store: &'a [u8]) -> Self {
        let side = &connection.sides[place];
        let sampled = side.round_trips.samples > 0;
        let at = side.opening.options_at as usize;
        let options = options_store.get(at..at + usize::from(side.opening.options_length)).unwrap_or(&[]);
        FlowSummary {
            packets: side.packets,
            payload_bytes: side.payload_bytes,
            stream_bytes: side.stream_bytes(),
            data_packets: side.data_packets,
            pure_acknowledgements: side.pure_acknowledgements,
            retransmitted_packets: side.retransmitted_packets,
            retransmitted_bytes: side.retransmitted_bytes,
            reordered_packets: side.reordered_packets,
            duplicate_packets: side.duplicate_packets,
            missed_bytes: side.missed_bytes(),
            zero_windows: side.window.times_zero,
            zero_window_probes: side.zero_window_probes,
            window_min_bytes: side.window.minimum_bytes(),
            window_max_bytes: side.window.maximum_bytes(),
            round_trip_time_samples: side.round_trips.samples,
            round_trip_time_min_ns: sampled.then_some(side.round_trips.minimum_ns),
            round_trip_time_mean_ns: side.round_trips.mean_ns(),
            round_trip_time_max_ns: sampled.then_some(side.round_trips.maximum_ns),
            first_time_ns: seen(side.first_time_ns),
            first_data_time_ns: seen(side.first_data_time_ns),
            last_data_time_ns: seen(side.last_data_time_ns),
            initial_sequence_number: side.initial_sequence_number(),
            syn_count: side.opening.syn_count,
            syn_options: options,
            maximum_segment_size: side.opening.maximum_segment_size,
            window_scale: side.opening.window_scale,
            window_shift: connection.window_shift(place),
            sack_permitted: side.opening.sack_permitted,
            timestamps: side.timestamps(),
            options_captured: side.opening.options_captured(),
            options_truncated_packets: side.options_truncated_packets,
            missing_packets: MissingPackets::of(side, &connection.sides[1 - place]),
            ttl: side.ttl,
            fin_time_ns: seen(side.fin_time_ns),
            reset_time_ns: seen(side.reset_time_ns),
        }
    }
}

fn seen(time_ns: i64) -> Option<i64> {
    (time_ns != NEVER).then_some(time_ns)
}

/// One TCP connection as one capture saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionSummary<'a> {
    /// Frame index of its first packet: connections are numbered in this order.
    pub first_frame: u64,
    pub ip_version: u8,
    /// IPv6, or IPv4 in the last four bytes behind `::ffff:0:0/96`.
    pub client_address: [u8; 16],
    pub client_port: u16,
    pub server_address: [u8; 16],
    pub server_port: u16,
    pub side_guessed: bool,
    pub first_time_ns: i64,
    pub last_time_ns: i64,
    pub packets: u64,
    pub close: Close,
    pub handshake_syn_ack_ns: Option<i64>,
    pub handshake_ack_ns: Option<i64>,
    pub tunnel: TunnelKind,
    pub tunnel_up: u32,
    pub tunnel_down: u32,
    pub up: FlowSummary<'a>,
    pub down: FlowSummary<'a>,
}

impl<'a> ConnectionSummary<'a> {
    pub(crate) fn of(connection: &Connection, options_store: &'a [u8]) -> Self {
        let (client, side_guessed) = connection.client_side();
        let endpoints = [connection.key.sender, connection.key.receiver];
        let (up, down) = (&connection.sides[client], &connection.sides[1 - client]);
        ConnectionSummary {
            first_frame: connection.first_frame,
            ip_version: connection.ip_version,
            client_address: endpoints[client].address(),
            client_port: endpoints[client].port(),
            server_address: endpoints[1 - client].address(),
            server_port: endpoints[1 - client].port(),
            side_guessed,
            first_time_ns: connection.first_time_ns,
            last_time_ns: connection.last_time_ns,
            packets: connection.packets(),
            close: connection.close(),
            handshake_syn_ack_ns: connection.syn_ack_ns,
            handshake_ack_ns: connection.handshake_ack_ns,
            tunnel: connection.tunnel,
            tunnel_up: up.tunnel_identifier,
            tunnel_down: down.tunnel_identifier,
            up: FlowSummary::of(connection, client, options_store),
            down: FlowSummary::of(connection, 1 - client, options_store),
        }
    }
}

/// Address as text, as `ipaddress` and `inet_ntop` write it.
pub fn address_text(address: [u8; 16], ip_version: u8) -> String {
    let address = std::net::Ipv6Addr::from(address);
    match address.to_ipv4_mapped().filter(|_| ip_version == 4) {
        Some(address) => {
            let mut text = String::with_capacity("255.255.255.255".len());
            push_dotted(&mut text, address.octets());
            text
        }
        None => address.to_string(),
    }
}

/// Appends an address and a port as `ip:port` or `[ipv6]:port`.
pub fn push_end_point(text: &mut String, address: [u8; 16], ip_version: u8, port: u16) {
    let address = std::net::Ipv6Addr::from(address);
    match address.to_ipv4_mapped().filter(|_| ip_version == 4) {
        Some(address) => push_dotted(text, address.octets()),
        None => text.extend(["[", &address.to_string(), "]"]),
    }
    text.push(':');
    text.push_str(itoa::Buffer::new().format(port));
}

/// IPv4 as text; formatting through `Display` takes ten times as long.
fn push_dotted(text: &mut String, octets: [u8; 4]) {
    let mut digits = itoa::Buffer::new();
    for (place, octet) in octets.into_iter().enumerate() {
        if place > 0 {
            text.push('.');
        }
        text.push_str(digits.format(octet));
    }
}

/// Name of a tunnel kind in results.
pub fn tunnel_name(kind: TunnelKind) -> &'static str {
    match kind {
        TunnelKind::None => "none",
        TunnelKind::GtpU => "gtp-u",
        TunnelKind::Gre => "gre",
        TunnelKind::IpInIp => "ip-in-ip",
        TunnelKind::Vxlan => "vxlan",
        TunnelKind::Udp => "udp",
        TunnelKind::Geneve => "geneve",
        TunnelKind::L2tp => "l2tp",
    }
}

impl Close {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Close::Fin => "fin",
            Close::Reset => "reset",
            Close::Open => "open",
        }
    }
}

/// Applies a macro to the fields of [`FlowSummary`] that are a number or a flag: all but `syn_options` and
/// `missing_packets`.
#[macro_export]
macro_rules! for_each_flow_field {
    ($apply:ident) => {
        $apply! {
            packets,
            payload_bytes,
            stream_bytes,
            data_packets,
            pure_acknowledgements,
            retransmitted_packets,
            retransmitted_bytes,
            reordered_packets,
            duplicate_packets,
            missed_bytes,
            zero_windows,
            zero_window_probes,
            window_min_bytes,
            window_max_bytes,
            round_trip_time_samples,
            round_trip_time_min_ns,
            round_trip_time_mean_ns,
            round_trip_time_max_ns,
            first_time_ns,
            first_data_time_ns,
            last_data_time_ns,
            initial_sequence_number,
            syn_count,
            maximum_segment_size,
            window_scale,
            window_shift,
            sack_permitted,
            timestamps,
            options_captured,
            options_truncated_packets,
            ttl,
            fin_time_ns,
            reset_time_ns
        }
    };
}

/// Applies a macro to the fields of [`ConnectionSummary`] that are a number or a flag, but the index of its first frame.
#[macro_export]
macro_rules! for_each_connection_field {
    ($apply:ident) => {
        $apply! {
            ip_version,
            client_port,
            server_port,
            side_guessed,
            first_time_ns,
            last_time_ns,
            packets,
            handshake_syn_ack_ns,
            handshake_ack_ns,
            tunnel_up,
            tunnel_down
        }
    };
}

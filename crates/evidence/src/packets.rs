//! Packets of one connection as columns, in capture order.

use crate::flows::staircases::Staircases;

/// Acknowledgement offset of a packet without the ACK flag.
pub const NO_ACKNOWLEDGEMENT: i64 = -(1 << 62);

/// Direction of what the client sends.
pub const UP: u8 = 0;
/// Direction of what the server sends.
pub const DOWN: u8 = 1;

/// TCP header flags as on the wire (RFC 9293, section 3.1).
pub mod flag {
    pub const FIN: u16 = 0x001;
    pub const SYN: u16 = 0x002;
    pub const RST: u16 = 0x004;
    pub const PSH: u16 = 0x008;
    pub const ACK: u16 = 0x010;
    pub const ECE: u16 = 0x040;
    pub const CWR: u16 = 0x080;
    pub const AE: u16 = 0x100;
}

/// What the analysis of the capture found of a packet.
pub mod mark {
    pub const RETRANSMISSION: u16 = 0x0001;
    pub const REORDERED: u16 = 0x0002;
    pub const DUPLICATE: u16 = 0x0004;
    pub const ZERO_WINDOW_PROBE: u16 = 0x0010;
    pub const DUPLICATE_ACK: u16 = 0x0040;
    pub const KEEP_ALIVE: u16 = 0x0020;
    pub const HAS_TIMESTAMPS: u16 = 0x0200;
    pub const OPTIONS_TRUNCATED: u16 = 0x1000;
}

/// Columns of one length; `pepscope.captures.packets.PacketColumns` says what they hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packets<'a> {
    pub time_ns: &'a [i64],
    pub direction: &'a [u8],
    pub sequence_offset: &'a [i64],
    pub acknowledgement_offset: &'a [i64],
    pub payload_bytes: &'a [u32],
    pub window_bytes: &'a [u32],
    pub flags: &'a [u16],
    pub tsval: &'a [u32],
    pub tsecr: &'a [u32],
    pub ip_id: &'a [u16],
    pub ttl: &'a [u8],
    pub payload_hash: &'a [u32],
    pub marks: &'a [u16],
    pub round_trip_time_ns: &'a [i64],
    /// Where what is made of these packets is kept; without it, it is made anew each time.
    pub staircases: Option<&'a Staircases>,
}

impl Packets<'_> {
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Whether all columns have one length.
    pub fn is_even(&self) -> bool {
        let lengths = [
            self.direction.len(),
            self.sequence_offset.len(),
            self.acknowledgement_offset.len(),
            self.payload_bytes.len(),
            self.window_bytes.len(),
            self.flags.len(),
            self.tsval.len(),
            self.tsecr.len(),
            self.ip_id.len(),
            self.ttl.len(),
            self.payload_hash.len(),
            self.marks.len(),
            self.round_trip_time_ns.len(),
        ];
        lengths.iter().all(|&length| length == self.len())
    }
}

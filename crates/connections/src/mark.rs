//! Findings on single packets of one capture; same bits as `pepscope.captures.packets.Mark`.

pub const RETRANSMISSION: u16 = 0x0001;
pub const REORDERED: u16 = 0x0002;
pub const DUPLICATE: u16 = 0x0004;
pub const ZERO_WINDOW: u16 = 0x0008;
pub const ZERO_WINDOW_PROBE: u16 = 0x0010;
pub const KEEP_ALIVE: u16 = 0x0020;
pub const DUPLICATE_ACK: u16 = 0x0040;
pub const WINDOW_UPDATE: u16 = 0x0080;
pub const GAP_BEFORE: u16 = 0x0100;
pub const HAS_TIMESTAMPS: u16 = 0x0200;
pub const HAS_SACK: u16 = 0x0400;
pub const HEADER_TRUNCATED: u16 = 0x0800;
pub const OPTIONS_TRUNCATED: u16 = 0x1000;

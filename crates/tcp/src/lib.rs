//! TCP endpoints, congestion control and proxies as state machines that do no I/O and never ask for the time.
//!
//! What they exchange is a [`Segment`]: the header fields that matter, with the real 32-bit sequence space, and the name
//! of the content that a payload is cut from instead of its bytes.

pub mod control;
mod flow_table;
mod packet;
pub mod proxy;
mod rewriter;
mod segment;
mod voice;

pub use flow_table::FLOW_LIMIT;
pub use packet::{Packet, VoiceFrame};
pub use rewriter::{AcknowledgementThinning, Rewriter, RewriterSettings};
pub use segment::{
    ContentId, Ecn, Flags, SackBlocks, Segment, Timestamps, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, TCP_HEADER_BYTES,
};
pub use voice::{VoiceCounts, VoiceReception, VoiceSettings, VoiceSource};

//! TCP endpoints, congestion control and proxies as state machines that do no I/O and never ask for the time.
//!
//! What they exchange is a [`Segment`]: the header fields that matter, with the real 32-bit sequence space, and the name
//! of the content that a payload is cut from instead of its bytes.

mod applications;
mod connection;
pub mod control;
mod flow_table;
mod host;
mod middleboxes;
mod packets;
mod receiving;
mod sending;
mod settings;
mod state;
mod statistics;
#[cfg(test)]
mod test_path;
mod timestamp_clock;

pub use applications::application::{Action, ApplicationCounts, Protocol};
pub use applications::script::{Pause, Reading, Script, ScriptError, Step};
pub use applications::streams::{Message, MessageRecord, Piece, Streams, Write};
pub use applications::voice::{VoiceCounts, VoiceReception, VoiceSettings, VoiceSource};
pub use connection::Connection;
pub use flow_table::FLOW_LIMIT;
pub use host::{
    DatagramFlowResult, DatagramFlowSettings, FlowResult, FlowSettings, Host, HostError, Outcome, ProcessingSettings,
    Role,
};
pub use middleboxes::acknowledger::{Acknowledger, AcknowledgerCounts, AcknowledgerSettings};
pub use middleboxes::proxy;
pub use middleboxes::rewriter::{AcknowledgementThinning, Rewriter, RewriterSettings};
pub use packets::content_digest::ContentDigest;
pub use packets::packet::{DatagramPacket, DatagramTransport, Packet, VoiceFrame};
pub use packets::packet_sink::PacketSink;
pub use packets::run::Run;
pub use packets::segment::{
    ContentId, Ecn, Flags, OptionLayout, SackBlocks, Segment, Timestamps, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES,
    TCP_HEADER_BYTES,
};
pub use settings::{
    DelayedAcknowledgement, EcnMode, Recovery, RetransmissionEstimator, RetransmissionSettings, Settings, Stack,
    TimestampSource,
};
pub use state::{Event, State};
pub use statistics::Statistics;

//! TCP endpoints, congestion control and proxies as state machines that do no I/O and never ask for the time.
//!
//! What they exchange is a [`Segment`]: the header fields that matter, with the real 32-bit sequence space, and the name
//! of the content that a payload is cut from instead of its bytes.

mod acknowledger;
mod application;
mod connection;
mod content_digest;
pub mod control;
mod flight;
mod flow_table;
mod host;
mod intervals;
mod packet;
mod packet_sink;
pub mod proxy;
mod reassembly;
mod receiver;
mod recovery;
mod retransmission_timer;
mod rewriter;
mod run;
mod script;
mod segment;
mod send_queue;
mod sender;
mod sequence;
mod settings;
mod state;
mod statistics;
mod streams;
#[cfg(test)]
mod test_path;
mod timestamp_clock;
mod voice;

pub use acknowledger::{Acknowledger, AcknowledgerCounts, AcknowledgerSettings};
pub use application::{Action, ApplicationCounts, Protocol};
pub use connection::Connection;
pub use content_digest::ContentDigest;
pub use flow_table::FLOW_LIMIT;
pub use host::{
    DatagramFlowResult, DatagramFlowSettings, FlowResult, FlowSettings, Host, HostError, Outcome, ProcessingSettings,
    Role,
};
pub use packet::{DatagramPacket, DatagramTransport, Packet, VoiceFrame};
pub use packet_sink::PacketSink;
pub use rewriter::{AcknowledgementThinning, Rewriter, RewriterSettings};
pub use run::Run;
pub use script::{Pause, Reading, Script, ScriptError, Step};
pub use segment::{
    ContentId, Ecn, Flags, OptionLayout, SackBlocks, Segment, Timestamps, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES,
    TCP_HEADER_BYTES,
};
pub use settings::{
    DelayedAcknowledgement, EcnMode, Recovery, RetransmissionEstimator, RetransmissionSettings, Settings, Stack,
};
pub use state::{Event, State};
pub use statistics::Statistics;
pub use streams::{Message, MessageRecord, Piece, Streams, Write};
pub use voice::{VoiceCounts, VoiceReception, VoiceSettings, VoiceSource};

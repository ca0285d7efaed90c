//! TCP segments to connections: sides, 64-bit stream offsets, round-trip times, retransmissions, reordering, gaps,
//! windows and how each connection closed, as one capture saw them.
//!
//! Push decoded segments in capture order into an [`Analysis`] and finish it. Nothing here reads files or clocks,
//! except [`spill`], which parks segments in temporary files.

mod analysis;
mod columns;
mod connection;
mod coverage;
mod datagram_flow;
pub mod json;
mod key;
pub mod mark;
mod missing;
mod opening;
mod packed;
mod parked;
mod parked_summary;
mod payload_sample;
mod reading;
mod retransmission;
mod round_trip;
mod sequence;
mod side;
pub mod spill;
mod staircase;
pub mod stored;
mod summary;
mod table;
mod window;

pub use analysis::{Analysis, Connections, Settings};
pub use columns::{Columns, PackedPackets, SackBlock};
pub use connection::Close;
pub use datagram_flow::{DatagramFlow, DatagramFlows, DatagramSide, KeptDatagram};
pub use missing::{MissingPackets, NotCaptured};
pub use payload_sample::{PayloadPieces, PIECE_BYTES};
pub use reading::NO_ACKNOWLEDGEMENT;
pub use staircase::{AcknowledgementColumns, AcknowledgementSteps, ByteRanges, DataColumns};
pub use summary::{address_text, tunnel_name, ConnectionSummary, FlowSummary};

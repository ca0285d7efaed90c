//! TCP segments to connections: sides, 64-bit stream offsets, round-trip times, retransmissions, reordering, gaps,
//! windows and how each connection closed, as one capture saw them.
//!
//! [`read_capture`] reads a capture within a limit of memory. Underneath, segments are pushed in capture order into an
//! [`Analysis`], which reads neither files nor clocks; [`spill`] keeps segments in temporary files.

mod analysis;
mod capture;
mod columns;
mod connection;
mod coverage;
mod datagram_flow;
mod frame_numbers;
mod in_order;
pub mod json;
mod key;
pub mod mark;
mod missing;
mod opening;
mod oversize;
mod packet_records;
mod partitioned;
mod payload_sample;
mod pool;
mod positioned;
mod read;
mod reading;
mod references;
mod retransmission;
mod round_trip;
mod segment_record;
mod sequence;
mod side;
pub mod spill;
pub mod stored;
mod summary;
mod summary_record;
mod table;
mod window;

pub use analysis::{Analysis, Connections, Settings};
pub use capture::{AnalysedCapture, LookupError};
pub use columns::{Columns, EncodedPackets, SackBlock};
pub use connection::Close;
pub use datagram_flow::{DatagramFlow, DatagramFlows, DatagramSide, KeptDatagram};
pub use missing::{MissingPackets, NotCaptured};
pub use oversize::{Oversize, Size};
pub use payload_sample::{PayloadPieces, PIECE_BYTES};
pub use read::{read_capture, ReadError, Source};
pub use reading::NO_ACKNOWLEDGEMENT;
pub use references::{Reference, ReferenceKind, References};
pub use summary::{address_text, tunnel_name, ConnectionSummary, FlowSummary};

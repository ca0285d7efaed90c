//! TCP segments to connections: sides, 64-bit stream offsets, round-trip times, retransmissions, reordering, gaps,
//! windows and how each connection closed, as one capture saw them.
//!
//! [`read_capture`] reads a capture within a limit of memory. Underneath, segments are pushed in capture order into an
//! [`Analysis`], which reads neither files nor clocks; [`spill`] keeps segments in temporary files.

mod analysis;
mod capture;
mod connection;
mod datagram_flow;
pub mod json;
mod key;
pub mod mark;
mod missing;
mod read;
mod records;
mod references;
mod storage;
mod stream;
mod summary;
mod table;

pub use analysis::{Analysis, Connections, Settings};
pub use capture::{AnalysedCapture, LookupError};
pub use connection::Close;
pub use datagram_flow::{DatagramFlow, DatagramFlows, DatagramSide, KeptDatagram};
pub use missing::{MissingPackets, NotCaptured};
pub use read::{read_capture, ReadError, Source};
pub use records::columns::{Columns, SackBlock};
pub use records::packet_records::Row;
pub use records::packet_store::EncodedPackets;
pub use records::payload_sample::{PayloadPieces, PIECE_BYTES};
pub use records::piece_choice::{ChoosePieces, Offered, Payload};
pub use references::{Reference, ReferenceKind, References};
pub use storage::oversize::{Oversize, Size};
pub use storage::spill;
pub use storage::stored;
pub use stream::reading::NO_ACKNOWLEDGEMENT;
pub use summary::{address_text, push_end_point, tunnel_name, ConnectionSummary, FlowSummary};

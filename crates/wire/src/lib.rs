//! Capture files and packet headers: bytes to TCP segments, no I/O beyond reading, no panics on any input.
//!
//! `CaptureReader` reads files; `Decoder` takes single frames, wherever they come from.

pub mod bpf;
mod content;
mod datagram;
mod decoding;
mod error;
mod files;
mod headers;
pub mod segment;
mod tally;

pub use content::Content;
pub use datagram::{Datagram, DatagramObserver};
pub use decoding::decode::{Decoder, Frame};
pub use decoding::dissect::{dissect, Dissector, FragmentPlace, WholeDatagram};
pub use decoding::plain::PlainSegment;
pub use error::{CaptureError, Damage, Reject};
pub use files::annotated::{copy_with_comments, Comments, Copied, CopyError};
pub use files::compression;
pub use files::editable::{CapturedFrame, EditableCapture};
pub use files::reader::{CaptureReader, SegmentVisitor};
pub use files::series::{begins_like_capture, Overlap, PartTally};
pub use headers::echo::Echo;
pub use headers::header::{Header, HeaderKind};
pub use headers::link::{link_type_name, KNOWN_LINK_TYPES};
pub use headers::tcp;
pub use tally::{ContentCount, LinkTypeCount, Tally};

//! Capture files and packet headers: bytes to TCP segments, no I/O beyond reading, no panics on any input.
//!
//! `CaptureReader` reads files; `Decoder` takes single frames, wherever they come from.

mod annotated;
pub mod bpf;
pub mod compression;
mod container;
mod content;
mod datagram;
mod decode;
mod dissect;
mod echo;
mod editable;
mod error;
mod ethertype;
mod fast_path;
mod fragments;
mod header;
mod inner_packet;
mod ip;
mod layer;
mod link;
mod opening;
mod plain;
mod position;
mod reader;
pub mod segment;
mod series;
mod tally;
pub mod tcp;
mod tunnel;
mod view;
mod window;
mod wireless;

pub use annotated::{copy_with_comments, Comments, Copied, CopyError};
pub use content::Content;
pub use datagram::{Datagram, DatagramObserver};
pub use decode::{Decoder, Frame};
pub use dissect::{dissect, Dissector, FragmentPlace, WholeDatagram};
pub use echo::Echo;
pub use editable::{CapturedFrame, EditableCapture};
pub use error::{CaptureError, Damage, Reject};
pub use header::{Header, HeaderKind};
pub use link::{link_type_name, KNOWN_LINK_TYPES};
pub use plain::PlainSegment;
pub use reader::{CaptureReader, SegmentVisitor};
pub use series::{begins_like_capture, Overlap, PartTally};
pub use tally::{ContentCount, LinkTypeCount, Tally};

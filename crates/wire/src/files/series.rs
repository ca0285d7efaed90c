//! The parts of a capture that a tool divided into files: `tcpdump -C` and `-G`, dumpcap's ring buffers.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::error::{CaptureError, Damage};
use crate::files::opening::FileSource;
use crate::files::reader::CaptureReader;

/// By so much less than the part before has come to the next one may begin: packets that several processors hand over
/// are not quite in order.
const OVERLAP_ALLOWED_NS: i64 = 1_000_000_000;

/// A file that continues a capture.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    /// Time of its first packet.
    first_ns: Option<i64>,
}

/// Parts that are still to be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    waiting: VecDeque<Part>,
    /// The part that is read.
    latest: String,
    pub(crate) file_bytes: Option<u64>,
}

/// A part of a capture that begins before the one read before it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    pub part: String,
    pub part_before: String,
    /// By how much, in nanoseconds.
    pub by_ns: i64,
}

/// What is peculiar of the parts of a capture that has several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartTally {
    /// The parts in their order, by file name, each with the number of frames before it.
    pub begins: Vec<(String, u64)>,
    pub overlaps: Vec<Overlap>,
    /// Where parts broke off, by file name; the part behind each was read all the same.
    pub damage: Vec<(String, Damage)>,
}

impl Parts {
    /// The files in the order of their first packets; those without packets stand last.
    pub(crate) fn in_order(paths: &[PathBuf]) -> Result<Parts, CaptureError> {
        let mut waiting = Vec::with_capacity(paths.len());
        let mut file_bytes = Some(0);
        for path in paths {
            let mut reader = CaptureReader::open(path)?;
            file_bytes = file_bytes.zip(reader.file_bytes()).map(|(sum, bytes)| sum + bytes);
            waiting.push(Part { path: path.clone(), first_ns: reader.first_time_ns() });
        }
        // Names decide between parts that begin at the same time.
        waiting.sort_by_key(|part| (part.first_ns.unwrap_or(i64::MAX), part.path.clone()));
        Ok(Parts { waiting: waiting.into(), latest: String::new(), file_bytes })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next part to be read.
    pub(crate) fn next(&mut self) -> Option<Part> {
        let part = self.waiting.pop_front()?;
        self.latest = part.path.display().to_string();
        Some(part)
    }

    /// The part that is read.
    pub(crate) fn latest(&self) -> &str {
        &self.latest
    }
}

impl Part {
    /// How far the part begins before `last_ns`, the end of what was read so far, if further than it may.
    pub(crate) fn overlap_ns(&self, last_ns: Option<i64>) -> Option<i64> {
        let by_ns = last_ns?.saturating_sub(self.first_ns?);
        (by_ns > OVERLAP_ALLOWED_NS).then_some(by_ns)
    }
}

/// Whether a file begins like a capture that can be read.
pub fn begins_like_capture(path: &Path) -> bool {
    FileSource::open(path).is_ok_and(|file| CaptureReader::from_reader(file.source).is_ok())
}

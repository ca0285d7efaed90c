//! Summaries of more connections than memory may hold, in a temporary file; 24 bytes a connection stay in memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::analysis::Connections;
use crate::missing::NotCaptured;
use crate::storage::positioned::read_exact_at;
use crate::storage::spill::{SpillError, TemporaryBytes};
use crate::storage::summary_record::{decode_summary, encode_summary};
use crate::summary::ConnectionSummary;

#[derive(Clone, Copy, Debug)]
struct Record {
    first_frame: u64,
    offset: u64,
    length: u32,
    part: u16,
    place: u32,
}

/// Takes the connections of one part after the other.
pub struct SummaryStore {
    directory: PathBuf,
    writer: BufWriter<File>,
    written_bytes: u64,
    records: Vec<Record>,
    scratch: Vec<u8>,
    not_captured: NotCaptured,
    of_others: TemporaryBytes,
}

impl SummaryStore {
    /// Open a temporary file in `directory`, by default the system's.
    pub fn create(directory: Option<&Path>) -> Result<SummaryStore, SpillError> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory)
            .map_err(|source| SpillError::Create { directory: directory.clone(), source })?;
        let writer = BufWriter::with_capacity(1 << 18, file);
        Ok(SummaryStore {
            directory,
            writer,
            written_bytes: 0,
            records: Vec::new(),
            scratch: Vec::new(),
            not_captured: NotCaptured::default(),
            of_others: TemporaryBytes::default(),
        })
    }

    /// Put the connections of the part with this number away.
    pub fn add(&mut self, part: u16, connections: &Connections) -> Result<(), SpillError> {
        for (place, summary) in connections.summaries().enumerate() {
            self.not_captured.count(&summary);
            self.scratch.clear();
            encode_summary(&summary, &mut self.scratch);
            self.writer.write_all(&self.scratch).map_err(|source| SpillError::Write {
                directory: self.directory.clone(),
                written_bytes: self.written_bytes,
                source,
            })?;
            self.records.push(Record {
                first_frame: summary.first_frame,
                offset: self.written_bytes,
                length: self.scratch.len() as u32,
                part,
                place: place as u32,
            });
            self.written_bytes += self.scratch.len() as u64;
        }
        Ok(())
    }

    /// Counts the bytes of temporary files that are gone once all parts were added.
    pub(crate) fn count_traffic(&mut self, traffic: TemporaryBytes) {
        self.of_others = self.of_others + traffic;
    }

    /// All parts were added; the connections are ranked by first packet, as one analysis of the whole would.
    pub fn finish(mut self) -> Result<StoredSummaries, SpillError> {
        self.records.sort_unstable_by_key(|record| record.first_frame);
        let file = self.writer.into_inner().map_err(|error| SpillError::Write {
            directory: self.directory.clone(),
            written_bytes: self.written_bytes,
            source: error.into_error(),
        })?;
        Ok(StoredSummaries {
            directory: self.directory,
            file,
            records: self.records,
            not_captured: self.not_captured,
            before: self.of_others + TemporaryBytes { written: self.written_bytes, read: 0 },
            read_bytes: AtomicU64::new(0),
        })
    }
}

/// Summaries in a temporary file; dropping it frees them.
#[derive(Debug)]
pub struct StoredSummaries {
    directory: PathBuf,
    file: File,
    records: Vec<Record>,
    not_captured: NotCaptured,
    /// Bytes of this file, and of those that are gone.
    before: TemporaryBytes,
    read_bytes: AtomicU64,
}

impl StoredSummaries {
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// What was not captured of these connections.
    pub fn not_captured(&self) -> NotCaptured {
        self.not_captured
    }

    /// Bytes written, and those that this process has read so far.
    pub fn traffic(&self) -> TemporaryBytes {
        self.before + TemporaryBytes { written: 0, read: self.read_bytes.load(Ordering::Relaxed) }
    }

    /// Part of a connection, and its place in there; `None` beyond the last.
    pub fn place(&self, index: usize) -> Option<(usize, usize)> {
        self.records.get(index).map(|record| (usize::from(record.part), record.place as usize))
    }

    /// The connections of each of so many parts, by their places there.
    pub fn members(&self, parts: usize) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); parts];
        for (index, record) in self.records.iter().enumerate() {
            if let Some(part) = members.get_mut(usize::from(record.part)) {
                part.push((record.place, index));
            }
        }
        let ordered = members.into_iter().map(|mut part| {
            part.sort_unstable();
            part.into_iter().map(|(_, index)| index).collect()
        });
        ordered.collect()
    }

    /// The bytes of one connection, for `decode`; `None` beyond the last.
    pub fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>, SpillError> {
        let Some(record) = self.records.get(index) else { return Ok(None) };
        let mut bytes = vec![0; record.length as usize];
        read_exact_at(&self.file, &mut bytes, record.offset)
            .map_err(|source| SpillError::Read { directory: self.directory.clone(), source })?;
        self.read_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(Some(bytes))
    }

    /// The summary that `bytes` gave.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Result<ConnectionSummary<'a>, SpillError> {
        decode_summary(bytes).ok_or_else(|| SpillError::Corrupt { directory: self.directory.clone(), offset: 0 })
    }
}

//! Captures larger than memory: segments in temporary files, partitioned by connection.
//!
//! All packets between two endpoints go to the same partition, in capture order, so each partition can be analysed by
//! itself, as often as needed, and gives the same as the whole capture would. The files have no names (they are
//! removed as soon as they are created) and vanish with the process, however it ends.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use pepscope_wire::segment::Segment;

use crate::analysis::{Analysis, Connections, Settings};
use crate::key::Key;
use crate::records::segment_record::{decode_segment, encode_segment, SCRATCH_BYTES};
use crate::storage::positioned::read_exact_at;

/// Buffer of each file while writing, and least size of a read.
pub(crate) const BUFFER_BYTES: usize = 1 << 16;
const READ_BYTES: usize = 1 << 20;

/// What can go wrong with the temporary files.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    #[error("cannot create a temporary file in {}: {source}", directory.display())]
    Create { directory: PathBuf, source: io::Error },
    #[error("cannot write to a temporary file in {} ({written_bytes} bytes so far): {source}", directory.display())]
    Write { directory: PathBuf, written_bytes: u64, source: io::Error },
    #[error("cannot read a temporary file in {} back: {source}", directory.display())]
    Read { directory: PathBuf, source: io::Error },
    #[error("a temporary file in {} is not as it was written at byte {offset}", directory.display())]
    Corrupt { directory: PathBuf, offset: u64 },
}

/// Bytes written to temporary files, and read back from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemporaryBytes {
    pub written: u64,
    pub read: u64,
}

impl std::ops::Add for TemporaryBytes {
    type Output = TemporaryBytes;

    fn add(self, other: TemporaryBytes) -> TemporaryBytes {
        TemporaryBytes { written: self.written + other.written, read: self.read + other.read }
    }
}

/// Writes segments to temporary files in capture order.
pub struct Spill {
    directory: PathBuf,
    writers: Vec<BufWriter<File>>,
    segments: Vec<u64>,
    bytes: Vec<u64>,
    scratch: Vec<u8>,
}

impl Spill {
    /// Open `partitions` (at least one) temporary files in `directory`, by default the system's.
    pub fn create(directory: Option<&Path>, partitions: usize) -> Result<Spill, SpillError> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let partitions = partitions.max(1);
        let mut writers = Vec::with_capacity(partitions);
        for _ in 0..partitions {
            let file = tempfile::tempfile_in(&directory)
                .map_err(|source| SpillError::Create { directory: directory.clone(), source })?;
            writers.push(BufWriter::with_capacity(BUFFER_BYTES, file));
        }
        Ok(Spill {
            directory,
            writers,
            segments: vec![0; partitions],
            bytes: vec![0; partitions],
            scratch: Vec::with_capacity(SCRATCH_BYTES),
        })
    }

    /// Writes one segment.
    pub fn push(&mut self, segment: &Segment<'_>) -> Result<(), SpillError> {
        // The table takes its slots from the upper half of the hash and its tags from the lower one.
        let partition = (Key::of(segment).hash() >> 8) as usize % self.writers.len();
        self.scratch.clear();
        encode_segment(segment, &mut self.scratch);
        self.segments[partition] += 1;
        self.bytes[partition] += self.scratch.len() as u64;
        self.writers[partition].write_all(&self.scratch).map_err(|source| self.write_error(source))
    }

    /// Segments written so far.
    pub fn segment_count(&self) -> u64 {
        self.segments.iter().sum()
    }

    fn write_error(&self, source: io::Error) -> SpillError {
        let written_bytes = self.bytes.iter().sum();
        SpillError::Write { directory: self.directory.clone(), written_bytes, source }
    }

    /// Ends the writing.
    pub fn finish(mut self) -> Result<Partitions, SpillError> {
        let mut files = Vec::with_capacity(self.writers.len());
        for writer in std::mem::take(&mut self.writers) {
            let file = writer.into_inner().map_err(|error| self.write_error(error.into_error()))?;
            files.push(file);
        }
        let read_bytes = AtomicU64::new(0);
        Ok(Partitions { directory: self.directory, files, segments: self.segments, bytes: self.bytes, read_bytes })
    }
}

/// A capture's segments in temporary files; dropping it frees them.
#[derive(Debug)]
pub struct Partitions {
    directory: PathBuf,
    files: Vec<File>,
    segments: Vec<u64>,
    bytes: Vec<u64>,
    read_bytes: AtomicU64,
}

impl Partitions {
    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Segments in a partition; 0 beyond the last.
    pub fn segment_count(&self, partition: usize) -> u64 {
        self.segments.get(partition).copied().unwrap_or(0)
    }

    /// Bytes in the temporary files.
    pub fn file_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Bytes in the temporary files, and those that this process has read so far.
    pub fn traffic(&self) -> TemporaryBytes {
        TemporaryBytes { written: self.file_bytes(), read: self.read_bytes.load(Ordering::Relaxed) }
    }

    /// The segments of a partition in capture order; none beyond the last.
    pub fn read(&self, partition: usize) -> PartitionReader<'_> {
        let end = self.bytes.get(partition).copied().unwrap_or(0);
        PartitionReader::new(&self.directory, self.files.get(partition), &self.read_bytes, 0..end)
    }

    /// Analyse one partition.
    pub fn analyse(&self, partition: usize, settings: Settings) -> Result<Connections, SpillError> {
        let mut analysis = Analysis::new(settings);
        let mut reader = self.read(partition);
        while let Some(segment) = reader.next_segment()? {
            analysis.push(&segment);
        }
        let mut doubted = analysis.doubted();
        if !doubted.is_empty() {
            analysis = Analysis::new(settings);
            self.push_in_time(partition, &mut doubted, &mut analysis)?;
        }
        Ok(analysis.finish())
    }

    /// Where the temporary files are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Reads a partition back.
pub struct PartitionReader<'a> {
    directory: &'a Path,
    file: Option<&'a File>,
    /// Of all partitions together.
    read_bytes: &'a AtomicU64,
    end: u64,
    /// File offset of the end of `buffer`.
    offset: u64,
    buffer: Vec<u8>,
    position: usize,
}

impl<'a> PartitionReader<'a> {
    /// Reads the records in these bytes of a file; none without a file.
    pub(crate) fn new(
        directory: &'a Path,
        file: Option<&'a File>,
        read_bytes: &'a AtomicU64,
        Range { start: offset, end }: Range<u64>,
    ) -> Self {
        PartitionReader { directory, file, read_bytes, end, offset, buffer: Vec::new(), position: 0 }
    }

    /// The next segment; `None` at the end.
    pub fn next_segment(&mut self) -> Result<Option<Segment<'_>>, SpillError> {
        if !self.is_ready()? {
            return Ok(None);
        }
        let corrupt = self.corrupt();
        let (segment, length) = decode_segment(&self.buffer[self.position..]).ok_or_else(corrupt)?;
        self.position += length;
        Ok(Some(segment))
    }

    /// The time of the next segment; `None` at the end.
    pub(crate) fn next_time_ns(&mut self) -> Result<Option<i64>, SpillError> {
        if !self.is_ready()? {
            return Ok(None);
        }
        let (segment, _) = decode_segment(&self.buffer[self.position..]).ok_or_else(self.corrupt())?;
        Ok(Some(segment.time_ns))
    }

    /// Whether the next record is in the buffer.
    fn is_ready(&mut self) -> Result<bool, SpillError> {
        if self.buffer.len() - self.position < SCRATCH_BYTES && self.offset < self.end {
            self.fill()?;
        }
        Ok(self.position < self.buffer.len())
    }

    /// Makes the error that the next record cannot be read.
    fn corrupt(&self) -> impl FnOnce() -> SpillError + use<'a> {
        let (directory, offset) = (self.directory, self.offset - (self.buffer.len() - self.position) as u64);
        move || SpillError::Corrupt { directory: directory.to_path_buf(), offset }
    }

    fn fill(&mut self) -> Result<(), SpillError> {
        let Some(file) = self.file else { return Ok(()) };
        self.buffer.drain(..self.position);
        self.position = 0;
        let kept = self.buffer.len();
        let wanted = (self.end - self.offset).min(READ_BYTES as u64) as usize;
        self.buffer.resize(kept + wanted, 0);
        read_exact_at(file, &mut self.buffer[kept..], self.offset)
            .map_err(|source| SpillError::Read { directory: self.directory.to_path_buf(), source })?;
        self.offset += wanted as u64;
        self.read_bytes.fetch_add(wanted as u64, Ordering::Relaxed);
        Ok(())
    }
}

//! Segments in the order of their times, however many: sorted runs in a temporary file, which are merged as they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use pepscope_wire::segment::Segment;

use crate::records::segment_record::encode_segment;
use crate::storage::spill::{PartitionReader, SpillError, BUFFER_BYTES};

/// What is sorted in memory at once: as much as the buffers of a reader take for each run when a GiB is merged.
pub(crate) const RUN_BYTES: usize = 1 << 25;

/// A segment's place in the run in the making.
struct Place {
    time_ns: i64,
    record: Range<usize>,
}

/// Takes segments in capture order.
pub(crate) struct Sorter {
    directory: PathBuf,
    writer: BufWriter<File>,
    run_bytes: usize,
    /// Bytes of the file.
    runs: Vec<Range<u64>>,
    records: Vec<u8>,
    places: Vec<Place>,
}

impl Sorter {
    /// Opens a temporary file in `directory`; `run_bytes` are sorted in memory at once.
    pub(crate) fn create(directory: &Path, run_bytes: usize) -> Result<Sorter, SpillError> {
        let file = tempfile::tempfile_in(directory)
            .map_err(|source| SpillError::Create { directory: directory.to_path_buf(), source })?;
        Ok(Sorter {
            directory: directory.to_path_buf(),
            writer: BufWriter::with_capacity(BUFFER_BYTES, file),
            run_bytes,
            runs: Vec::new(),
            records: Vec::new(),
            places: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, segment: &Segment<'_>) -> Result<(), SpillError> {
        let start = self.records.len();
        encode_segment(segment, &mut self.records);
        self.places.push(Place { time_ns: segment.time_ns, record: start..self.records.len() });
        if self.records.len() >= self.run_bytes {
            self.write_run()?;
        }
        Ok(())
    }

    fn write_run(&mut self) -> Result<(), SpillError> {
        self.places.sort_by_key(|place| place.time_ns);
        for Place { record, .. } in std::mem::take(&mut self.places) {
            self.writer.write_all(&self.records[record]).map_err(|source| self.write_error(source))?;
        }
        let begin = self.written_bytes();
        self.runs.push(begin..begin + self.records.len() as u64);
        self.records.clear();
        Ok(())
    }

    fn written_bytes(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    fn write_error(&self, source: io::Error) -> SpillError {
        SpillError::Write { directory: self.directory.clone(), written_bytes: self.written_bytes(), source }
    }

    /// Nothing follows.
    pub(crate) fn finish(mut self) -> Result<Sorted, SpillError> {
        if !self.places.is_empty() {
            self.write_run()?;
        }
        if let Err(source) = self.writer.flush() {
            return Err(self.write_error(source));
        }
        let (file, _) = self.writer.into_parts();
        Ok(Sorted { directory: self.directory, file, runs: self.runs })
    }
}

/// Sorted segments, to be read as often as needed.
pub(crate) struct Sorted {
    directory: PathBuf,
    file: File,
    runs: Vec<Range<u64>>,
}

impl Sorted {
    /// Hands the segments to `visit` in the order of time, those of one time in capture order.
    pub(crate) fn visit(&self, mut visit: impl FnMut(&Segment<'_>)) -> Result<(), SpillError> {
        let read_bytes = AtomicU64::new(0);
        let open = |run: &Range<u64>| PartitionReader::new(&self.directory, Some(&self.file), &read_bytes, run.clone());
        let mut readers: Vec<PartitionReader<'_>> = self.runs.iter().map(open).collect();
        let mut earliest = BinaryHeap::new();
        for (run, reader) in readers.iter_mut().enumerate() {
            earliest.extend(reader.next_time_ns()?.map(|time_ns| Reverse((time_ns, run))));
        }
        while let Some(Reverse((_, run))) = earliest.pop() {
            let reader = &mut readers[run];
            if let Some(segment) = reader.next_segment()? {
                visit(&segment);
            }
            earliest.extend(reader.next_time_ns()?.map(|time_ns| Reverse((time_ns, run))));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pepscope_wire::segment::{TcpOptions, Tunnel, TunnelKind};
    use proptest::prelude::*;

    fn segment(frame_index: u64, time_ns: i64) -> Segment<'static> {
        Segment {
            frame_index,
            time_ns,
            ip_version: 4,
            source: [1; 16],
            destination: [2; 16],
            source_port: 1,
            destination_port: 2,
            ttl: 64,
            ip_id: 0,
            traffic_class: 0,
            flags: 16,
            sequence: 0,
            acknowledgement: 0,
            window: 1,
            payload_length: 3,
            payload: b"abc",
            options_raw: &[],
            options: TcpOptions::default(),
            header_truncated: false,
            options_truncated: false,
            tunnel: Tunnel { kind: TunnelKind::None, identifier: 0 },
        }
    }

    proptest! {
        #[test]
        fn runs_of_any_size_give_one_order(
            times in prop::collection::vec(prop_oneof![0..9_i64, any::<i64>()], 0..120),
            run_bytes in 1..3000_usize,
        ) {
            let Ok(mut sorter) = Sorter::create(&std::env::temp_dir(), run_bytes) else { unreachable!() };
            for (frame, &time_ns) in times.iter().enumerate() {
                prop_assert!(sorter.push(&segment(frame as u64, time_ns)).is_ok());
            }
            let Ok(sorted) = sorter.finish() else { unreachable!() };
            let mut expected: Vec<(i64, u64)> = (0..).zip(&times).map(|(frame, &time_ns)| (time_ns, frame)).collect();
            expected.sort_unstable();
            for _ in 0..2 {
                let mut seen = Vec::new();
                prop_assert!(sorted.visit(|segment| seen.push((segment.time_ns, segment.frame_index))).is_ok());
                prop_assert_eq!(&seen, &expected);
            }
        }
    }
}

//! Capture files: room on the disk is asked for ahead of what is written, which saves the kernel most of its work.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

#[cfg(target_os = "linux")]
use rustix::fs::{fallocate, FallocateFlags};

/// Files that stay shorter get no room ahead.
const SMALL_BYTES: u64 = 1 << 20;
/// Most room ahead: what a run that is killed may leave allocated behind the end of its file.
#[cfg(target_os = "linux")]
const MOST_AHEAD_BYTES: u64 = 1 << 26;

/// A file that is written from its beginning to its end.
pub struct CaptureFile {
    file: File,
    written: u64,
    /// Up to here room was asked for.
    allocated: u64,
    /// As long as the file system answers.
    allocates: bool,
}

impl CaptureFile {
    /// Makes the file, or empties the one that is there.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, written: 0, allocated: 0, allocates: cfg!(target_os = "linux") })
    }

    /// Asks for as much room as was written already. Where that fails (a pipe, another file system, a full disk),
    /// writing continues without, and reports the error later.
    #[cfg(target_os = "linux")]
    fn allocate(&mut self, end: u64) {
        let start = self.allocated.max(self.written);
        let bytes = end.clamp(SMALL_BYTES, MOST_AHEAD_BYTES);
        self.allocates = fallocate(&self.file, FallocateFlags::KEEP_SIZE, start, bytes).is_ok();
        if self.allocates {
            self.allocated = start + bytes;
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(&mut self, _end: u64) {}

    /// Gives back what was asked for and not used.
    fn trim(&mut self) -> io::Result<()> {
        if self.allocated > self.written {
            self.allocated = 0;
            self.file.set_len(self.written)?;
        }
        Ok(())
    }
}

impl Write for CaptureFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.written + bytes.len() as u64;
        if self.allocates && end > SMALL_BYTES && end > self.allocated {
            self.allocate(end);
        }
        let count = self.file.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    /// Ends the file.
    fn flush(&mut self) -> io::Result<()> {
        self.trim()
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        // After a failure nothing more can be done about another one.
        let _ = self.trim();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{CaptureFile, SMALL_BYTES};
    use std::io::{ErrorKind, Write};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    #[test]
    fn a_file_is_as_long_as_what_was_written_and_takes_no_more_room() -> std::io::Result<()> {
        let path = std::env::temp_dir().join(format!("pepscope-capture-file-{}", std::process::id()));
        std::fs::write(&path, "what was there before")?;
        for bytes in [10, SMALL_BYTES as usize, 5 * SMALL_BYTES as usize + 7] {
            for flushes in [true, false] {
                let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
                let mut file = CaptureFile::create(&path)?;
                for chunk in content.chunks(100_000) {
                    file.write_all(chunk)?;
                }
                if flushes {
                    file.flush()?;
                }
                drop(file);
                assert!(std::fs::read(&path)? == content);
                let file = std::fs::File::open(&path)?;
                file.sync_all()?; // before that, no blocks may be counted
                assert!(file.metadata()?.blocks() * 512 < bytes as u64 + SMALL_BYTES);
            }
        }
        std::fs::remove_file(&path)
    }

    #[test]
    fn a_full_device_is_reported_by_the_write() -> std::io::Result<()> {
        let mut file = CaptureFile::create(Path::new("/dev/full"))?;
        let chunk = vec![0; 2 * SMALL_BYTES as usize];
        assert_eq!(file.write_all(&chunk).map_err(|error| error.kind()), Err(ErrorKind::StorageFull));
        file.flush()
    }
}

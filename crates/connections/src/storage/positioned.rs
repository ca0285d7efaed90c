//! Reading a file at a position, whatever other readers of it do.

use std::fs::File;
use std::io;

/// Fills `buffer` from `offset` on.
///
/// # Errors
/// If the system refuses, or the file ends before.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills `buffer` from `offset` on. Windows moves the file's position too, which nothing here relies on.
///
/// # Errors
/// If the system refuses, or the file ends before.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                buffer = buffer.get_mut(read..).unwrap_or_default();
                offset = offset.saturating_add(read as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

//! Copies of captures with comments.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use pepscope_wire::{Comments, Copied, CopyError};
use pyo3::prelude::*;

use crate::captures::read::CaptureError;

/// Frames copied, frame numbers that could not get their comment, and where the capture broke off, with the reason.
type CopiedRow = (u64, Vec<u64>, Option<(u64, String)>);

/// Write a copy of a capture as pcapng to a file that exists; `frames` are comments by frame number, from 1.
#[pyfunction]
pub(crate) fn copy_with_comments(
    py: Python<'_>,
    path: PathBuf,
    destination: PathBuf,
    section: String,
    interface: String,
    frames: HashMap<u64, String>,
    application: String,
) -> PyResult<CopiedRow> {
    const BUFFER_BYTES: usize = 1 << 18;
    let frames = frames.into_iter().map(|(number, comment)| (number.wrapping_sub(1), comment)).collect();
    let comments = Comments { section, interface, frames, application };
    let copied = py.detach(|| {
        let file = OpenOptions::new().write(true).open(destination)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        let copied = pepscope_wire::copy_with_comments(&path, &comments, &mut out)?;
        out.flush()?;
        Ok(copied)
    });
    match copied {
        Ok(Copied { frames, without_room, damage }) => Ok((
            frames,
            without_room.into_iter().map(|index| index + 1).collect(),
            damage.map(|damage| (damage.byte_offset, damage.cause)),
        )),
        Err(CopyError::Capture(error)) => Err(CaptureError::new_err(error.to_string())),
        Err(CopyError::Write(error)) => Err(error.into()),
    }
}

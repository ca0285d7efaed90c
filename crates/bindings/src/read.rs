//! Reading and analysis, with the GIL released.

use std::collections::HashMap;
use std::path::PathBuf;

use pepscope_connections::{Analysis, Settings};
use pepscope_wire::bpf::{Filter, Instruction, Program};
use pepscope_wire::{CaptureReader, Tally};
use pyo3::prelude::*;

use crate::capture::Capture;
use crate::standard_input::{Interruption, StandardInput};

mod errors {
    pyo3::import_exception!(pepscope.errors, CaptureError);
    pyo3::import_exception!(pepscope.errors, FilterError);
}
pub(crate) use errors::CaptureError;

/// Segments between looks at signals and reports of progress; some milliseconds of work.
const SEGMENTS_BETWEEN_LOOKS: u32 = 1 << 16;

type FilterPrograms = HashMap<u16, Vec<(u16, u8, u8, u32)>>;

/// Read and analyse a capture.
#[pyfunction]
pub(crate) fn read_capture(
    py: Python<'_>,
    path: PathBuf,
    filter_programs: Option<FilterPrograms>,
    memory_bytes: u64,
    payload: bool,
    columns: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Capture> {
    let filter = filter_programs.map(compiled).transpose()?;
    let settings = Settings { columns, payload };
    py.detach(|| {
        let interruption = Interruption::default();
        let opened = if path.as_os_str() == "-" {
            CaptureReader::from_reader(Box::new(StandardInput { interruption: interruption.clone() }))
        } else {
            CaptureReader::open(&path)
        };
        let mut reader = match (interruption.take(), opened) {
            (Some(raised), _) => return Err(raised),
            (None, Err(error)) => return Err(CaptureError::new_err(error.to_string())),
            (None, Ok(reader)) => reader,
        };
        if let Some(filter) = filter {
            reader.set_filter(filter);
        }
        let analysis = analyse(&mut reader, settings, memory_bytes, progress.as_ref())?;
        if let Some(raised) = interruption.take() {
            return Err(raised);
        }
        Ok(Capture::new(reader.tally().clone(), analysis))
    })
}

fn compiled(programs: FilterPrograms) -> PyResult<Filter> {
    let mut filter = Filter::new();
    for (link_type, steps) in programs {
        let instructions: Vec<_> = steps.into_iter().map(|(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect();
        let program = Program::new(&instructions).map_err(|error| errors::FilterError::new_err(error.to_string()))?;
        filter.insert(link_type, program);
    }
    Ok(filter)
}

/// Push every segment, looking now and then for Ctrl-C and telling how far we are.
fn analyse(
    reader: &mut CaptureReader,
    settings: Settings,
    memory_bytes: u64,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Vec<pepscope_connections::Connections>> {
    let _ = memory_bytes;
    let mut analysis = Analysis::new(settings);
    let mut until_look = SEGMENTS_BETWEEN_LOOKS;
    while let Some(segment) = reader.next_segment().map_err(|error| CaptureError::new_err(error.to_string()))? {
        analysis.push(&segment);
        until_look -= 1;
        if until_look == 0 {
            until_look = SEGMENTS_BETWEEN_LOOKS;
            look(reader, progress)?;
        }
    }
    Ok(vec![analysis.finish()])
}

fn look(reader: &CaptureReader, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(progress) = progress {
            progress.call1(py, (reader.file_bytes_read(), reader.file_bytes().unwrap_or(0)))?;
        }
        Ok(())
    })
}

/// Counts by name, for Python.
pub(crate) fn counts(tally: &Tally) -> Vec<(&'static str, u64)> {
    vec![
        ("frames", tally.frames),
        ("tcp_segments", tally.tcp_segments),
        ("filtered_out", tally.filtered_out),
        ("unknown_link_type", tally.unknown_link_type),
        ("not_ip", tally.not_ip),
        ("not_tcp", tally.not_tcp),
        ("cut_short", tally.cut_short),
        ("malformed", tally.malformed),
        ("too_deep", tally.too_deep),
        ("encrypted", tally.encrypted),
        ("fragments_held", tally.fragments_held),
        ("unfinished_datagrams", tally.unfinished_datagrams),
        ("frames_without_time", tally.frames_without_time),
        ("bytes_read", tally.bytes_read),
    ]
}

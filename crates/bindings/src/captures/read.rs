//! Reading a capture with the GIL released.

use std::collections::HashMap;
use std::path::PathBuf;

use pepscope_connections::{Payload, ReadError, Settings, Source};
use pepscope_wire::bpf::{Filter, Instruction, Program};
use pepscope_wire::CaptureReader;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::captures::capture::Capture;
use crate::captures::payload_choice::by_exchanges;
use crate::captures::standard_input::{Interruption, StandardInput};

mod errors {
    pyo3::import_exception!(pepscope.errors, CaptureError);
    pyo3::import_exception!(pepscope.errors, FilterError);
}
pub(crate) use errors::CaptureError;

type FilterPrograms = HashMap<u16, Vec<(u16, u8, u8, u32)>>;

/// Whether a file begins like a capture that can be read.
#[pyfunction]
pub(crate) fn begins_like_capture(py: Python<'_>, path: PathBuf) -> bool {
    py.detach(|| pepscope_wire::begins_like_capture(&path))
}

/// What payload to keep.
#[derive(FromPyObject)]
pub(crate) enum Kept {
    All(bool),
    Of(String),
}

impl Kept {
    fn payload(&self) -> PyResult<Payload> {
        match self {
            Kept::All(true) => Ok(Payload::Sample),
            Kept::All(false) => Ok(Payload::Nothing),
            Kept::Of(what) if what == "exchanges" => Ok(Payload::Chosen(by_exchanges)),
            Kept::Of(what) => {
                Err(PyValueError::new_err(format!("payload must be a bool or 'exchanges', got {what:?}")))
            }
        }
    }
}

/// Read and analyse a capture of one file or several parts.
#[pyfunction]
pub(crate) fn read_capture(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    filter_programs: Option<FilterPrograms>,
    memory_bytes: u64,
    payload: Kept,
    columns: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Capture> {
    let filter = filter_programs.map(compiled).transpose()?;
    let payload = payload.payload()?;
    py.detach(|| {
        let mut source = PythonSource { paths, filter, interruption: Interruption::default(), progress };
        let settings = Settings { columns, payload };
        let read = pepscope_connections::read_capture(&mut source, settings, memory_bytes);
        if let Some(raised) = source.interruption.take() {
            return Err(raised);
        }
        read.map(Capture::new).map_err(|error| match error {
            ReadError::Capture(error) => CaptureError::new_err(error.to_string()),
            ReadError::Spill(error) => CaptureError::new_err(error.to_string()),
            ReadError::Changed => CaptureError::new_err("the capture changed while it was read"),
            ReadError::Stopped(raised) => raised,
        })
    })
}

/// A capture file with those that continue it, or standard input, with Python's signals and progress.
struct PythonSource {
    paths: Vec<PathBuf>,
    filter: Option<Filter>,
    interruption: Interruption,
    progress: Option<Py<PyAny>>,
}

impl PythonSource {
    fn is_standard_input(&self) -> bool {
        self.paths.iter().any(|path| path.as_os_str() == "-")
    }
}

impl Source for PythonSource {
    type Stop = PyErr;

    fn can_be_read_again(&self) -> bool {
        !self.is_standard_input()
    }

    fn open(&mut self) -> Result<CaptureReader, ReadError<PyErr>> {
        let opened = if self.is_standard_input() {
            CaptureReader::from_standard_input(Box::new(StandardInput { interruption: self.interruption.clone() }))
        } else {
            CaptureReader::open_parts(&self.paths)
        };
        let mut reader = opened.map_err(ReadError::Capture)?;
        if let Some(filter) = &self.filter {
            reader.set_filter(filter.clone());
        }
        Ok(reader)
    }

    fn progress(&mut self, read_bytes: u64, file_bytes: u64) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &self.progress {
                progress.call1(py, (read_bytes, file_bytes))?;
            }
            Ok(())
        })
    }
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

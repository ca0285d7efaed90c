//! Standard input that Ctrl-C can interrupt while it waits for bytes.

use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

/// What a signal handler raised while reading, to be raised again where Python can see it.
#[derive(Clone, Default)]
pub(crate) struct Interruption(Arc<Mutex<Option<PyErr>>>);

impl Interruption {
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// The decoder retries an interrupted read, as it must; Python's handlers run before that here.
pub(crate) struct StandardInput {
    pub(crate) interruption: Interruption,
}

impl StandardInput {
    fn check_signals(&self) -> io::Result<()> {
        Python::attach(|py| py.check_signals()).map_err(|raised| {
            self.interruption.set(raised);
            io::Error::other("interrupted")
        })
    }
}

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A signal that came while nothing was read interrupts no read.
        self.check_signals()?;
        let result = io::stdin().read(buffer);
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
            self.check_signals()?;
        }
        result
    }
}

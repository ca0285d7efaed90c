//! What each side of every connection sends, and how its data respond to load, for Python.

use numpy::ndarray::Array2;
use numpy::IntoPyArray;
use pepscope_connections::{AnalysedCapture, LookupError};
use pepscope_evidence::load::LoadColumns;
use pepscope_evidence::senders::SenderColumns;
use pepscope_evidence::{for_each_load_column, for_each_sender_column};
use pepscope_wire::tcp::option_kinds;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::captures::decoding::{visit, visit_where, Shown};

/// Connections whose summaries are asked for at a time.
const BATCH: usize = 1024;
/// Option kinds of a SYN; option lists have at most 40 bytes, and stacks send ten options at most, padding included.
const OPTION_KINDS: usize = 16;

type OptionKinds = Vec<[u8; OPTION_KINDS]>;

/// What is known of the senders of all connections.
#[derive(Default)]
pub(crate) struct Found {
    senders: SenderColumns,
    option_kinds: OptionKinds,
}

impl Found {
    pub(crate) fn reserve(&mut self, senders: usize) {
        self.senders.reserve(senders);
        self.option_kinds.reserve(senders);
    }

    pub(crate) fn add(&mut self, shown: &Shown<'_>) {
        for direction in [0, 1] {
            self.senders.push(&shown.packets.sender(shown.number, direction));
        }
    }

    /// Puts them into the order of connections, and adds what SYNs offered.
    pub(crate) fn finish(mut self, analysed: &AnalysedCapture) -> Result<Found, LookupError> {
        self.senders.by_connection();
        for start in (0..analysed.connection_count()).step_by(BATCH) {
            let stop = analysed.connection_count().min(start + BATCH);
            analysed.with_summaries(start..stop, |summaries| {
                for summary in summaries {
                    self.option_kinds.extend([&summary.up, &summary.down].map(|flow| option_kinds(flow.syn_options)));
                }
            })?;
        }
        Ok(self)
    }
}

pub(crate) fn of_capture(analysed: &AnalysedCapture) -> Result<Found, LookupError> {
    let mut found = Found::default();
    visit(analysed, |shown| found.add(shown))?;
    found.finish(analysed)
}

/// Load responses of these connections, or of all.
pub(crate) fn load_of_capture(
    analysed: &AnalysedCapture,
    connections: Option<&[usize]>,
) -> Result<LoadColumns, LookupError> {
    let count = analysed.connection_count();
    let mut is_wanted = vec![connections.is_none(); count];
    for &index in connections.unwrap_or_default() {
        *is_wanted.get_mut(index).ok_or(LookupError::NoConnection { index, count })? = true;
    }
    let mut load = LoadColumns::default();
    let wanted = |number: usize| is_wanted.get(number).is_some_and(|&each| each);
    visit_where(analysed, wanted, |shown| {
        for direction in [0, 1] {
            load.push(&shown.packets.load_response(shown.number, direction));
        }
    })?;
    load.by_connection();
    Ok(load)
}

/// The columns of senders by name, with the option kinds of their SYNs.
pub(crate) fn table(py: Python<'_>, found: Found) -> PyResult<Bound<'_, PyDict>> {
    let senders = PyDict::new(py);
    macro_rules! put {
        ($($name:ident: $element:ty,)*) => {
            $(senders.set_item(stringify!($name), found.senders.$name.into_pyarray(py))?;)*
        };
    }
    for_each_sender_column!(put);
    let kinds = &found.option_kinds;
    let table = Array2::from_shape_fn((kinds.len(), OPTION_KINDS), |(row, place)| kinds[row][place]);
    senders.set_item("option_kinds", table.into_pyarray(py))?;
    Ok(senders)
}

/// The columns of load responses by name.
pub(crate) fn load_table(py: Python<'_>, load: LoadColumns) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    macro_rules! put {
        ($($name:ident: $element:ty,)*) => {
            $(found.set_item(stringify!($name), load.$name.into_pyarray(py))?;)*
        };
    }
    for_each_load_column!(put);
    Ok(found)
}

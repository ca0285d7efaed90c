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

use crate::packets::rows;

/// So many connections are decoded at a time.
const BATCH: usize = 1024;
/// Option kinds of a SYN; option lists have at most 40 bytes, and stacks send ten options at most, padding included.
const OPTION_KINDS: usize = 16;

type OptionKinds = Vec<[u8; OPTION_KINDS]>;

/// Columns of senders, with the option kinds of their SYNs, and of load responses.
pub(crate) type Tables<'py> = (Bound<'py, PyDict>, Bound<'py, PyDict>);

/// What is known of all connections.
#[derive(Default)]
pub(crate) struct Found {
    senders: SenderColumns,
    load: LoadColumns,
    option_kinds: OptionKinds,
}

pub(crate) fn of_capture(analysed: &AnalysedCapture) -> Result<Found, LookupError> {
    let mut found = Found::default();
    for (partition, members) in analysed.partition_members().iter().enumerate() {
        analysed.with_partition(partition, |packets, _| {
            for (batch, numbers) in members.chunks(BATCH).enumerate() {
                let first = batch * BATCH;
                let columns = packets.decode(first..first + numbers.len());
                for (bounds, &number) in columns.starts.windows(2).zip(numbers) {
                    let packets = rows(&columns, bounds[0]..bounds[1]);
                    for direction in [0, 1] {
                        found.senders.push(&packets.sender(number as u32, direction));
                        found.load.push(&packets.load_response(number as u32, direction));
                    }
                }
            }
        })?;
    }
    found.senders.by_connection();
    found.load.by_connection();
    for start in (0..analysed.connection_count()).step_by(BATCH) {
        let stop = analysed.connection_count().min(start + BATCH);
        analysed.with_summaries(start..stop, |summaries| {
            for summary in summaries {
                found.option_kinds.extend([&summary.up, &summary.down].map(|flow| option_kinds(flow.syn_options)));
            }
        })?;
    }
    Ok(found)
}

/// The columns by name.
pub(crate) fn tables(py: Python<'_>, found: Found) -> PyResult<Tables<'_>> {
    let (senders, load) = (PyDict::new(py), PyDict::new(py));
    macro_rules! put_senders {
        ($($name:ident: $element:ty,)*) => {
            $(senders.set_item(stringify!($name), found.senders.$name.into_pyarray(py))?;)*
        };
    }
    macro_rules! put_load {
        ($($name:ident: $element:ty,)*) => {
            $(load.set_item(stringify!($name), found.load.$name.into_pyarray(py))?;)*
        };
    }
    for_each_sender_column!(put_senders);
    for_each_load_column!(put_load);
    let kinds = &found.option_kinds;
    let table = Array2::from_shape_fn((kinds.len(), OPTION_KINDS), |(row, place)| kinds[row][place]);
    senders.set_item("option_kinds", table.into_pyarray(py))?;
    Ok((senders, load))
}

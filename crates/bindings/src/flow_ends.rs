//! Where a flow begins and ends, from packet columns to a record.

use pepscope_evidence::flows::ends::FlowEnds as Ends;
use pyo3::prelude::*;

use crate::packets::PacketArrays;

macro_rules! record {
    ($($name:ident: $kind:ty),* $(,)?) => {
        /// The record of the crate.
        #[pyclass(module = "pepscope._core", frozen, get_all)]
        pub(crate) struct FlowEnds {
            $($name: $kind),*
        }

        impl From<Ends> for FlowEnds {
            fn from(found: Ends) -> Self {
                Self { $($name: found.$name),* }
            }
        }
    };
}

record! {
    syn_copies: usize,
    syn_windows: Vec<u32>,
    syn_ip_ids: Vec<u16>,
    syn_tsvals: Vec<u32>,
    syn_ecn: Vec<u16>,
    syn_ttl: u8,
    fin_offset: Option<i64>,
}

/// The two ends of the flow of `direction`.
#[pyfunction]
pub(crate) fn flow_ends(py: Python<'_>, direction: u8, packets: PacketArrays<'_>) -> PyResult<FlowEnds> {
    let columns = packets.columns()?;
    Ok(py.detach(|| columns.flow_ends(direction)).into())
}

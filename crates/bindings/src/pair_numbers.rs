//! What two captures show of a connection, from packet columns to fixed records of numbers.

use pepscope_evidence as evidence;
use pepscope_evidence::common_packets::TimeComparison;
use pyo3::prelude::*;

use crate::packets::PacketArrays;
use crate::record::record;

record! {
    /// Packets that two captures have in common.
    CommonPackets of evidence::common_packets::CommonPackets {
        count: usize,
        comparable: usize,
        other_hop_limits: usize,
        resolution_ns: i64,
        uneven: usize,
        round_trips_ns: Option<(f64, f64, f64)>,
    }
}

record! {
    /// Times that a common byte range took at both ends.
    TransferSpans of evidence::transfer_spans::TransferSpans { sender_ns: i64, receiver_ns: i64, bytes: i64 }
}

/// Packets that two captures have in common, and how their times differ.
#[pyfunction]
pub(crate) fn common_packets(
    py: Python<'_>,
    one: PacketArrays<'_>,
    two: PacketArrays<'_>,
    shifts: [i64; 2],
    finest_ns: i64,
    coarsest_ns: i64,
    odd_share: f64,
) -> PyResult<CommonPackets> {
    let (one, two) = (one.columns()?, two.columns()?);
    let comparison = TimeComparison { finest_ns, coarsest_ns, odd_share };
    Ok(py.detach(|| evidence::common_packets::common_packets(&one, &two, shifts, comparison)).into())
}

/// How long one range of bytes took at its sender and at its receiver.
#[pyfunction]
pub(crate) fn transfer_spans(
    py: Python<'_>,
    direction: u8,
    sender: PacketArrays<'_>,
    receiver: PacketArrays<'_>,
    shift: i64,
    shortest_bytes: i64,
) -> PyResult<Option<TransferSpans>> {
    let (sender, receiver) = (sender.columns()?, receiver.columns()?);
    let spans =
        py.detach(|| evidence::transfer_spans::transfer_spans(direction, &sender, &receiver, shift, shortest_bytes));
    Ok(spans.map(TransferSpans::from))
}

//! What two captures show of a connection, from packet columns to fixed records of numbers.

use pepscope_evidence as evidence;
use pepscope_evidence::clocks::lines::ClockLines;
use pepscope_evidence::flows::sender_lead::{LeadComparison, RelayBuffers};
use pepscope_evidence::segments::common_packets::TimeComparison;
use pepscope_evidence::segments::twins::{twins, Identifier};
use pyo3::prelude::*;

use crate::flow_times::{taken_over, FlowTimes, Lines};
use crate::packets::PacketArrays;
use crate::record::record;

record! {
    /// Packets that two captures have in common.
    CommonPackets of evidence::segments::common_packets::CommonPackets {
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
    TransferSpans of evidence::flows::transfer_spans::TransferSpans { sender_ns: i64, receiver_ns: i64, bytes: i64 }
}

record! {
    /// How far one flow's sender is ahead of its receiver.
    SenderLead of evidence::flows::sender_lead::SenderLead {
        total_bytes: i64,
        most_bytes: i64,
        delivered_when_done_bytes: i64,
        acknowledged_at_start_bytes: i64,
        silence_ns: i64,
        sender_duration_ns: i64,
        receiver_duration_ns: i64,
        beyond_buffers_bytes: i64,
        buffers_bytes: i64,
    }
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
    Ok(py.detach(|| evidence::segments::common_packets::common_packets(&one, &two, shifts, comparison)).into())
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
    let spans = py.detach(|| {
        evidence::flows::transfer_spans::transfer_spans(direction, &sender, &receiver, shift, shortest_bytes)
    });
    Ok(spans.map(TransferSpans::from))
}

/// How far a flow's sender is ahead of its receiver, under the friendliest clock.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "two captures, their clocks, and what is asked of them")]
pub(crate) fn sender_lead(
    py: Python<'_>,
    flow: &FlowTimes,
    receiver: PacketArrays<'_>,
    windows: Option<PacketArrays<'_>>,
    shift: i64,
    lines: Lines,
    clock_given: bool,
    error_ns: i64,
    buffers: (i64, i64, i64),
) -> PyResult<Option<SenderLead>> {
    let receiver = receiver.columns()?;
    let windows = windows.as_ref().map(PacketArrays::columns).transpose()?;
    let lines = taken_over(lines);
    let clock = ClockLines(&lines);
    let (fixed_bytes, segment_bytes, bytes_per_segment) = buffers;
    let buffers = RelayBuffers { fixed_bytes, segment_bytes, bytes_per_segment };
    let comparison = LeadComparison { receiver, windows, shift, clock, clock_given, error_ns, buffers };
    Ok(py.detach(|| flow.0.sender_lead(&comparison)).map(SenderLead::from))
}

/// By how much a FIN against a flow's data arrived too early, its clock moved as far as the data allow.
#[pyfunction]
pub(crate) fn fin_lead_ns(flow: &FlowTimes, sent_ns: i64, arrived_ns: i64, lines: Lines) -> Option<f64> {
    flow.0.fin_lead_ns(sent_ns, arrived_ns, ClockLines(&taken_over(lines)))
}

/// Shift that most twins have, twins among the data packets of `direction`, and how many have that shift.
#[pyfunction]
pub(crate) fn packet_twins(
    py: Python<'_>,
    direction: u8,
    left: PacketArrays<'_>,
    right: PacketArrays<'_>,
    by_timestamp: bool,
) -> PyResult<Option<(i64, usize, usize)>> {
    let (left, right) = (left.columns()?, right.columns()?);
    let by = if by_timestamp { Identifier::Tsval } else { Identifier::IpId };
    let found = py.detach(|| twins(&left, &right, direction, by));
    Ok(found.map(|found| (found.shift, found.count, found.agreeing)))
}

//! What two captures show of a connection, from packet columns to fixed records of numbers.

use numpy::{PyArray1, PyReadonlyArray1};
use pepscope_evidence as evidence;
use pepscope_evidence::clocks::lines::ClockLines;
use pepscope_evidence::flows::sender_lead::{LeadComparison, RelayBuffers, SenderLead as Lead};
use pepscope_evidence::segments::common_packets::TimeComparison;
use pepscope_evidence::segments::least_changed::LeastChanged;
use pepscope_evidence::segments::twins::{twins, Identifier};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::captures::packets::PacketArrays;
use crate::flows::flow_times::{FlowTimes, GivenLines};
use crate::record::{number_or_unknown, record};

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

/// Whether any packet of one capture may be one of the other.
#[pyfunction]
pub(crate) fn may_share_packets(py: Python<'_>, one: PacketArrays<'_>, two: PacketArrays<'_>) -> PyResult<bool> {
    let (one, two) = (one.columns()?, two.columns()?);
    Ok(py.detach(|| evidence::segments::common_packets::may_share_packets(&one, &two)))
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

type LeadNumber = fn(&Lead) -> i64;

/// How far the senders of flows are ahead of their receivers, under the friendliest clock, as arrays by name.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "two captures, their clocks, and what is asked of them")]
pub(crate) fn sender_leads<'py>(
    py: Python<'py>,
    flows: Vec<PyRef<'py, FlowTimes>>,
    receivers: Vec<PacketArrays<'py>>,
    windows: Vec<Option<PacketArrays<'py>>>,
    shifts: Vec<i64>,
    lines: GivenLines<'py>,
    clocks_given: Vec<bool>,
    error_ns: i64,
    buffers: (i64, i64, i64, i64, i64),
) -> PyResult<Bound<'py, PyDict>> {
    let lengths = [receivers.len(), windows.len(), shifts.len(), lines.len(), clocks_given.len()];
    if lengths.iter().any(|&length| length != flows.len()) {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    let (fixed_bytes, segment_bytes, bytes_per_segment, first_window_bytes, window_per_read_byte) = buffers;
    let buffers =
        RelayBuffers { fixed_bytes, segment_bytes, bytes_per_segment, first_window_bytes, window_per_read_byte };
    let mut found = Vec::with_capacity(flows.len());
    for (row, flow) in flows.iter().enumerate() {
        let lines = lines.of(row);
        let comparison = LeadComparison {
            receiver: receivers[row].columns()?,
            windows: windows[row].as_ref().map(PacketArrays::columns).transpose()?,
            shift: shifts[row],
            clock: ClockLines(&lines),
            clock_given: clocks_given[row],
            error_ns,
            buffers,
        };
        found.push(flow.0.sender_lead(&comparison));
    }
    let columns = PyDict::new(py);
    let numbers: [(&str, LeadNumber); 9] = [
        ("total_bytes", |lead| lead.total_bytes),
        ("most_bytes", |lead| lead.most_bytes),
        ("delivered_when_done_bytes", |lead| lead.delivered_when_done_bytes),
        ("acknowledged_at_start_bytes", |lead| lead.acknowledged_at_start_bytes),
        ("silence_ns", |lead| lead.silence_ns),
        ("sender_duration_ns", |lead| lead.sender_duration_ns),
        ("receiver_duration_ns", |lead| lead.receiver_duration_ns),
        ("beyond_buffers_bytes", |lead| lead.beyond_buffers_bytes),
        ("buffers_bytes", |lead| lead.buffers_bytes),
    ];
    for (name, number) in numbers {
        let values = found.iter().map(|lead| number_or_unknown(lead.as_ref().map(number)));
        columns.set_item(name, PyArray1::from_iter(py, values))?;
    }
    Ok(columns)
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

/// Places of packets in two captures, and how many fields of these differ.
type Beside<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// Arrived packets, each beside the emitted one that held its first byte and of which fewest fields changed.
#[pyfunction]
pub(crate) fn least_changed<'py>(
    py: Python<'py>,
    direction: u8,
    emitted: PacketArrays<'py>,
    arrived: PacketArrays<'py>,
    shift: i64,
    places: PyReadonlyArray1<'py, i64>,
) -> PyResult<Beside<'py>> {
    let (emitted, arrived) = (emitted.columns()?, arrived.columns()?);
    let places: Vec<usize> = places.as_array().iter().filter_map(|&place| usize::try_from(place).ok()).collect();
    let found =
        py.detach(|| evidence::segments::least_changed::least_changed(&emitted, &arrived, direction, shift, &places));
    let of = |number: fn(&LeastChanged) -> i64| PyArray1::from_iter(py, found.iter().map(number));
    Ok((of(|each| each.arrived as i64), of(|each| each.left as i64), of(|each| i64::from(each.changes))))
}

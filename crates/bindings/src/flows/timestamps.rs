//! Timestamps of a capture from packet columns.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pepscope_evidence::clocks::early_acks::EarlyCount;
use pepscope_evidence::clocks::standing_still::standing_turns;
use pepscope_evidence::clocks::timestamps::{self, TimestampSteps};
use pepscope_evidence::packets::{DOWN, UP};
use pyo3::prelude::*;

use crate::captures::packets::PacketArrays;
use crate::record::number_or_unknown;

type Int64<'py> = Bound<'py, PyArray1<i64>>;
type Int64s<'py> = Bound<'py, PyArray2<i64>>;

/// Rows before which a capture's clock fell by more than a step.
#[pyfunction]
pub(crate) fn clock_falls(packets: PacketArrays<'_>, least_ns: i64) -> PyResult<Vec<usize>> {
    Ok(timestamps::falls(packets.columns()?.time_ns, least_ns))
}

/// Steps between the first timestamps of connections, as rows: how many, how many of no time, and the least forward.
#[pyfunction]
pub(crate) fn timestamp_steps<'py>(
    py: Python<'py>,
    packets: Vec<PacketArrays<'py>>,
    most: usize,
) -> PyResult<Int64s<'py>> {
    let mut found = Vec::with_capacity(packets.len());
    for each in &packets {
        let time_ns = each.columns()?.time_ns;
        let steps = TimestampSteps::of(&time_ns[..time_ns.len().min(most)]);
        found.push([steps.count as i64, steps.equal as i64, number_or_unknown(steps.least_ns)]);
    }
    Ok(Array2::from_shape_fn((3, found.len()), |(of, row)| found[row][of]).into_pyarray(py))
}

/// What of each connection's times contradicts itself: steps between the first `most`, 0 where they are not all equal;
/// the most turns in a row of these without more than `quickest_ns` between; acknowledgements that come more than
/// `least_ns` before what they acknowledge, and all that were compared (rows: up and down, by turns, what comes before
/// the SYN, what acknowledges the SYN alone, what acknowledges bytes).
#[pyfunction]
pub(crate) fn contradicting_times<'py>(
    py: Python<'py>,
    packets: Vec<PacketArrays<'py>>,
    most: usize,
    quickest_ns: i64,
    least_ns: i64,
) -> PyResult<(Int64<'py>, Int64<'py>, Int64s<'py>, Int64s<'py>)> {
    let (mut even, mut standing) = (Vec::with_capacity(packets.len()), Vec::with_capacity(packets.len()));
    let mut counts: Vec<[EarlyCount; 6]> = Vec::with_capacity(packets.len());
    for each in &packets {
        let each = each.columns()?;
        let first = each.len().min(most);
        even.push(timestamps::even_steps(&each.time_ns[..first]) as i64);
        standing.push(standing_turns(&each.time_ns[..first], &each.direction[..first], quickest_ns) as i64);
        let [[up, up_syn], [down, down_syn]] = each.acks_before_syns(least_ns);
        let [up_bytes, down_bytes] = [UP, DOWN].map(|way| each.acks_before_bytes(way, least_ns));
        counts.push([up, down, up_syn, down_syn, up_bytes, down_bytes]);
    }
    let rows = |number: fn(&EarlyCount) -> usize| {
        Array2::from_shape_fn((6, counts.len()), |(of, row)| number(&counts[row][of]) as i64).into_pyarray(py)
    };
    let (early, compared) = (rows(|count| count.early), rows(|count| count.compared));
    Ok((even.into_pyarray(py), standing.into_pyarray(py), early, compared))
}

/// The longest time between two successive packets of which one lies in a stretch of time.
#[pyfunction]
pub(crate) fn longest_pause_ns(
    time_ns: PyReadonlyArray1<'_, i64>,
    start_ns: f64,
    end_ns: f64,
) -> PyResult<Option<i64>> {
    Ok(timestamps::longest_pause_ns(time_ns.as_slice()?, start_ns, end_ns))
}

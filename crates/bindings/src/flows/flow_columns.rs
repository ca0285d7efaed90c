//! Numbers of many flows at once: their times in, columns out.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pepscope_evidence::clocks::constraints::Constraints as Clouds;
use pepscope_evidence::clocks::early_acks::{ClockBound, EarlyCount};
use pepscope_evidence::clocks::lines::ClockLines;
use pepscope_evidence::clocks::separation::{Separation, Spared};
use pepscope_evidence::flows::times::{self, FlowCaptures};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::captures::packets::PacketArrays;
use crate::flows::clocks::ConstraintsOfMany;
use crate::flows::flow_times::{FlowTimes, GivenLines};
use crate::record::{number_or_unknown, Given};

type Int64s<'py> = Bound<'py, PyArray2<i64>>;

fn even(lengths: &[usize]) -> PyResult<()> {
    if lengths.windows(2).all(|two| two[0] == two[1]) {
        Ok(())
    } else {
        Err(PyValueError::new_err("the columns differ in length"))
    }
}

/// A row of counts for each of two things that are counted.
fn two_counts<'py>(py: Python<'py>, counts: &[[usize; 2]]) -> Int64s<'py> {
    Array2::from_shape_fn((2, counts.len()), |(of, row)| counts[row][of] as i64).into_pyarray(py)
}

/// The times of flows; None where the sender's capture holds no data.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "two captures and how they are to be read")]
pub(crate) fn flow_times(
    py: Python<'_>,
    directions: Vec<u8>,
    senders: Vec<PacketArrays<'_>>,
    receivers: Vec<PacketArrays<'_>>,
    shifts: Vec<i64>,
    senders_began: Vec<bool>,
    receivers_began: Vec<bool>,
    points_limit: usize,
    same_copy_ns: i64,
) -> PyResult<Vec<Option<FlowTimes>>> {
    even(&[
        directions.len(),
        senders.len(),
        receivers.len(),
        shifts.len(),
        senders_began.len(),
        receivers_began.len(),
    ])?;
    let mut captures = Vec::with_capacity(directions.len());
    for (place, &direction) in directions.iter().enumerate() {
        captures.push(FlowCaptures {
            direction,
            sender: senders[place].columns()?,
            receiver: receivers[place].columns()?,
            shift: shifts[place],
            sender_began: senders_began[place],
            receiver_began: receivers_began[place],
        });
    }
    let found: Vec<_> = py.detach(|| captures.iter().map(|flow| flow.times(points_limit, same_copy_ns)).collect());
    Ok(found.into_iter().map(|times| times.map(FlowTimes)).collect())
}

/// Counts and extremes of the times of flows, as arrays by name.
#[pyfunction]
pub(crate) fn flow_numbers<'py>(py: Python<'py>, flows: Vec<PyRef<'py, FlowTimes>>) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let add = |name: &str, number: &dyn Fn(&times::FlowTimes) -> i64| {
        columns.set_item(name, PyArray1::from_iter(py, flows.iter().map(|flow| number(&flow.0))))
    };
    add("data_count", &|flow| flow.data.len() as i64)?;
    add("ack_count", &|flow| flow.acks.len() as i64)?;
    add("timed_ack_count", &|flow| flow.ack_differences(false).count() as i64)?;
    add("round_trip_count", &|flow| flow.round_trips_ns().count() as i64)?;
    add("least_round_trip_ns", &|flow| number_or_unknown(flow.round_trips_ns().min()))?;
    add("least_hold_ns", &|flow| number_or_unknown(flow.holds_ns().min()))?;
    add("first_delay_ns", &|flow| number_or_unknown(flow.delays_ns().next()))?;
    add("least_delay_ns", &|flow| number_or_unknown(flow.delays_ns().min()))?;
    add("sender_held", &|flow| flow.sender_missed.1 as i64)?;
    add("receiver_held", &|flow| flow.receiver_missed.1 as i64)?;
    let lost =
        |missed: &dyn Fn(&times::FlowTimes) -> f64| PyArray1::from_iter(py, flows.iter().map(|flow| missed(&flow.0)));
    columns.set_item("sender_lost", lost(&|flow| flow.sender_missed.0))?;
    columns.set_item("receiver_lost", lost(&|flow| flow.receiver_missed.0))?;
    Ok(columns)
}

/// Acknowledgements that came too early, and those that were compared.
#[pyfunction]
pub(crate) fn early_acks<'py>(
    py: Python<'py>,
    flows: Vec<PyRef<'py, FlowTimes>>,
    lines: GivenLines<'py>,
    spared: Vec<usize>,
    error_ns: f64,
) -> PyResult<Int64s<'py>> {
    even(&[flows.len(), lines.len(), spared.len()])?;
    let rows = flows.iter().zip(spared).enumerate().map(|(row, (flow, spared))| {
        let lines = lines.of(row);
        let EarlyCount { early, compared } =
            flow.0.early_acks(ClockBound { lines: ClockLines(&lines), spared, error_ns });
        [early, compared]
    });
    Ok(two_counts(py, &rows.collect::<Vec<_>>()))
}

/// The same by the receiver's own acknowledgements, of the part of a connection in which the smallest share is early.
#[pyfunction]
pub(crate) fn early_own_acks<'py>(
    py: Python<'py>,
    flows: Vec<PyRef<'py, FlowTimes>>,
    lines: GivenLines<'py>,
    spared: Vec<usize>,
    error_ns: f64,
) -> PyResult<Int64s<'py>> {
    even(&[flows.len(), lines.len(), spared.len()])?;
    let rows = flows.iter().zip(spared).enumerate().map(|(row, (flow, spared))| {
        let lines = lines.of(row);
        let parts = flow.0.early_own_acks(ClockBound { lines: ClockLines(&lines), spared, error_ns });
        let EarlyCount { early, compared } = EarlyCount::least_of(parts);
        [early, compared]
    });
    Ok(two_counts(py, &rows.collect::<Vec<_>>()))
}

/// Timed and violating acknowledgements (rows) and the least margin, by given offsets.
#[pyfunction]
pub(crate) fn published<'py>(
    py: Python<'py>,
    flows: Vec<PyRef<'py, FlowTimes>>,
    theta_ns: Given<'py, i64>,
    error_s: f64,
) -> PyResult<(Int64s<'py>, Bound<'py, PyArray1<f64>>)> {
    let theta_ns = theta_ns.values();
    even(&[flows.len(), theta_ns.len()])?;
    let found: Vec<_> =
        flows.iter().zip(theta_ns.iter()).map(|(flow, &theta)| flow.0.published(theta, error_s)).collect();
    let counts: Vec<[usize; 2]> =
        found.iter().map(|one| one.map_or([0, 0], |one| [one.timed, one.violating])).collect();
    let margins = found.iter().map(|one| one.map_or(f64::INFINITY, |one| one.margin_s));
    Ok((two_counts(py, &counts), PyArray1::from_iter(py, margins)))
}

/// How many acknowledgement round trips of each flow are below its limit.
#[pyfunction]
pub(crate) fn round_trips_below<'py>(
    py: Python<'py>,
    flows: Vec<PyRef<'py, FlowTimes>>,
    limits_ns: Given<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let limits_ns = limits_ns.values();
    even(&[flows.len(), limits_ns.len()])?;
    let counts = flows
        .iter()
        .zip(limits_ns.iter())
        .map(|(flow, &limit_ns)| flow.0.round_trips_ns().filter(|&time_ns| (time_ns as f64) < limit_ns).count() as i64);
    Ok(PyArray1::from_iter(py, counts))
}

/// By how much FINs against the data of flows arrived too early, clocks moved as far as the data allow; NaN where no
/// data bound it.
#[pyfunction]
pub(crate) fn fin_leads_ns<'py>(
    py: Python<'py>,
    flows: Vec<PyRef<'py, FlowTimes>>,
    sent_ns: Given<'py, i64>,
    arrived_ns: Given<'py, i64>,
    lines: GivenLines<'py>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (sent_ns, arrived_ns) = (sent_ns.values(), arrived_ns.values());
    even(&[flows.len(), sent_ns.len(), arrived_ns.len(), lines.len()])?;
    let leads = flows.iter().enumerate().map(|(row, flow)| {
        flow.0.fin_lead_ns(sent_ns[row], arrived_ns[row], ClockLines(&lines.of(row))).unwrap_or(f64::NAN)
    });
    Ok(PyArray1::from_iter(py, leads))
}

/// What the times of a connection's flows say of its clocks.
struct Bounds {
    constraints: Clouds,
    exact: Separation,
    data: Separation,
    most: Separation,
}

/// The constraints of connections, each of the flows of one, and the lines that separate them.
///
/// `spared`: lower and upper points of each. With `drift_steps` also the widest gap where the spared may be ignored.
#[pyfunction]
pub(crate) fn clock_bounds<'py>(
    py: Python<'py>,
    flows: Vec<Vec<PyRef<'py, FlowTimes>>>,
    spared: Vec<(usize, usize)>,
    bins: usize,
    drift_limit: f64,
    drift_steps: Option<usize>,
) -> PyResult<(ConstraintsOfMany, Bound<'py, PyDict>)> {
    even(&[flows.len(), spared.len()])?;
    let bounds = flows.iter().zip(spared).map(|(flows, (lower, upper))| {
        let flows: Vec<&times::FlowTimes> = flows.iter().map(|flow| &flow.0).collect();
        let constraints = Clouds::of_flows(&flows, false, Spared { lower, upper }, bins);
        let exact = constraints.separate(drift_limit);
        let data = Clouds::of_data(&flows, constraints.reference_ns, constraints.base_ns, bins).separate(drift_limit);
        let most = drift_steps.map_or(exact, |steps| constraints.separate_most(drift_limit, steps, exact));
        Bounds { constraints, exact, data, most }
    });
    let bounds: Vec<Bounds> = bounds.collect();
    let columns = PyDict::new(py);
    for (name, line) in
        [("exact", (|one| one.exact) as fn(&Bounds) -> Separation), ("data", |one| one.data), ("most", |one| one.most)]
    {
        let rows = Array2::from_shape_fn((5, bounds.len()), |(of, row)| {
            let found = line(&bounds[row]);
            [found.slack_ns, found.offset_ns, found.drift, found.low_ns, found.high_ns][of]
        });
        columns.set_item(name, rows.into_pyarray(py))?;
    }
    add_points(&columns, &bounds)?;
    Ok((ConstraintsOfMany(bounds.into_iter().map(|one| one.constraints).collect()), columns))
}

type CloudNumber = fn(&Clouds) -> i64;

/// What the constraints of each connection are: how many, and which times they refer to.
fn add_points(columns: &Bound<'_, PyDict>, bounds: &[Bounds]) -> PyResult<()> {
    let numbers: [(&str, CloudNumber); 4] = [
        ("reference_ns", |clouds| clouds.reference_ns),
        ("base_ns", |clouds| clouds.base_ns),
        ("lower_count", |clouds| clouds.lower.len() as i64),
        ("upper_count", |clouds| clouds.upper.len() as i64),
    ];
    for (name, number) in numbers {
        let values = bounds.iter().map(|one| number(&one.constraints));
        columns.set_item(name, PyArray1::from_iter(columns.py(), values))?;
    }
    let spans = Array2::from_shape_fn((2, bounds.len()), |(of, row)| {
        let (first_ns, last_ns) = bounds[row].constraints.span_ns().unwrap_or_default();
        [first_ns, last_ns][of]
    });
    columns.set_item("span_ns", spans.into_pyarray(columns.py()))
}

//! Clouds of clock constraints from NumPy columns to numbers.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pepscope_evidence::point::Ceiling;
use pepscope_evidence::separation::{self, Separation, Spared};
use pepscope_evidence::steps::StepSearch;
use pepscope_evidence::thinning::most_binding;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Floats<'py> = Bound<'py, PyArray1<f64>>;
/// Slack, offset, drift, lowest and highest offset.
type Line = (f64, f64, f64, f64, f64);
/// x and y.
type Columns<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>);

/// The widest gap between two clouds over all lines of bounded slope.
#[pyfunction]
pub(crate) fn separate(py: Python<'_>, lower: Columns<'_>, upper: Columns<'_>, drift_limit: f64) -> PyResult<Line> {
    let (lower, upper) = (Cloud::of(&lower)?, Cloud::of(&upper)?);
    Ok(py.detach(|| {
        let (lower, upper) = (lower.as_lower(), upper.as_upper());
        handed_over(separation::separate(lower.points(), upper.points(), drift_limit))
    }))
}

/// The widest gap where some points of each cloud may be ignored.
#[pyfunction]
#[pyo3(signature = (lower, upper, drift_limit, lower_spared, upper_spared, drift_steps, exact))]
#[expect(clippy::too_many_arguments, reason = "two clouds and what is asked of them")]
pub(crate) fn separate_most(
    py: Python<'_>,
    lower: Columns<'_>,
    upper: Columns<'_>,
    drift_limit: f64,
    lower_spared: usize,
    upper_spared: usize,
    drift_steps: usize,
    exact: Option<Line>,
) -> PyResult<Line> {
    let (lower, upper) = (Cloud::of(&lower)?, Cloud::of(&upper)?);
    let spared = Spared { lower: lower_spared, upper: upper_spared };
    Ok(py.detach(|| {
        let (lower, upper) = (lower.as_lower(), upper.as_upper());
        let (lower, upper) = (lower.points(), upper.points());
        let exact = exact.map_or_else(|| separation::separate(lower, upper, drift_limit), taken_over);
        handed_over(separation::separate_most(lower, upper, drift_limit, spared, drift_steps, exact))
    }))
}

/// The most binding points of each of many stretches of time; None where all of them would stay.
#[pyfunction]
pub(crate) fn thin<'py>(
    py: Python<'py>,
    cloud: Columns<'py>,
    kept: usize,
    bins: usize,
    highest: bool,
) -> PyResult<Option<(Floats<'py>, Floats<'py>)>> {
    let Cloud { x_ns, y_ns } = Cloud::of(&cloud)?;
    let thinned = py.detach(|| {
        let places = most_binding(x_ns, y_ns, kept, bins, highest)?;
        let taken = |column: &[f64]| places.iter().map(|&place| column[place]).collect::<Vec<_>>();
        Some((taken(x_ns), taken(y_ns)))
    });
    Ok(thinned.map(|(x_ns, y_ns)| (x_ns.into_pyarray(py), y_ns.into_pyarray(py))))
}

/// The longest stretches of time in which one line separates two clouds: each with its line, start and end.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "two clouds and what is asked of them")]
pub(crate) fn separable_stretches(
    py: Python<'_>,
    lower: Columns<'_>,
    upper: Columns<'_>,
    drift_limit: f64,
    lower_spared: usize,
    upper_spared: usize,
    drift_steps: usize,
    needed_ns: f64,
    most_steps: usize,
) -> PyResult<Option<Vec<(Line, f64, f64)>>> {
    let (lower, upper) = (Cloud::of(&lower)?, Cloud::of(&upper)?);
    let spared = Spared { lower: lower_spared, upper: upper_spared };
    let search = StepSearch { drift_limit, spared, drift_steps, needed_ns, most_steps };
    Ok(py.detach(|| {
        let found = search.run(&lower.as_lower(), &upper.as_upper())?;
        Some(found.iter().map(|part| (handed_over(part.separation), part.start_ns, part.end_ns)).collect())
    }))
}

/// Columns of one length.
#[derive(Clone, Copy)]
struct Cloud<'a> {
    x_ns: &'a [f64],
    y_ns: &'a [f64],
}

impl<'a> Cloud<'a> {
    fn of((x_ns, y_ns): &'a Columns<'_>) -> PyResult<Self> {
        let (x_ns, y_ns) = (x_ns.as_slice()?, y_ns.as_slice()?);
        if x_ns.len() != y_ns.len() {
            return Err(PyValueError::new_err("the columns differ in length"));
        }
        Ok(Self { x_ns, y_ns })
    }

    fn as_lower(self) -> Ceiling {
        Ceiling::of_lower(self.x_ns, self.y_ns)
    }

    fn as_upper(self) -> Ceiling {
        Ceiling::of_upper(self.x_ns, self.y_ns)
    }
}

fn handed_over(found: Separation) -> Line {
    (found.slack_ns, found.offset_ns, found.drift, found.low_ns, found.high_ns)
}

fn taken_over((slack_ns, offset_ns, drift, low_ns, high_ns): Line) -> Separation {
    Separation { slack_ns, offset_ns, drift, low_ns, high_ns }
}

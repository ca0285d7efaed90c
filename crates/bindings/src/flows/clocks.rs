//! Clouds of clock constraints from the times of flows, or from NumPy columns, to numbers.

use numpy::{PyArray1, PyReadonlyArray1};
use pepscope_evidence::clocks::constraints;
use pepscope_evidence::clocks::separation::{Separation, Spared};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::flows::flow_times::FlowTimes;

/// Slack, offset, drift, lowest and highest offset.
type Line = (f64, f64, f64, f64, f64);
/// x and y.
type Columns<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>);
type Points<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Lower and upper bounds on the difference of two clocks.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct Constraints(pub(crate) constraints::Constraints);

/// Those of many connections; an object is made of one that is asked for.
#[pyclass(module = "pepscope._core", frozen)]
pub(crate) struct ConstraintsOfMany(pub(crate) Vec<constraints::Constraints>);

#[pymethods]
impl ConstraintsOfMany {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__(&self, row: usize) -> PyResult<Constraints> {
        let found = self.0.get(row).ok_or_else(|| PyIndexError::new_err("there is no such connection"))?;
        Ok(Constraints(found.clone()))
    }
}

#[pymethods]
impl Constraints {
    #[new]
    fn new(
        lower: Columns<'_>,
        upper: Columns<'_>,
        reference_ns: i64,
        base_ns: i64,
        lower_spared: usize,
        upper_spared: usize,
    ) -> PyResult<Self> {
        let spared = Spared { lower: lower_spared, upper: upper_spared };
        let (lower, upper) = (taken_over(&lower)?, taken_over(&upper)?);
        Ok(Self(constraints::Constraints::new(lower, upper, reference_ns, base_ns, spared)))
    }

    /// What data and acknowledgements of flows say.
    #[staticmethod]
    fn of_flows(
        py: Python<'_>,
        flows: Vec<Bound<'_, FlowTimes>>,
        server_clock: bool,
        lower_spared: usize,
        upper_spared: usize,
        bins: usize,
    ) -> Self {
        let flows: Vec<_> = flows.iter().map(|flow| &flow.get().0).collect();
        let spared = Spared { lower: lower_spared, upper: upper_spared };
        Self(py.detach(|| constraints::Constraints::of_flows(&flows, server_clock, spared, bins)))
    }

    /// The most binding points of each of fewer stretches of time.
    fn thinned(&self, py: Python<'_>, bins: usize) -> Self {
        Self(py.detach(|| self.0.thinned(bins)))
    }

    /// The widest gap between the clouds over all lines of bounded slope.
    fn separate(&self, py: Python<'_>, drift_limit: f64) -> Line {
        py.detach(|| handed_over(self.0.separate(drift_limit)))
    }

    /// The widest gap where some points of each cloud may be ignored; `exact` is the gap where none may.
    fn separate_most(&self, py: Python<'_>, drift_limit: f64, drift_steps: usize, exact: Line) -> Line {
        let (slack_ns, offset_ns, drift, low_ns, high_ns) = exact;
        let exact = Separation { slack_ns, offset_ns, drift, low_ns, high_ns };
        py.detach(|| handed_over(self.0.separate_most(drift_limit, drift_steps, exact)))
    }

    /// The longest stretches of time in which one line separates the clouds: each with its line, start and end.
    fn separable_stretches(
        &self,
        py: Python<'_>,
        drift_limit: f64,
        drift_steps: usize,
        needed_ns: f64,
        most_steps: usize,
    ) -> Option<Vec<(Line, f64, f64)>> {
        py.detach(|| {
            let found = self.0.separable_stretches(drift_limit, drift_steps, needed_ns, most_steps)?;
            Some(found.iter().map(|part| (handed_over(part.separation), part.start_ns, part.end_ns)).collect())
        })
    }

    /// The bounds at no drift that are not spared.
    fn unspared_bounds_ns(&self) -> (f64, f64) {
        self.0.unspared_bounds_ns()
    }

    #[getter]
    fn span_ns(&self) -> Option<(f64, f64)> {
        self.0.span_ns()
    }

    #[getter]
    fn reference_ns(&self) -> i64 {
        self.0.reference_ns
    }

    #[getter]
    fn base_ns(&self) -> i64 {
        self.0.base_ns
    }

    #[getter]
    fn lower_spared(&self) -> usize {
        self.0.spared.lower
    }

    #[getter]
    fn upper_spared(&self) -> usize {
        self.0.spared.upper
    }

    #[getter]
    fn lower_count(&self) -> usize {
        self.0.lower.len()
    }

    #[getter]
    fn upper_count(&self) -> usize {
        self.0.upper.len()
    }

    #[getter]
    fn lower<'py>(&self, py: Python<'py>) -> Points<'py> {
        points(py, &self.0.lower)
    }

    #[getter]
    fn upper<'py>(&self, py: Python<'py>) -> Points<'py> {
        points(py, &self.0.upper)
    }
}

fn taken_over((x_ns, y_ns): &Columns<'_>) -> PyResult<constraints::Cloud> {
    let (x_ns, y_ns) = (x_ns.as_slice()?.to_vec(), y_ns.as_slice()?.to_vec());
    if x_ns.len() != y_ns.len() {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    Ok(constraints::Cloud { x_ns, y_ns })
}

fn points<'py>(py: Python<'py>, cloud: &constraints::Cloud) -> Points<'py> {
    (PyArray1::from_slice(py, &cloud.x_ns), PyArray1::from_slice(py, &cloud.y_ns))
}

fn handed_over(found: Separation) -> Line {
    (found.slack_ns, found.offset_ns, found.drift, found.low_ns, found.high_ns)
}

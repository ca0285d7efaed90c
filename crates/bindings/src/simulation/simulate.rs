//! Simulations, with the GIL released.

use std::path::PathBuf;
use std::time::Instant;

use numpy::IntoPyArray;
use pepscope_drive::assembly::BuildError;
use pepscope_drive::scenario::Scenario;
use pepscope_drive::simulation::Ending;
use pepscope_drive::truth::delays::Delays;
use pepscope_drive::truth::report::report;
use pepscope_drive::truth::series::Series;
use pepscope_path::Direction;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::simulation::application_plug_ins::application_factory;
use crate::simulation::plug_ins::{control_factory, hop_factory, Failures};

mod errors {
    pyo3::import_exception!(pepscope.errors, ScenarioError);
    pyo3::import_exception!(pepscope.errors, SimulationError);
}

/// One column of a series: where, of which flow, what, and its values.
pub(crate) type Column<'py> = (String, Option<u32>, &'static str, Bound<'py, PyAny>);

/// What a simulation left.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct Simulated {
    ending: Ending,
    wall_s: f64,
    simulated_s: f64,
    events: u64,
    captures: Vec<(String, PathBuf)>,
    truth: String,
    delays: Delays,
    series: Series,
}

/// Check a scenario; gives it back with every default filled in, as JSON.
#[pyfunction]
pub(crate) fn check_scenario(scenario: &str) -> PyResult<String> {
    Ok(read(scenario)?.resolved.to_string())
}

fn read(scenario: &str) -> PyResult<Scenario> {
    Scenario::from_json(scenario).map_err(|error| errors::ScenarioError::new_err(error.to_string()))
}

/// Run a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, directory, progress, plug_ins=None))]
pub(crate) fn simulate(
    py: Python<'_>,
    scenario: &str,
    directory: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    plug_ins: Option<Py<PyAny>>,
) -> PyResult<Simulated> {
    py.detach(|| {
        let mut scenario = read(scenario)?;
        let failures = Failures::default();
        let _controls = plug_ins.map(|plug_ins| {
            scenario.plug_ins = Some(hop_factory(&plug_ins, &failures));
            scenario.application_plug_ins = Some(application_factory(&plug_ins, &failures));
            control_factory(&plug_ins, &failures)
        });
        let mut simulation = scenario.build(directory.as_deref()).map_err(|error| match error {
            BuildError::Run(failure) => errors::SimulationError::new_err(failure.to_string()),
            refusal => failures.take().unwrap_or_else(|| errors::ScenarioError::new_err(refusal.to_string())),
        })?;
        let started = Instant::now();
        let mut raised = None;
        let ending = simulation.run(&mut |now, events| {
            raised = failures.take().or_else(|| look(now as f64 * 1e-9, events, progress.as_ref()).err());
            raised.is_none()
        });
        let wall_s = started.elapsed().as_secs_f64();
        if let Some(raised) = raised.or_else(|| failures.take()) {
            return Err(raised);
        }
        let ending = ending.map_err(|failure| errors::SimulationError::new_err(failure.to_string()))?;
        let truth = report(&scenario, &simulation).to_string();
        let captures = simulation.captures().iter().map(|(name, path, _)| (name.clone(), path.clone())).collect();
        let (simulated_s, events) = (simulation.now() as f64 * 1e-9, simulation.events());
        let (delays, series) = simulation.into_records();
        Ok(Simulated { ending, wall_s, simulated_s, events, captures, truth, delays, series })
    })
}

/// Looks for Ctrl-C and reports the progress of the run.
fn look(now_s: f64, events: u64, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(progress) = progress {
            progress.call1(py, (now_s, events))?;
        }
        Ok(())
    })
}

/// True times of the samples, in seconds.
pub(crate) fn series_times<'py>(py: Python<'py>, series: &Series) -> Bound<'py, PyAny> {
    let times: Vec<f64> = series.times_ns().iter().map(|time| *time as f64 * 1e-9).collect();
    times.into_pyarray(py).into_any()
}

pub(crate) fn series_columns<'py>(py: Python<'py>, series: &Series) -> Vec<Column<'py>> {
    let columns = series.columns().iter();
    columns
        .map(|column| {
            let values = column.values.clone().into_pyarray(py).into_any();
            (column.place.clone(), column.flow, column.quantity, values)
        })
        .collect()
}

#[pymethods]
impl Simulated {
    #[getter]
    fn ending(&self) -> &'static str {
        match self.ending {
            Ending::Finished => "finished",
            Ending::TimeIsUp => "time-is-up",
            Ending::Interrupted => "interrupted",
        }
    }

    /// Of the run itself, without reading the scenario and building the parts.
    #[getter]
    fn wall_s(&self) -> f64 {
        self.wall_s
    }

    #[getter]
    fn simulated_s(&self) -> f64 {
        self.simulated_s
    }

    #[getter]
    fn events(&self) -> u64 {
        self.events
    }

    /// Name and file of each capture.
    #[getter]
    fn captures(&self) -> Vec<(String, PathBuf)> {
        self.captures.clone()
    }

    #[getter]
    fn truth_json(&self) -> &str {
        &self.truth
    }

    fn series_times<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        series_times(py, &self.series)
    }

    fn series_columns<'py>(&self, py: Python<'py>) -> Vec<Column<'py>> {
        series_columns(py, &self.series)
    }

    /// Every segment that arrived at an end of a leg, if the scenario keeps them.
    fn arrivals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arrivals = self.delays.arrivals();
        let columns = PyDict::new(py);
        macro_rules! column {
            ($name:literal, $value:expr) => {{
                let values: Vec<_> = arrivals.iter().map($value).collect();
                columns.set_item($name, values.into_pyarray(py))?;
            }};
        }
        column!("leg", |arrival| arrival.leg);
        column!("flow", |arrival| arrival.flow);
        column!("is_up", |arrival| arrival.direction == Direction::Up);
        column!("sequence", |arrival| arrival.sequence);
        column!("payload_bytes", |arrival| arrival.payload_bytes);
        column!("sent_ns", |arrival| arrival.sent_ns as i64);
        column!("arrived_ns", |arrival| arrival.arrived_ns as i64);
        Ok(columns)
    }
}

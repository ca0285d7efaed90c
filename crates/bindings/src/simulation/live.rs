//! Paths between TUN devices in real time, with the GIL released.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use pepscope_drive::live::chain::LiveChain;
use pepscope_drive::live::event_loop::{self, LoopSettings, LoopTotals, Stopper};
use pepscope_drive::live::frame::Terminals;
use pepscope_drive::live::report_datagram::ReportRoute;
use pepscope_drive::live::LiveError;
use pepscope_drive::scenario::Scenario;
use pepscope_drive::truth::series::Series;
use pyo3::prelude::*;

use crate::simulation::simulate::{series_columns, series_times, Column};

mod errors {
    pyo3::import_exception!(pepscope.errors, LivePathError);
    pyo3::import_exception!(pepscope.errors, ScenarioError);
}

/// Packets taken from one device before the other one has its turn: what 32 packets take, some tens of microseconds, is
/// what the other direction may wait.
const BATCH_PACKETS: usize = 32;

/// Some hops of a scenario between two TUN devices.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct LivePath {
    path: Mutex<Option<event_loop::LivePath>>,
    stopper: Stopper,
    published: Arc<Mutex<LoopTotals>>,
    series: Mutex<Series>,
}

#[pymethods]
impl LivePath {
    #[new]
    #[pyo3(signature = (scenario, first_hop, end_hop, server_device, mobile_device, *, start_ns, spin_ns, packet_bytes, first_ipv4, first_ipv6, terminals, reports))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        scenario: &str,
        first_hop: usize,
        end_hop: usize,
        server_device: i32,
        mobile_device: i32,
        start_ns: u64,
        spin_ns: u64,
        packet_bytes: usize,
        first_ipv4: u32,
        first_ipv6: u128,
        terminals: u16,
        reports: Option<(IpAddr, IpAddr, u16)>,
    ) -> PyResult<Self> {
        let scenario = Scenario::from_json(scenario).map_err(|error| refusal(LiveError::Scenario(error)))?;
        let chain = LiveChain::new(&scenario, first_hop..end_hop).map_err(refusal)?;
        let settings = LoopSettings {
            start_ns,
            spin_ns,
            batch_packets: BATCH_PACKETS,
            packet_bytes,
            terminals: Terminals { first_ipv4, first_ipv6, count: terminals },
            reports: reports.map(|(from, to, port)| ReportRoute { from, to, port }),
            series_interval_ns: scenario.record.series_interval_ns,
        };
        let path = event_loop::LivePath::new(chain, server_device, mobile_device, settings).map_err(refusal)?;
        Ok(Self {
            stopper: path.stopper(),
            published: path.published(),
            path: Mutex::new(Some(path)),
            series: Mutex::default(),
        })
    }

    /// Carry packets on this thread until stopped.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        let taken = self.path.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut path = taken.ok_or(LiveError::Started).map_err(refusal)?;
        py.detach(|| {
            let ended = path.run().map_err(refusal);
            *self.series.lock().unwrap_or_else(PoisonError::into_inner) = path.series().clone();
            ended
        })
    }

    fn stop(&self) {
        self.stopper.stop();
    }

    /// What it has done so far, as JSON.
    fn totals_json(&self) -> String {
        event_loop::lock(&self.published).report().to_string()
    }

    fn series_times<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        series_times(py, &self.series.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn series_columns<'py>(&self, py: Python<'py>) -> Vec<Column<'py>> {
        series_columns(py, &self.series.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn refusal(error: LiveError) -> PyErr {
    match error {
        LiveError::Scenario(refused) => errors::ScenarioError::new_err(refused.to_string()),
        other => errors::LivePathError::new_err(other.to_string()),
    }
}

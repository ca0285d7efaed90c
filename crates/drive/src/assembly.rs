//! Builds the simulation that a scenario describes: hosts, hops and taps.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pepscope_path::{Direction, Random};
use pepscope_tcp::control::ControlFactory;
use pepscope_tcp::{ContentId, FlowSettings, Host, HostError, Role, Settings, Step, TimestampSource};

use crate::capture::file::CaptureFile;
use crate::capture::tap::Tap;
use crate::element::PathElement;
use crate::fields::{Read, ScenarioError};
use crate::scenario::machine::shared_server;
use crate::scenario::path::HopDescription;
use crate::scenario::transport::Transport;
use crate::scenario::Scenario;
use crate::simulation::{PlacedTap, RunError, RunSettings, Simulation};

mod applications;
pub(crate) use applications::ApplicationStreams;

/// Why a scenario cannot be run.
#[derive(Debug)]
pub enum BuildError {
    Scenario(ScenarioError),
    Host(HostError),
    Run(RunError),
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scenario(error) => error.fmt(out),
            Self::Host(error) => error.fmt(out),
            Self::Run(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for BuildError {}

impl Scenario {
    /// The simulation, with captures in `directory` if one is given.
    ///
    /// # Errors
    /// If components refuse their settings, or files cannot be made.
    pub fn build(&self, directory: Option<&Path>) -> Result<Simulation, BuildError> {
        self.build_with(directory, |path| CaptureFile::create(path).map(|file| Box::new(file) as Box<dyn Write + Send>))
    }

    /// As [`Scenario::build`], with files made by `open`.
    ///
    /// # Errors
    /// If components refuse their settings, or `open` fails.
    pub fn build_with(
        &self,
        directory: Option<&Path>,
        open: impl Fn(&Path) -> std::io::Result<Box<dyn Write + Send>>,
    ) -> Result<Simulation, BuildError> {
        self.check_controls().map_err(BuildError::Scenario)?;
        let mut hops = Vec::new();
        for hop in &self.path {
            hops.push((hop.name.clone(), self.hop(hop).map_err(BuildError::Scenario)?));
        }
        let settings = RunSettings {
            duration_ns: self.duration_ns,
            stop_after_finish_ns: self.stop_after_finish_ns,
            series_interval_ns: self.record.series_interval_ns,
            keep_arrivals: self.record.one_way_delays,
            fast_path: self.fast_path,
        };
        let mut server = self.host("server", Role::Server).map_err(BuildError::Host)?;
        let mut mobile = self.host("mobile", Role::Client).map_err(BuildError::Host)?;
        let streams = self.run_applications(&mut server, &mut mobile)?;
        let mut taps = Vec::new();
        if let Some(directory) = directory {
            let contents = Rc::new(self.traffic.contents.clone().with_streams(streams.streams.clone()));
            for tap in &self.record.taps {
                let path = capture_path(directory, &tap.settings.name);
                let file =
                    open(&path).map_err(|cause| BuildError::Run(RunError::Capture { path: path.clone(), cause }))?;
                let book = self.traffic.address_book(tap.settings.translation);
                let placed = Tap::new(&tap.settings, book, contents.clone(), self.seed, file);
                let name = tap.settings.name.clone();
                taps.push(PlacedTap { after_hop: tap.after_hop, name, path, tap: placed });
            }
        }
        Ok(Simulation::new(server, hops, mobile, taps, settings).with_streams(streams))
    }

    /// Refuses controls of plug-ins where nothing builds them.
    fn check_controls(&self) -> Read<()> {
        for (place, settings) in [("server", &self.server), ("mobile", &self.mobile)] {
            if settings.control.is_plug_in() && !ControlFactory::is_installed() {
                return Err(ScenarioError::Refused {
                    field: format!("{place}.control"),
                    value: settings.control.name().to_owned(),
                    allowed: "one of pepscope's own where scenarios run without Python".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn hop(&self, description: &HopDescription) -> Read<PathElement> {
        PathElement::new(description, self.seed, &self.traffic, self.fast_path, self.plug_ins.as_ref())
    }

    /// Requests that a single flow sends, and that flow.
    fn distinct_requests(&self) -> BTreeMap<ContentId, u32> {
        let mut requests: BTreeMap<ContentId, Option<u32>> = BTreeMap::new();
        for (number, flow) in (0..).zip(&self.traffic.flows) {
            if let (Some(_), Some(Step::Send { content, .. })) = (shared_server(flow), flow.mobile.steps.first()) {
                requests.entry(*content).and_modify(|other| *other = None).or_insert(Some(number));
            }
        }
        requests.into_iter().filter_map(|(content, flow)| Some((content, flow?))).collect()
    }

    /// One end of all flows.
    fn host(&self, name: &str, role: Role) -> Result<Host, HostError> {
        let mut host = Host::new(self.seed, name);
        let (settings, times, speaks) = match role {
            Role::Server => (self.server, self.server_times, Direction::Down),
            Role::Client => (self.mobile, self.mobile_times, Direction::Up),
        };
        if let Some(times) = times {
            host = host.taking_time(times);
        }
        for (number, flow) in self.traffic.flows.iter().enumerate() {
            let Transport::Tcp { when_needed } = flow.transport else { continue };
            let mut random = Random::new(self.seed, &format!("{name}: identity of flow {number}"));
            let own = if role == Role::Server { flow.server_tcp } else { flow.mobile_tcp };
            let own = own.unwrap_or(settings);
            let machine = if role == Role::Server { flow.server_number } else { flow.user };
            let connection = Settings {
                version_6: flow.version_6,
                initial_sequence_number: random.bits() as u32,
                timestamp_offset: match (random.bits() as u32, own.timestamp_source) {
                    (drawn, TimestampSource::Connection) => drawn,
                    (_, TimestampSource::Machine) => {
                        Random::new(self.seed, &format!("{name}: timestamp clock of machine {machine}")).bits() as u32
                    }
                },
                ip_identification: random.bits() as u16,
                header_prediction: self.fast_path,
                ..own
            };
            host.add_flow(FlowSettings {
                flow: number as u32,
                user: flow.user,
                role,
                start_ns: flow.start_ns,
                connection,
                script: if role == Role::Server { flow.server.clone() } else { flow.mobile.clone() },
            })?;
            if when_needed {
                host.open_when_needed(number as u32)?;
            }
        }
        if role == Role::Server && self.path.iter().any(HopDescription::reuses_connections) {
            for (content, flow) in self.distinct_requests() {
                host.serve_content(content, flow);
            }
        }
        for (direction, speaker) in &self.traffic.speakers {
            if *direction == speaks {
                host.add_speaker(speaker.clone());
            }
        }
        Ok(host)
    }
}

/// The path of the capture of the tap called `name`.
#[must_use]
pub fn capture_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.pcapng"))
}

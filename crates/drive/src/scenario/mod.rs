//! Scenarios: JSON in, simulations out. The tables in this module's parts are the contract for whoever writes one.
//!
//! | field | unit, range | default | meaning |
//! |---|---|---|---|
//! | `name`, `description` | text | required, empty | |
//! | `seed` | 0-2^64-1 | 1 | of all random numbers; each component draws its own by its name |
//! | `duration_s` | 0.001-1e7 | required | stop at the latest |
//! | `stop_after_finish_s` | 0-1e7, or -1 for never | 1 | stop so long after all flows have finished |
//! | `server`, `mobile` | tables | a host of today | [`endpoint`] |
//! | `path` | list, at most 62 | none | [`path`], from the server on |
//! | `traffic` | list | none | [`traffic`] |
//! | `record` | table | captures at both ends | [`record`] |
//!
//! A field that nobody knows is refused, and null is as good as absent.

mod buffer;
pub mod endpoint;
mod error;
pub mod fields;
pub mod hsdpa;
mod hsdpa_radio;
mod hsdpa_terminal;
mod http;
pub mod link;
pub mod lte;
pub mod path;
pub mod proxy;
pub mod record;
pub mod traffic;
pub mod umts_dch;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pepscope_path::{Direction, Nanoseconds, Random};
use pepscope_tcp::{FlowSettings, Host, HostError, Role, Settings};
use serde_json::Value;

pub use error::ScenarioError;
use fields::{nanoseconds, Fields, Read};
use path::HopDescription;
use record::{Record, MOST_SECONDS};
use traffic::Traffic;

use crate::capture::file::CaptureFile;
use crate::capture::tap::Tap;
use crate::simulation::{PlacedTap, RunError, RunSettings, Simulation};

/// Parts of a chain that the driver can keep apart, without the two hosts.
const MOST_HOPS: usize = 62;

/// A scenario as read; see the module for its fields.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub description: String,
    pub seed: u64,
    pub duration_ns: Nanoseconds,
    /// `None`: run for the whole duration.
    pub stop_after_finish_ns: Option<Nanoseconds>,
    pub server: Settings,
    pub mobile: Settings,
    pub path: Vec<HopDescription>,
    pub traffic: Traffic,
    pub record: Record,
    /// The scenario as JSON with every default filled in.
    pub resolved: Value,
}

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
    /// Reads a scenario from JSON.
    ///
    /// # Errors
    /// A sentence that names the field, its value and what is allowed.
    pub fn from_json(text: &str) -> Read<Self> {
        let mut fields = Fields::parse(text)?;
        let missing = ScenarioError::Missing { field: "name".to_owned(), allowed: "a text".to_owned() };
        let name = fields.optional_text("name", "a text")?.ok_or(missing)?;
        let description = fields.text("description", "")?;
        let seed = fields.integer("seed", 0..=u64::MAX, 1)?;
        let duration_ns = nanoseconds(fields.required_number("duration_s", 0.001..=MOST_SECONDS)?);
        let after_s = fields.number("stop_after_finish_s", -1.0..=MOST_SECONDS, 1.0)?;
        let server = fields.section("server", endpoint::read_endpoint)?;
        let mobile = fields.section("mobile", endpoint::read_endpoint)?;
        let mut kinds = Vec::new();
        let path = fields.sections("path", |hop| {
            let description = HopDescription::read(hop, &kinds)?;
            kinds.push(description.kind);
            Ok(description)
        })?;
        if path.len() > MOST_HOPS {
            return Err(fields.refuse("path", format!("{} hops long", path.len()), format!("at most {MOST_HOPS}")));
        }
        for (number, hop) in path.iter().enumerate() {
            hop.check(path.get(number + 1..).unwrap_or_default())?;
        }
        let mut traffic = Traffic::behind(path.iter().find_map(HopDescription::recompression_ratio));
        fields.sections("traffic", |entry| traffic.read(entry))?;
        for hop in &path {
            hop.check_users(traffic.users())?;
        }
        let record = fields.section("record", |record| Record::read(record, path.len()))?;
        Ok(Self {
            name,
            description,
            seed,
            duration_ns,
            stop_after_finish_ns: (after_s >= 0.0).then(|| nanoseconds(after_s)),
            server,
            mobile,
            path,
            traffic,
            record,
            resolved: fields.finish()?,
        })
    }

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
        let mut hops = Vec::new();
        for hop in &self.path {
            hops.push((hop.name.clone(), hop.build(self.seed, &self.traffic).map_err(BuildError::Scenario)?));
        }
        let settings = RunSettings {
            duration_ns: self.duration_ns,
            stop_after_finish_ns: self.stop_after_finish_ns,
            series_interval_ns: self.record.series_interval_ns,
            keep_arrivals: self.record.one_way_delays,
        };
        let server = self.host("server", Role::Server).map_err(BuildError::Host)?;
        let mobile = self.host("mobile", Role::Client).map_err(BuildError::Host)?;
        let mut taps = Vec::new();
        if let Some(directory) = directory {
            let contents = Arc::new(self.traffic.contents.clone());
            let ports: Vec<u16> = self.traffic.flows.iter().map(|flow| flow.server_port).collect();
            for tap in &self.record.taps {
                let path = capture_path(directory, &tap.settings.name);
                let file =
                    open(&path).map_err(|cause| BuildError::Run(RunError::Capture { path: path.clone(), cause }))?;
                let placed = Tap::new(&tap.settings, ports.clone(), contents.clone(), self.seed, file);
                let name = tap.settings.name.clone();
                taps.push(PlacedTap { after_hop: tap.after_hop, name, path, tap: placed });
            }
        }
        Ok(Simulation::new(server, hops, mobile, taps, settings))
    }

    /// What a detector should say of the path: `regular`, or the kind of its first proxy.
    #[must_use]
    pub fn class(&self) -> &'static str {
        self.path.iter().find_map(HopDescription::class).unwrap_or("regular")
    }

    /// One end of all flows.
    fn host(&self, name: &str, role: Role) -> Result<Host, HostError> {
        let mut host = Host::new(self.seed, name);
        let (settings, speaks) = match role {
            Role::Server => (self.server, Direction::Down),
            Role::Client => (self.mobile, Direction::Up),
        };
        for (number, flow) in self.traffic.flows.iter().enumerate() {
            let mut random = Random::new(self.seed, &format!("{name}: identity of flow {number}"));
            let own = if role == Role::Server { flow.server_tcp } else { flow.mobile_tcp };
            let connection = Settings {
                version_6: flow.version_6,
                initial_sequence_number: random.bits() as u32,
                timestamp_offset: random.bits() as u32,
                ip_identification: random.bits() as u16,
                ..own.unwrap_or(settings)
            };
            host.add_flow(FlowSettings {
                flow: number as u32,
                user: flow.user,
                role,
                start_ns: flow.start_ns,
                connection,
                script: if role == Role::Server { flow.server.clone() } else { flow.mobile.clone() },
            })?;
        }
        for (direction, speaker) in &self.traffic.speakers {
            if *direction == speaks {
                host.add_speaker(speaker.clone());
            }
        }
        Ok(host)
    }
}

/// Where the capture of the tap called `name` is.
#[must_use]
pub fn capture_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.pcapng"))
}

//! What a machine is made of: connections with an application each, their order, speakers, how long it takes.

use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, NextTimes, Random, NEVER, SECOND};

use super::attribution::Attribution;
use super::fast_path::FastFlows;
use super::flow::Flow;
use super::identifications::Identifications;
use super::processing::{Processing, ProcessingSettings};
use super::{FlowResult, FlowSettings, Host, HostError, Outcome, Role};
use crate::applications::application::{Application, ApplicationCounts};
use crate::applications::script::ScriptError;
use crate::applications::voice::{VoiceSettings, VoiceSource};
use crate::connection::Connection;
use crate::flow_table::FlowTable;
use crate::statistics::Statistics;

impl Host {
    /// A host called `name` in the run with `seed`, which its applications and speakers draw from.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            seed,
            flows: Vec::new(),
            places: FlowTable::default(),
            times: NextTimes::default(),
            ready: VecDeque::new(),
            fast_flows: FastFlows::default(),
            earliest_ns: 0,
            speakers: Vec::new(),
            speaker_times: NextTimes::default(),
            datagram_flows: Vec::new(),
            datagram_places: FlowTable::default(),
            datagram_times: NextTimes::default(),
            leaving: VecDeque::new(),
            heard: Vec::new(),
            open_flows: 0,
            stray_packets: 0,
            attribution: Attribution::default(),
            identifications: Identifications::default(),
            processing: None,
        }
    }

    /// Has the machine take time for packets, and its programs until they act.
    #[must_use]
    pub fn taking_time(mut self, settings: ProcessingSettings) -> Self {
        let random = Random::new(self.seed, &format!("{}: processing", self.name));
        self.processing = Some(Processing::new(settings, random));
        self
    }

    /// Adds one end of a flow.
    ///
    /// # Errors
    /// The flow's number is taken or too large, or its script cannot be run.
    pub fn add_flow(&mut self, settings: FlowSettings) -> Result<(), HostError> {
        let FlowSettings { flow, user, role, start_ns, connection, script } = settings;
        if self.places.get(flow).is_some() {
            return Err(HostError::FlowTaken { flow });
        }
        let random = Random::new(self.seed, &format!("{}: flow {flow}", self.name));
        let application = Application::new(&script, random)?;
        let place = self.flows.len();
        self.places.get_or_make(flow, || place).ok_or(HostError::FlowOutOfRange { flow })?;
        let (connection, connect_ns) = match role {
            Role::Client => (Connection::client(connection, flow, user), start_ns),
            Role::Server => (Connection::server(connection, flow, user), NEVER),
        };
        let result = FlowResult {
            flow,
            user,
            role,
            outcome: Outcome::Open,
            start_ns,
            connected_ns: None,
            peer_finished_ns: None,
            ended_ns: None,
            application: ApplicationCounts::default(),
            statistics: Statistics::default(),
        };
        self.flows.push(Flow {
            connection,
            application,
            result,
            connect_ns,
            is_ready: false,
            wake_ns: NEVER,
            is_dormant: false,
            is_fast: false,
            successor: None,
        });
        self.open_flows += 1;
        self.times.reserve(self.flows.len());
        self.times.set(place, connect_ns);
        Ok(())
    }

    /// Has `flow` connect when `predecessor` has ended and a time has passed that is exponentially distributed (a user
    /// with think times between pages that each use a connection). It replaces the flow's start.
    ///
    /// # Errors
    /// One of the flows does not exist, or the mean is not a time.
    pub fn start_after(&mut self, predecessor: u32, flow: u32, think_time_mean_s: f64) -> Result<(), HostError> {
        if think_time_mean_s.is_nan() || think_time_mean_s < 0.0 {
            return Err(ScriptError::ThinkTime(think_time_mean_s).into());
        }
        let place_of = |flow| self.places.get(flow).copied().ok_or(HostError::FlowUnknown { flow });
        let (first, then) = (place_of(predecessor)?, place_of(flow)?);
        let think_time_s =
            Random::new(self.seed, &format!("{}: start of flow {flow}", self.name)).exponential(think_time_mean_s);
        self.flows[first].successor = Some((then, (think_time_s * SECOND as f64) as Nanoseconds));
        self.flows[then].connect_ns = NEVER;
        self.times.set(then, NEVER);
        Ok(())
    }

    /// Adds a speaker, whose frames the other end's host counts for its user.
    pub fn add_speaker(&mut self, settings: VoiceSettings) {
        let place = self.speakers.len();
        let random = Random::new(self.seed, &format!("{}: speaker {place}", self.name));
        self.speakers.push(VoiceSource::new(settings, random));
        self.speaker_times.reserve(self.speakers.len());
        self.speaker_times.set(place, self.speakers[place].poll_timeout());
    }
}

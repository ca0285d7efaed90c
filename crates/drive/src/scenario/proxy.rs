//! `[[path]]` entries that end TCP connections.

use pepscope_tcp::proxy::{
    AbortPropagation, AdaptationSettings, Forwarding, MachineSettings, Opening, ProxySettings, RateSource,
    SlidingModeSettings, StoreSettings,
};
use pepscope_tcp::Settings;

use super::endpoint::read_endpoint;
use super::machine::{read_machine, shared_server, MachineDescription};
use super::traffic::{FlowDescription, Traffic};
use crate::fields::{Fields, Read, ScenarioError};
use crate::links::FrameRate;

/// A proxy as described; which flows and objects it meets is for the traffic to say.
#[derive(Clone, Debug)]
pub struct ProxyDescription {
    settings: ProxySettings,
    /// Ports that it takes; `None` takes all.
    server_ports: Option<Vec<u64>>,
    /// Length of an HTTP response's body behind the proxy, as a share of what it was.
    pub(super) recompression_ratio: Option<f64>,
    allows_wrong_parameters: bool,
    machine: MachineDescription,
    /// The whole name of its table, for refusals.
    place: String,
}

/// Kinds of proxy, and what a detector should say of them.
pub(super) const KINDS: [(&str, &str); 3] =
    [("split-proxy", "split-tcp"), ("store-and-forward-proxy", "tcp-proxy"), ("window-adaptation-proxy", "split-tcp")];

/// Reads a proxy:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `server_leg`, `mobile_leg` | tables | hosts of today | [`super::endpoint`], of the connection with either side |
/// | `opening` | `at-once`, `after-accept`, `far-end-first`, `with-data` | `at-once` | when it connects to the far end: with its own SYN-ACK; when the client's connection is established, as programs do that accept it; before it answers the client; with the first data |
/// | `aborts` | `at-once`, `delayed`, `never` | `at-once` | what a reset of one leg does to the other |
/// | `abort_delay_s` | 0-1e7 | 10 | after which a delayed one follows |
/// | `server_ports` | list of 1-65535 | all | which connections it takes |
///
/// Legs follow the rules of whatever `host` they name, whatever the hosts of the scenario do; `takes_time` and `times`
/// stand at the proxy, which is one machine. What its program and machine are like: see [`super::machine::read_machine`].
///
/// `split-proxy`: `buffer_bytes` (1024-2^30, default 262144) waiting or unacknowledged a direction.
///
/// `store-and-forward-proxy`: `storage_bytes` (1024-2^40, default 2^30), larger objects pass through; `pause_s` (0-1e7,
/// default 1) after which bytes of no known object are forwarded; `cache_bytes` (0-2^40, default 0);
/// `recompression_ratio` (0.001-1, default none) of HTTP response bodies.
///
/// `window-adaptation-proxy`: `buffer_bytes`, and `control`, see [`read_adaptation`].
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_proxy(fields: &mut Fields, kind: &str) -> Read<ProxyDescription> {
    let server_leg = fields.section("server_leg", read_leg)?;
    let mobile_leg = fields.section("mobile_leg", read_leg)?;
    let opening = fields.choice(
        "opening",
        &[
            ("at-once", Opening::AtOnce),
            ("after-accept", Opening::AfterAccept),
            ("far-end-first", Opening::FarEndFirst),
            ("with-data", Opening::WithData),
        ],
    )?;
    let delay_ns = fields.seconds("abort_delay_s", 0.0..=1e7, 10.0)?;
    let aborts = fields.choice(
        "aborts",
        &[
            ("at-once", AbortPropagation::AtOnce),
            ("delayed", AbortPropagation::After(delay_ns)),
            ("never", AbortPropagation::Never),
        ],
    )?;
    let server_ports = fields.optional_integers("server_ports", 1..=65_535)?;
    let mut recompression_ratio = None;
    let mut allows_wrong_parameters = false;
    let forwarding = match kind {
        "split-proxy" => Forwarding::Relay { buffer_bytes: read_buffer(fields)? },
        "store-and-forward-proxy" => {
            recompression_ratio = fields.optional_number("recompression_ratio", 0.001..=1.0)?;
            Forwarding::Store(StoreSettings {
                objects: Vec::new(),
                pause_ns: fields.seconds("pause_s", 0.0..=1e7, 1.0)?,
                storage_bytes: fields.integer("storage_bytes", 1024..=1 << 40, 1 << 30)?,
                cache_bytes: fields.integer("cache_bytes", 0..=1 << 40, 0)?,
            })
        }
        _ => {
            let buffer_bytes = read_buffer(fields)?;
            let adaptation = fields.section("control", |control| {
                allows_wrong_parameters = control.flag("allows_wrong_parameters", false)?;
                read_adaptation(control)
            })?;
            Forwarding::Adapt { buffer_bytes, adaptation }
        }
    };
    let buffer_bytes = match &forwarding {
        Forwarding::Relay { buffer_bytes } | Forwarding::Adapt { buffer_bytes, .. } => Some(*buffer_bytes),
        Forwarding::Store(_) => None,
    };
    let machine = read_machine(fields, buffer_bytes, !matches!(forwarding, Forwarding::Adapt { .. }))?;
    let settings = ProxySettings {
        server_leg,
        mobile_leg,
        forwarding,
        opening,
        aborts,
        bypassed_flows: Vec::new(),
        machine: MachineSettings::default(),
    };
    let place = fields.place().to_owned();
    Ok(ProxyDescription { settings, server_ports, recompression_ratio, allows_wrong_parameters, machine, place })
}

/// One leg's connection. Its machine is the proxy's.
fn read_leg(fields: &mut Fields) -> Read<Settings> {
    for name in ["takes_time", "times"] {
        if let Some(value) = fields.given_value(name) {
            return Err(fields.refuse(name, value, "absent: it stands at the proxy, which is one machine"));
        }
    }
    read_endpoint(fields)
}

fn read_buffer(fields: &mut Fields) -> Read<u64> {
    fields.integer("buffer_bytes", 1024..=1 << 30, 256 << 10)
}

/// Reads the sliding-mode control law (seed 003, eq. 36); the defaults are the paper's:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `step_s` | 1e-4-1000 | 0.025 | Ts: period of the reports |
/// | `delay_steps` | 1-1000 | 1 | d: steps between Node-B and proxy |
/// | `frames_per_packet` | 1-10000 | 13 | gamma |
/// | `reference_frames` | 0-1e9 | 100 | q0 |
/// | `buffer_frames` | 1-1e9 | 200 | Bmax |
/// | `smoothing` | 0-1 | 0.85 | alpha |
/// | `approach_per_s` | 0-1e6 | 35 | delta |
/// | `switching_frames_s` | 0-1e9 | 20 | epsilon |
/// | `extremes_steps` | 1-1000000 | 200 | steps over which extremes of the rate count |
/// | `rate_source` | `served`, `offered` | `served` | which number of a report is the rate |
/// | `spreads_packets` | true, false | true | over the step, instead of at its start |
/// | `allows_wrong_parameters` | true, false | false | run what breaks eq. (43) or the bounds of Ts all the same |
///
/// # Errors
/// If a field is outside its range.
fn read_adaptation(fields: &mut Fields) -> Read<AdaptationSettings> {
    let paper = SlidingModeSettings::default();
    let law = SlidingModeSettings {
        step_s: fields.number("step_s", 1e-4..=1000.0, paper.step_s)?,
        delay_steps: fields.integer("delay_steps", 1..=1000, 1)? as u32,
        frames_per_packet: fields.number("frames_per_packet", 1.0..=10_000.0, paper.frames_per_packet)?,
        reference_frames: fields.number("reference_frames", 0.0..=1e9, paper.reference_frames)?,
        buffer_frames: fields.number("buffer_frames", 1.0..=1e9, paper.buffer_frames)?,
        smoothing: fields.number("smoothing", 0.0..=1.0, paper.smoothing)?,
        approach_per_s: fields.number("approach_per_s", 0.0..=1e6, paper.approach_per_s)?,
        switching_frames_s: fields.number("switching_frames_s", 0.0..=1e9, paper.switching_frames_s)?,
        extremes_steps: fields.integer("extremes_steps", 1..=1_000_000, paper.extremes_steps as u64)? as usize,
    };
    let rate_source =
        fields.choice("rate_source", &[("served", RateSource::Served), ("offered", RateSource::Offered)])?;
    Ok(AdaptationSettings { law, rate_source, spreads_packets: fields.flag("spreads_packets", true)? })
}

impl ProxyDescription {
    /// Refuses a control law that cannot hold the queue of a link of `rate` (seed 003, eq. 43 and section 5.2), unless
    /// the scenario allows it.
    ///
    /// # Errors
    /// A sentence that names the bound.
    pub(super) fn check_control(&self, place: &str, rate: Option<FrameRate>) -> Read<()> {
        let Forwarding::Adapt { adaptation, .. } = &self.settings.forwarding else {
            return Ok(());
        };
        let checked = if self.allows_wrong_parameters {
            adaptation.law.check_domain()
        } else {
            adaptation.law.check(rate.map(|rate| rate.mean_frames_s), rate.and_then(|rate| rate.period_s))
        };
        checked.map_err(|error| ScenarioError::Unreadable {
            field: format!("{place}.control"),
            cause: format!("{error} (allows_wrong_parameters = true runs it all the same)"),
        })
    }

    /// Whether a connection with the server may serve several flows.
    pub(crate) fn reuses_connections(&self) -> bool {
        self.machine.reuses()
    }

    /// Refuses to keep connections with servers for traffic that shares none.
    ///
    /// # Errors
    /// A sentence that says which traffic would.
    pub(super) fn check_traffic(&self, traffic: &Traffic) -> Read<()> {
        let shares = traffic.flows.iter().any(|flow| shared_server(flow).is_some());
        if self.machine.reuses() && !shares {
            return Err(ScenarioError::Refused {
                field: format!("{}.reuse_idle_s", self.place),
                value: "given".to_owned(),
                allowed: "absent where no traffic is of kind http".to_owned(),
            });
        }
        Ok(())
    }

    /// Refuses applications whose connections it would have to store: it knows objects by name, and what protocols write
    /// has none.
    ///
    /// # Errors
    /// A sentence that names the kind of traffic.
    pub(super) fn check_applications(&self, place: &str, traffic: &Traffic) -> Read<()> {
        if !matches!(self.settings.forwarding, Forwarding::Store(_)) {
            return Ok(());
        }
        let takes = |port: u16| self.server_ports.as_ref().is_none_or(|ports| ports.contains(&u64::from(port)));
        let is_stored =
            |flow: &&FlowDescription| flow.is_protocol && flow.transport.is_tcp() && takes(flow.server_port);
        match traffic.flows.iter().find(is_stored) {
            None => Ok(()),
            Some(flow) => Err(ScenarioError::Refused {
                field: format!("{place}.kind"),
                value: "\"store-and-forward-proxy\"".to_owned(),
                allowed: format!(
                    "one that relays, or server_ports must leave out {}, where there is traffic of kind {}: a store cannot \
                     tell the objects of its connections apart",
                    flow.server_port, flow.kind
                ),
            }),
        }
    }

    /// What the proxy is to do in a run with `traffic`.
    pub(crate) fn settings(&self, traffic: &Traffic) -> ProxySettings {
        let mut settings = self.settings.clone();
        settings.machine = self.machine.settings(traffic);
        if let Forwarding::Store(store) = &mut settings.forwarding {
            store.objects.clone_from(&traffic.objects);
        }
        settings.bypassed_flows = traffic.flows_beside(self.server_ports.as_deref());
        settings
    }
}

//! `[[traffic]]` of applications that decide while they run what they do: state machines on their connections.

mod chat;
mod ping;
mod plug_in;
mod quic;
mod security;
mod video;
mod web;

use pepscope_path::{Nanoseconds, Random};
use pepscope_tcp::{Script, Settings, FLOW_LIMIT};

use super::endpoint::read_endpoint;
use super::traffic::{FlowDescription, Traffic, MOST_FLOWS};
use super::transport::Transport;
use crate::fields::{Fields, Read, MOST_SECONDS};
use crate::plug_ins::{ApplicationEnds as Ends, ApplicationFactory};
use chat::ChatDescription;
use ping::PingDescription;
use plug_in::PlugInApplication;
use quic::QuicDescription;
use video::Video;
use web::Web;

/// Every `kind` of application.
pub(super) const KINDS: &[&str] = &["web", "video", "chat", "quic", "ping", "plug-in"];

/// The last address of the servers' network is behind this number.
const MOST_SERVERS: u64 = 200;

/// An application and its flows.
#[derive(Clone, Debug)]
pub struct PlacedApplication {
    first_flow: u32,
    application: Application,
}

#[derive(Clone, Debug)]
enum Application {
    Web(Web),
    Video(Video),
    Chat(ChatDescription),
    Quic(Box<QuicDescription>),
    Ping(PingDescription),
    PlugIn(PlugInApplication),
}

/// A flow that an application has.
pub(super) struct ApplicationFlow {
    pub(super) transport: Transport,
    pub(super) server_number: u16,
    pub(super) server_port: u16,
}

impl Application {
    fn read(fields: &mut Fields, kind: &str) -> Read<Self> {
        Ok(match kind {
            "web" => Self::Web(Web::read(fields)?),
            "video" => Self::Video(Video::read(fields)?),
            "chat" => Self::Chat(ChatDescription::read(fields)?),
            "quic" => Self::Quic(Box::new(QuicDescription::read(fields)?)),
            "ping" => Self::Ping(PingDescription::read(fields)?),
            _ => Self::PlugIn(PlugInApplication::read(fields)?),
        })
    }

    fn flows(&self) -> Vec<ApplicationFlow> {
        match self {
            Self::Web(web) => web.flows(),
            Self::Video(video) => vec![video.flow()],
            Self::Chat(chat) => vec![chat.flow()],
            Self::Quic(quic) => vec![quic.flow()],
            Self::Ping(ping) => vec![ping.flow()],
            Self::PlugIn(application) => vec![application.flow()],
        }
    }
}

impl PlacedApplication {
    /// The number of its first flow, and both ends of this and those behind it, in the run with `seed`.
    ///
    /// # Errors
    /// If a plug-in is not there or refuses its settings.
    pub(crate) fn ends(&self, seed: u64, plug_ins: Option<&ApplicationFactory>) -> Read<(u32, Vec<Ends>)> {
        let flow = self.first_flow;
        let ends = match &self.application {
            Application::Web(web) => web.ends(seed, flow),
            Application::Video(video) => vec![video.ends(seed, flow)],
            Application::Chat(chat) => vec![chat.ends(seed, flow)],
            Application::Quic(quic) => vec![quic.ends(seed, flow)],
            Application::Ping(ping) => vec![ping.ends(flow)],
            Application::PlugIn(application) => vec![application.ends(seed, flow, plug_ins)?],
        };
        Ok((flow, ends))
    }
}

/// A connection that is opened when its application starts.
fn opened_at_start(server_number: u16, server_port: u16) -> ApplicationFlow {
    ApplicationFlow { transport: Transport::Tcp { when_needed: false }, server_number, server_port }
}

/// Reads which server it is; the table is the caller's.
fn read_server_number(fields: &mut Fields) -> Read<u16> {
    Ok(fields.integer("server_number", 0..=MOST_SERVERS, 0)? as u16)
}

/// The random numbers of one end of `flow`, for what `name` says.
fn random(seed: u64, flow: u32, name: &str) -> Random {
    Random::new(seed, &format!("application of flow {flow}: {name}"))
}

/// What all flows of an entry have in common.
struct Placement {
    start_ns: Nanoseconds,
    version_6: bool,
    mobile_tcp: Option<Settings>,
    server_tcp: Option<Settings>,
}

impl Traffic {
    /// Reads an application (docs/models/applications.md):
    ///
    /// | kind | what it is |
    /// |---|---|
    /// | `web` | a browser that loads pages, see [`super::applications::web`] |
    /// | `video` | a player that chooses rates, see [`super::applications::video`] |
    /// | `chat` | short messages both ways, see [`super::applications::chat`] |
    /// | `quic` | requests over QUIC, which no proxy splits, see [`super::applications::quic`] |
    /// | `ping` | ICMP echo, which no proxy splits, see [`super::applications::ping`] |
    /// | `plug-in` | one written in Python, see [`super::applications::plug_in`] |
    ///
    /// All have
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `count` | 1-100000 | 1 | so many of them |
    /// | `start_s`, `spacing_s` | 0-1e7 | 0 | when the first starts, and how long after it each further one |
    /// | `user` | 0-65535 | 0 | the mobile |
    /// | `one_user_each` | true, false | false | each further one belongs to the next mobile |
    /// | `ip_version` | 4, 6 | 4 | |
    /// | `server_number` | 0-200 | 0 | which server: its address is the first one's and so many more |
    /// | `mobile_tcp`, `server_tcp` | tables | the scenario's `mobile`, `server` | TCP of these connections alone, see [`super::endpoint`]: replaces all fields |
    ///
    /// # Errors
    /// If a field is outside its range or there are too many flows.
    pub(super) fn read_application(&mut self, fields: &mut Fields, kind: &'static str) -> Read<()> {
        let count = fields.integer("count", 1..=MOST_FLOWS, 1)?;
        let start_ns = fields.seconds("start_s", 0.0..=MOST_SECONDS, 0.0)?;
        let spacing_ns = fields.seconds("spacing_s", 0.0..=MOST_SECONDS, 0.0)?;
        let first_user = fields.integer("user", 0..=65_535, 0)?;
        let one_user_each = fields.flag("one_user_each", false)?;
        let version_6 = fields.integer("ip_version", 4..=6, 4)?;
        if version_6 == 5 {
            return Err(fields.refuse("ip_version", 5, "4 or 6"));
        }
        let mobile_tcp = fields.optional_section("mobile_tcp", read_endpoint)?;
        let server_tcp = fields.optional_section("server_tcp", read_endpoint)?;
        let application = Application::read(fields, kind)?;
        let flows = application.flows();
        if one_user_each && first_user + count > 65_536 {
            return Err(fields.refuse("count", count, "at most the number of mobiles from `user` to 65535"));
        }
        if self.flows.len() as u64 + count * flows.len() as u64 > u64::from(FLOW_LIMIT) {
            return Err(fields.refuse("count", count, format!("small enough for at most {FLOW_LIMIT} flows in all")));
        }
        let is_udp = flows.iter().any(|flow| matches!(flow.transport, Transport::Datagrams(_)));
        if is_udp && version_6 == 6 {
            return Err(fields.refuse("ip_version", 6, format!("4 for {kind}")));
        }
        for number in 0..count {
            let user = if one_user_each { first_user + number } else { first_user } as u16;
            let start_ns = start_ns.saturating_add(spacing_ns.saturating_mul(number));
            let placement = Placement { start_ns, version_6: version_6 == 6, mobile_tcp, server_tcp };
            self.place(kind, user, &application, &placement);
        }
        Ok(())
    }

    fn place(&mut self, kind: &'static str, user: u16, application: &Application, placement: &Placement) {
        let first_flow = self.flows.len() as u32;
        for flow in application.flows() {
            self.flows.push(FlowDescription {
                kind,
                user,
                start_ns: placement.start_ns,
                version_6: placement.version_6,
                transport: flow.transport,
                is_protocol: true,
                server_number: flow.server_number,
                server_port: flow.server_port,
                mobile: Script::new(Vec::new()),
                server: Script::new(Vec::new()),
                mobile_tcp: placement.mobile_tcp,
                server_tcp: placement.server_tcp,
            });
        }
        self.applications.push(PlacedApplication { first_flow, application: application.clone() });
    }
}

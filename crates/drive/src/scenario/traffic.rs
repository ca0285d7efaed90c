//! `[[traffic]]`: who sends what to whom, and when.

use pepscope_path::{Direction, Nanoseconds};
use pepscope_tcp::proxy::StoredObject;
use pepscope_tcp::{ContentId, Pause, Reading, Script, Settings, Step, VoiceSettings, FLOW_LIMIT};

use super::applications::{PlacedApplication, KINDS as APPLICATION_KINDS};
use super::endpoint::read_endpoint;
use super::http::{self, Head};
use super::transport::Transport;
use crate::capture::addresses::{AddressBook, Translation, DEFAULT_SERVER_PORT};
use crate::capture::content::Contents;
use crate::fields::{nanoseconds, Fields, Read, ScenarioError, MOST_SECONDS};

const MOST_BYTES: u64 = 1 << 44;
pub(super) const MOST_FLOWS: u64 = 100_000;

/// One flow between the mobile and a server.
#[derive(Clone, Debug)]
pub struct FlowDescription {
    pub kind: &'static str,
    pub user: u16,
    pub start_ns: Nanoseconds,
    pub version_6: bool,
    pub transport: Transport,
    /// A protocol says what is written, not the scripts.
    pub is_protocol: bool,
    /// Which of the servers; all are at the same end of the path.
    pub server_number: u16,
    pub server_port: u16,
    pub mobile: Script,
    pub server: Script,
    /// TCP of either end, where it is not that of the scenario's `mobile` and `server`.
    pub mobile_tcp: Option<Settings>,
    pub server_tcp: Option<Settings>,
}

/// Everything that is sent.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Flow n is the nth.
    pub flows: Vec<FlowDescription>,
    /// What runs on some of them.
    pub applications: Vec<PlacedApplication>,
    pub speakers: Vec<(Direction, VoiceSettings)>,
    /// Texts that contents begin with.
    pub contents: Contents,
    /// What a store-and-forward proxy recognises.
    pub objects: Vec<StoredObject>,
    recompression_ratio: Option<f64>,
    next_content: u32,
}

/// What one entry does; numbers of contents come later, one for each flow.
enum Exchange {
    Transfer { down: Amount, up: Amount, is_http: bool },
    Pages { pages: u32, page_bytes: u64, request_bytes: u64, think_time_mean_s: f64 },
}

/// How much is sent one way.
#[derive(Clone, Copy)]
enum Amount {
    Nothing,
    Bytes(u64),
    For(Nanoseconds),
}

/// When one side aborts.
enum Abort {
    Never,
    After(Nanoseconds),
    AfterBytes(u64),
}

/// How one side reads, and whether it aborts.
struct Manner {
    reading: Reading,
    pauses: Vec<Pause>,
    abort: Abort,
}

impl Traffic {
    /// No traffic yet, on a path that leaves this share of an HTTP response's body.
    pub(super) fn behind(recompression_ratio: Option<f64>) -> Self {
        Self { recompression_ratio, ..Self::default() }
    }

    /// Reads one entry by `kind` and adds its flows.
    ///
    /// | kind | fields |
    /// |---|---|
    /// | `download`, `upload` | `bytes` (1-2^44) or `duration_s` (0.001-1e7); `application`: `plain` (default) or `http` (only with `bytes`) |
    /// | `both` | `down_bytes` and `up_bytes`, or `duration_s`: both ways at once |
    /// | `http` | `page_bytes` (1-2^44), `pages` (1-1e6, default 1), `request_bytes` (120-65535, default 300), `think_time_mean_s` (0-1e6, default 30): one connection, exponential times between its pages |
    /// | `voice` | see [`super::voice`] |
    /// | `web`, `video`, `chat`, `quic`, `ping`, `plug-in` | applications, see [`super::applications`] |
    ///
    /// The first four have further
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `count` | 1-100000 | 1 | so many of them |
    /// | `start_s`, `spacing_s` | 0-1e7 | 0 | when the first starts, and how long after it each further one |
    /// | `user` | 0-65535 | 0 | the mobile |
    /// | `same_objects` | true, false | false | all of them request and send the same bytes, which a cache can serve |
    /// | `one_user_each` | true, false | false | each further one belongs to the next mobile |
    /// | `ip_version` | 4, 6 | 4 | |
    /// | `server_port` | 1-65535 | 5001, or 80 for HTTP | |
    /// | `mobile`, `server` | tables | | how each side reads and aborts, see [`read_manner`] |
    /// | `mobile_tcp`, `server_tcp` | tables | the scenario's `mobile`, `server` | TCP of these connections alone, see [`super::endpoint`]: replaces all fields |
    ///
    /// # Errors
    /// If a field is outside its range or there are too many flows.
    pub(super) fn read(&mut self, fields: &mut Fields) -> Read<()> {
        let kinds = [&["download", "upload", "both", "http", "voice"][..], APPLICATION_KINDS].concat();
        let kind = fields.kind(&kinds)?;
        if kind == "voice" {
            return self.read_voice(fields);
        }
        if APPLICATION_KINDS.contains(&kind) {
            return self.read_application(fields, kind);
        }
        let exchange = read_exchange(fields, kind)?;
        let is_http = matches!(exchange, Exchange::Pages { .. } | Exchange::Transfer { is_http: true, .. });
        let count = fields.integer("count", 1..=MOST_FLOWS, 1)?;
        let start_ns = fields.seconds("start_s", 0.0..=MOST_SECONDS, 0.0)?;
        let spacing_ns = fields.seconds("spacing_s", 0.0..=MOST_SECONDS, 0.0)?;
        let first_user = fields.integer("user", 0..=65_535, 0)?;
        let one_user_each = fields.flag("one_user_each", false)?;
        let same_objects = fields.flag("same_objects", false)?;
        let version_6 = fields.integer("ip_version", 4..=6, 4)?;
        if version_6 == 5 {
            return Err(fields.refuse("ip_version", 5, "4 or 6"));
        }
        let default_port = if is_http { 80 } else { DEFAULT_SERVER_PORT };
        let server_port = fields.integer("server_port", 1..=65_535, default_port.into())? as u16;
        let mobile = fields.section("mobile", read_manner)?;
        let server = fields.section("server", read_manner)?;
        let mobile_tcp = fields.optional_section("mobile_tcp", read_endpoint)?;
        let server_tcp = fields.optional_section("server_tcp", read_endpoint)?;
        if one_user_each && first_user + count > 65_536 {
            return Err(fields.refuse("count", count, "at most the number of mobiles from `user` to 65535"));
        }
        if self.flows.len() as u64 + count > u64::from(FLOW_LIMIT) {
            return Err(fields.refuse("count", count, format!("small enough for at most {FLOW_LIMIT} flows in all")));
        }
        let mut scripts = self.scripts(&exchange);
        for number in 0..count {
            if number > 0 && !same_objects {
                scripts = self.scripts(&exchange);
            }
            let (mobile_script, server_script) = scripts.clone();
            let user = if one_user_each { first_user + number } else { first_user } as u16;
            self.flows.push(FlowDescription {
                kind,
                user,
                start_ns: start_ns.saturating_add(spacing_ns.saturating_mul(number)),
                version_6: version_6 == 6,
                transport: Transport::Tcp { when_needed: false },
                is_protocol: false,
                server_number: 0,
                server_port,
                mobile: mobile.applied_to(mobile_script),
                server: server.applied_to(server_script),
                mobile_tcp,
                server_tcp,
            });
        }
        Ok(())
    }

    /// Addresses and ports of the flows, with `translation` before the mobiles.
    pub(crate) fn address_book(&self, translation: Option<Translation>) -> AddressBook {
        let ports = self.flows.iter().map(|flow| flow.server_port).collect();
        let numbers = self.flows.iter().map(|flow| flow.server_number).collect();
        AddressBook::new(ports, translation).with_servers(numbers)
    }

    /// One more than the number of the last mobile.
    pub(super) fn users(&self) -> usize {
        let users = self.flows.iter().map(|flow| flow.user).chain(self.speakers.iter().map(|(_, one)| one.user));
        users.max().map_or(0, |last| usize::from(last) + 1)
    }

    /// The flows to none of the `ports`, in order.
    pub(super) fn flows_beside(&self, ports: Option<&[u64]>) -> Vec<u32> {
        let is_beside = |port: u16| ports.is_some_and(|ports| !ports.contains(&u64::from(port)));
        (0..).zip(&self.flows).filter(|(_, flow)| is_beside(flow.server_port)).map(|(number, _)| number).collect()
    }

    fn new_content(&mut self, head: Option<&Head>) -> ContentId {
        let content = ContentId(self.next_content);
        self.next_content += 1;
        if let Some(head) = head {
            self.contents.register(content, head.text().as_bytes());
        }
        content
    }

    /// The mobile's script and the server's, with contents of their own.
    fn scripts(&mut self, exchange: &Exchange) -> (Script, Script) {
        match *exchange {
            Exchange::Transfer { down, up, is_http: false } => {
                let (mobile, server) = (self.new_content(None), self.new_content(None));
                for (content, amount) in [(mobile, up), (server, down)] {
                    self.add_object(content, amount.bytes());
                }
                (sender(mobile, up), sender(server, down))
            }
            Exchange::Transfer { down, up, is_http: true } => {
                let request = if up.bytes() > 0 { http::put(up.bytes()) } else { http::get(0) };
                let (asked, answered) = self.new_exchange(&request, up.bytes(), down.bytes());
                let mobile =
                    vec![Step::Send { content: asked.content, bytes: asked.bytes }, Step::ReceiveAll, Step::Close];
                let server = vec![
                    Step::Receive { bytes: asked.bytes },
                    Step::Send { content: answered.content, bytes: answered.bytes },
                    Step::Close,
                ];
                (Script::new(mobile), Script::new(server))
            }
            Exchange::Pages { pages, page_bytes, request_bytes, think_time_mean_s } => {
                let (asked, answered) = self.new_exchange(&http::get(request_bytes), 0, page_bytes);
                let arriving_bytes = answered.forwarded_as.map_or(answered.bytes, |(_, bytes)| bytes);
                let client = Script::http_client(pages, asked.content, asked.bytes, arriving_bytes, think_time_mean_s);
                (client, Script::http_server(answered.content, asked.bytes, answered.bytes))
            }
        }
    }

    /// A request and its response, heads included.
    fn new_exchange(
        &mut self,
        request: &Head,
        request_body_bytes: u64,
        response_body_bytes: u64,
    ) -> (StoredObject, StoredObject) {
        let asked = self.new_content(Some(request));
        let asked = self.add_object(asked, request.bytes() + request_body_bytes);
        let head = http::response(response_body_bytes);
        let answered = self.new_content(Some(&head));
        let forwarded_as = self.recompression_ratio.filter(|_| response_body_bytes > 0).map(|ratio| {
            let body_bytes = ((response_body_bytes as f64 * ratio) as u64).max(1);
            let head = http::response(body_bytes);
            (self.new_content(Some(&head)), head.bytes() + body_bytes)
        });
        let answered = StoredObject {
            content: answered,
            bytes: head.bytes() + response_body_bytes,
            forwarded_as,
            answer_to: Some(asked.content),
        };
        self.objects.push(answered);
        (asked, answered)
    }

    /// An object that is forwarded as it is and not cached.
    fn add_object(&mut self, content: ContentId, bytes: u64) -> StoredObject {
        let object = StoredObject { content, bytes, forwarded_as: None, answer_to: None };
        if bytes > 0 {
            self.objects.push(object);
        }
        object
    }
}

impl Amount {
    fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Nothing | Self::For(_) => 0,
        }
    }
}

/// One that only receives finishes after its peer.
fn sender(content: ContentId, amount: Amount) -> Script {
    match amount {
        Amount::Nothing => Script::receiver(),
        Amount::Bytes(bytes) => Script::sender(content, bytes),
        Amount::For(duration_ns) => Script::sender_for(content, duration_ns),
    }
}

fn read_exchange(fields: &mut Fields, kind: &str) -> Read<Exchange> {
    if kind == "http" {
        return Ok(Exchange::Pages {
            page_bytes: fields.required_integer("page_bytes", 1..=MOST_BYTES)?,
            pages: fields.integer("pages", 1..=1_000_000, 1)? as u32,
            request_bytes: fields.integer("request_bytes", 120..=65_535, 300)?,
            think_time_mean_s: fields.number("think_time_mean_s", 0.0..=1e6, 30.0)?,
        });
    }
    let duration = fields.optional_seconds("duration_s", 0.001..=MOST_SECONDS)?;
    let mut amount = |name| match (fields.optional_integer(name, 1..=MOST_BYTES)?, duration) {
        (Some(bytes), None) => Ok(Amount::Bytes(bytes)),
        (None, Some(duration_ns)) => Ok(Amount::For(duration_ns)),
        (Some(bytes), Some(_)) => Err(fields.refuse(name, bytes, "absent where there is duration_s")),
        (None, None) => {
            let allowed = format!("a whole number from 1 to {MOST_BYTES}, or there must be duration_s");
            Err(ScenarioError::Missing { field: fields.path(name), allowed })
        }
    };
    let (down, up) = match kind {
        "download" => (amount("bytes")?, Amount::Nothing),
        "upload" => (Amount::Nothing, amount("bytes")?),
        _ => (amount("down_bytes")?, amount("up_bytes")?),
    };
    let is_http = kind != "both" && fields.choice("application", &[("plain", false), ("http", true)])?;
    if is_http && duration.is_some() {
        return Err(fields.refuse("application", "\"http\"", "\"plain\" where there is duration_s"));
    }
    Ok(Exchange::Transfer { down, up, is_http })
}

/// Reads how one side behaves:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `reads_byte_s` | 1-1e12 | as fast as it comes | how fast the application reads on average |
/// | `read_chunk_bytes` | 1-1e9 | 16384 | and how much at a time |
/// | `pauses` | list of `start_s`, `duration_s` | none | when it reads nothing, from when it is connected |
/// | `aborts_after_s` | 0-1e7 | never | it resets the connection this long after it is connected |
/// | `aborts_after_bytes` | 1-2^44 | never | or once it has sent (or else received) so much |
///
/// # Errors
/// If a field is outside its range.
fn read_manner(fields: &mut Fields) -> Read<Manner> {
    let rate = fields.optional_integer("reads_byte_s", 1..=1_000_000_000_000)?;
    let chunk_bytes = fields.integer("read_chunk_bytes", 1..=1_000_000_000, 16_384)?;
    let pauses = fields.sections("pauses", |pause| {
        Ok(Pause {
            start_ns: nanoseconds(pause.required_number("start_s", 0.0..=MOST_SECONDS)?),
            duration_ns: nanoseconds(pause.required_number("duration_s", 0.0..=MOST_SECONDS)?),
        })
    })?;
    let after = fields.optional_seconds("aborts_after_s", 0.0..=MOST_SECONDS)?;
    let abort = match (after, fields.optional_integer("aborts_after_bytes", 1..=MOST_BYTES)?) {
        (None, None) => Abort::Never,
        (Some(after_ns), None) => Abort::After(after_ns),
        (None, Some(bytes)) => Abort::AfterBytes(bytes),
        (Some(_), Some(bytes)) => {
            return Err(fields.refuse("aborts_after_bytes", bytes, "absent where there is aborts_after_s"))
        }
    };
    let reading = rate.map_or(Reading::AtOnce, |rate_bytes_s| Reading::Paced { rate_bytes_s, chunk_bytes });
    Ok(Manner { reading, pauses, abort })
}

impl Manner {
    fn applied_to(&self, script: Script) -> Script {
        let script = script.reading(self.reading).pausing(self.pauses.clone());
        match self.abort {
            Abort::Never => script,
            Abort::After(after_ns) => script.aborting_after(after_ns),
            Abort::AfterBytes(limit) => {
                let mut steps = cut_sending(&script.steps, limit);
                steps.push(Step::Abort);
                Script { steps, ..script }
            }
        }
    }
}

/// The steps of a script until it has sent `limit` bytes; where it sends nothing, waiting for as many.
fn cut_sending(steps: &[Step], limit: u64) -> Vec<Step> {
    let sends = steps.iter().any(|step| matches!(step, Step::Send { .. } | Step::SendFor { .. }));
    if !sends {
        return vec![Step::Receive { bytes: limit }];
    }
    let mut left = limit;
    let mut kept = Vec::new();
    for step in steps {
        match step {
            Step::Send { content, bytes } => {
                kept.push(Step::Send { content: *content, bytes: left.min(*bytes) });
                left = left.saturating_sub(*bytes);
            }
            Step::SendFor { content, .. } => {
                kept.push(Step::Send { content: *content, bytes: left });
                left = 0;
            }
            Step::Close => break,
            other => kept.push(other.clone()),
        }
        if left == 0 {
            break;
        }
    }
    kept
}

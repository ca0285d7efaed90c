//! A browser and the servers that it loads pages from.

use pepscope_applications::{
    browser, BrowserSettings, HttpClient, HttpServer, HttpVersion, InnerProtocol, PageObject, ServerTimes,
};
use pepscope_path::Nanoseconds;

use super::security::{read_security, Security};
use super::{random, read_server_number, ApplicationFlow, Ends, MOST_SERVERS};
use crate::fields::{Fields, Read};
use crate::scenario::transport::Transport;

const DOCUMENT: &str = "document";
const MOST_OBJECT_BYTES: u64 = 1 << 32;
/// What browsers open to one server at once (Chromium, Firefox), and the most here.
const CONNECTIONS_1_1: u64 = 6;
const MOST_CONNECTIONS: u64 = 32;

#[derive(Clone, Debug)]
pub(super) struct Web {
    security: Security,
    settings: BrowserSettings,
    times: ServerTimes,
    /// Numbers of the servers.
    servers: Vec<u16>,
    connections_per_server: usize,
    port: u16,
}

/// Objects of one entry.
struct ObjectGroup {
    name: String,
    after: String,
    server_number: u16,
    bytes: u64,
    count: usize,
    discovered_after_ns: Nanoseconds,
}

impl Web {
    /// Reads a browser that loads pages over connections that stay open:
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `http_version` | `1.1`, `2` | `1.1` | one request at a time on a connection, or many beside each other |
    /// | `document_bytes` | 1-2^32 | 50000 | body of the document |
    /// | `objects` | list | none | what else is on a page, see [`read_objects`] |
    /// | `pages` | 1-1000000 | 1 | one after the other |
    /// | `think_time_mean_s` | 0-1e6 | 30 | mean of the exponential time between them |
    /// | `request_bytes` | 120-16000 | 420 | head of a request; with HTTP/2 later ones on a connection have a quarter |
    /// | `connections_per_server` | 1-32 | 6, or 1 with HTTP/2 | opened as they are needed |
    /// | `server_time_s`, `server_time_mean_above_s` | 0-1000 | 0.005, 0 | from a request to its answer: at least, and the mean of an exponential time on top |
    /// | `server_port` | 1-65535 | 443, or 80 without TLS | |
    ///
    /// and how they are secured, see [`read_security`].
    ///
    /// # Errors
    /// If a field is outside its range.
    pub(super) fn read(fields: &mut Fields) -> Read<Self> {
        let security = read_security(fields, "tls-1.3")?;
        let version = fields.choice("http_version", &[("1.1", HttpVersion::Http11), ("2", HttpVersion::Http2)])?;
        if version == HttpVersion::Http2 && !security.is_encrypted() {
            return Err(fields.refuse("http_version", "\"2\"", "\"1.1\" where security is none, as in browsers"));
        }
        let first_server = read_server_number(fields)?;
        let document_bytes = fields.integer("document_bytes", 1..=MOST_OBJECT_BYTES, 50_000)?;
        let groups = fields.sections("objects", |entry| read_objects(entry, first_server))?;
        let (objects, servers) = lay_out(fields, document_bytes, first_server, &groups)?;
        let connections = if version == HttpVersion::Http2 { 1 } else { CONNECTIONS_1_1 };
        let port = security.web_port();
        Ok(Self {
            settings: BrowserSettings {
                version,
                objects,
                pages: fields.integer("pages", 1..=1_000_000, 1)? as u32,
                think_time_mean_s: fields.number("think_time_mean_s", 0.0..=1e6, 30.0)?,
                request_bytes: fields.integer("request_bytes", 120..=16_000, 420)?,
                hosts: servers.iter().map(|number| host(*number)).collect(),
            },
            times: read_server_times(fields)?,
            servers,
            connections_per_server: fields.integer("connections_per_server", 1..=MOST_CONNECTIONS, connections)?
                as usize,
            port: fields.integer("server_port", 1..=65_535, port.into())? as u16,
            security,
        })
    }

    /// The servers' indices by connection: those of the document's server come first.
    fn lines(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.servers.len()).flat_map(|server| std::iter::repeat_n(server, self.connections_per_server))
    }

    pub(super) fn flows(&self) -> Vec<ApplicationFlow> {
        let lines = self.lines().enumerate();
        lines
            .map(|(line, server)| ApplicationFlow {
                transport: Transport::Tcp { when_needed: line > 0 },
                server_number: self.servers[server],
                server_port: self.port,
            })
            .collect()
    }

    pub(super) fn ends(&self, seed: u64, first_flow: u32) -> Vec<Ends> {
        let version = self.settings.version;
        let flows: Vec<(u32, usize)> = (first_flow..).zip(self.lines()).collect();
        let connections = browser(self.settings.clone(), random(seed, first_flow, "browser"), &flows);
        let protocol = match version {
            HttpVersion::Http11 => InnerProtocol::Http11,
            HttpVersion::Http2 => InnerProtocol::Http2,
        };
        let with_flows = connections.into_iter().zip(&flows).enumerate();
        with_flows
            .map(|(line, (connection, &(flow, server)))| {
                let is_first = line % self.connections_per_server == 0;
                let answers = HttpServer::new(version, self.times, random(seed, flow, "server"));
                let name = (self.settings.hosts[server].as_str(), protocol);
                let asks = HttpClient::new(version, connection);
                self.security.around((seed, flow), name, is_first, asks, answers)
            })
            .collect()
    }
}

/// The name of a server.
pub(super) fn host(number: u16) -> String {
    format!("server-{number}.example")
}

/// Reads how long servers take; the table is the caller's.
pub(super) fn read_server_times(fields: &mut Fields) -> Read<ServerTimes> {
    Ok(ServerTimes {
        least_ns: fields.seconds("server_time_s", 0.0..=1000.0, 0.005)?,
        mean_above_s: fields.number("server_time_mean_above_s", 0.0..=1000.0, 0.0)?,
    })
}

/// Reads objects of a page:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `name` | text | required | letters, digits, `-`, `.` |
/// | `bytes` | 1-2^32 | required | of the body |
/// | `count` | 1-1000 | 1 | so many of them |
/// | `after` | text | `document` | asked for once this one has come, of several the last |
/// | `discovered_after_s` | 0-1000 | 0.01 | and so long after |
/// | `server_number` | 0-200 | the document's | which server has it |
///
/// # Errors
/// If a field is outside its range.
fn read_objects(fields: &mut Fields, first_server: u16) -> Read<ObjectGroup> {
    let allowed = "a name of letters, digits, - and .";
    let name = fields.text("name", "")?;
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '.';
    if name.is_empty() || name.len() > 64 || name == DOCUMENT || !name.chars().all(is_usual) {
        return Err(fields.refuse("name", format!("{name:?}"), allowed));
    }
    Ok(ObjectGroup {
        name,
        bytes: fields.required_integer("bytes", 1..=MOST_OBJECT_BYTES)?,
        count: fields.integer("count", 1..=1000, 1)? as usize,
        after: fields.text("after", DOCUMENT)?,
        discovered_after_ns: fields.seconds("discovered_after_s", 0.0..=1000.0, 0.01)?,
        server_number: fields.integer("server_number", 0..=MOST_SERVERS, first_server.into())? as u16,
    })
}

/// The objects one by one, and the numbers of the servers that have them.
fn lay_out(
    fields: &Fields,
    document_bytes: u64,
    first_server: u16,
    groups: &[ObjectGroup],
) -> Read<(Vec<PageObject>, Vec<u16>)> {
    let mut servers = vec![first_server];
    let document =
        PageObject { name: DOCUMENT.to_owned(), server: 0, bytes: document_bytes, after: None, discovered_after_ns: 0 };
    let mut objects = vec![document];
    let mut places = vec![(DOCUMENT, 0)];
    for (number, group) in groups.iter().enumerate() {
        let Some(&(_, after)) = places.iter().find(|(name, _)| *name == group.after) else {
            let allowed = "document, or the name of an earlier entry";
            return Err(fields.refuse(&format!("objects[{number}].after"), format!("{:?}", group.after), allowed));
        };
        let server = servers.iter().position(|known| *known == group.server_number).unwrap_or_else(|| {
            servers.push(group.server_number);
            servers.len() - 1
        });
        for one in 0..group.count {
            let name = if group.count > 1 { format!("{}-{one}", group.name) } else { group.name.clone() };
            objects.push(PageObject {
                name,
                server,
                bytes: group.bytes,
                after: Some(after),
                discovered_after_ns: group.discovered_after_ns,
            });
        }
        places.push((&group.name, objects.len() - 1));
    }
    Ok((objects, servers))
}

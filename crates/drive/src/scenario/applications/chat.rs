//! A chat over TLS.

use pepscope_applications::{Chat, ChatSettings, InnerProtocol};
use pepscope_tcp::Role;

use super::security::{read_security, Security};
use super::web::host;
use super::{opened_at_start, random, read_server_number, ApplicationFlow, Ends};
use crate::fields::{Fields, Read, MOST_SECONDS};

#[derive(Clone, Debug)]
pub(super) struct ChatDescription {
    security: Security,
    settings: ChatSettings,
    server_number: u16,
    port: u16,
}

impl ChatDescription {
    /// Reads a chat over one connection: either side says something at random times, and the other confirms it.
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `gap_mean_s` | 0.001-1e6 | 10 | mean of the exponential time between two messages of one side |
    /// | `least_bytes`, `most_bytes` | 1-1e6 | 60, 400 | lengths are uniform between these |
    /// | `receipt_bytes` | 1-16000 | 60 | of what confirms a message |
    /// | `receipt_after_s` | 0-100 | 0.002 | and how long after it |
    /// | `chat_s` | 0.001-1e7 | 60 | the client leaves so long after it is connected |
    /// | `server_port` | 1-65535 | 443 | |
    ///
    /// and how it is secured, see [`super::security::read_security`]; without TLS what is said is filler without a form.
    ///
    /// # Errors
    /// If a field is outside its range.
    pub(super) fn read(fields: &mut Fields) -> Read<Self> {
        let security = read_security(fields, "tls-1.3")?;
        let least_bytes = fields.integer("least_bytes", 1..=1_000_000, 60)?;
        let most_bytes = fields.integer("most_bytes", 1..=1_000_000, 400)?;
        if most_bytes < least_bytes {
            return Err(fields.refuse(
                "most_bytes",
                most_bytes,
                format!("at least least_bytes, which is {least_bytes}"),
            ));
        }
        Ok(Self {
            security,
            settings: ChatSettings {
                gap_mean_s: fields.number("gap_mean_s", 0.001..=1e6, 10.0)?,
                least_bytes,
                most_bytes,
                receipt_bytes: fields.integer("receipt_bytes", 1..=16_000, 60)?,
                receipt_after_ns: fields.seconds("receipt_after_s", 0.0..=100.0, 0.002)?,
                duration_ns: fields.seconds("chat_s", 0.001..=MOST_SECONDS, 60.0)?,
            },
            server_number: read_server_number(fields)?,
            port: fields.integer("server_port", 1..=65_535, 443)? as u16,
        })
    }

    pub(super) fn flow(&self) -> ApplicationFlow {
        opened_at_start(self.server_number, self.port)
    }

    pub(super) fn ends(&self, seed: u64, flow: u32) -> Ends {
        let end = |role, name| Chat::new(self.settings, role, random(seed, flow, name));
        let (client, server) = (end(Role::Client, "client"), end(Role::Server, "server"));
        let name = host(self.server_number);
        self.security.around((seed, flow), (&name, InnerProtocol::Http11), true, client, server)
    }
}

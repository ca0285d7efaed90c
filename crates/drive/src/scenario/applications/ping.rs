//! ICMP echo.

use pepscope_applications::{Ping, PingSettings, LEAST_PING_BYTES, USUAL_PATIENCE_NS, USUAL_PING_BYTES};
use pepscope_tcp::{DatagramTransport, Role};

use super::{read_server_number, ApplicationFlow, Ends};
use crate::fields::{Fields, Read};
use crate::scenario::transport::Transport;

#[derive(Clone, Debug)]
pub(super) struct PingDescription {
    settings: PingSettings,
    server_number: u16,
}

impl PingDescription {
    /// Reads ICMP echo requests of the mobile, which the server answers at once; proxies let them pass.
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `requests` | 1-60000 | 10 | how many |
    /// | `interval_s` | 0.001-1e6 | 1 | from one to the next |
    /// | `payload_bytes` | 16-1472 | 56 | behind the ICMP header |
    ///
    /// # Errors
    /// If a field is outside its range.
    pub(super) fn read(fields: &mut Fields) -> Read<Self> {
        let (least_bytes, usual_bytes) = (LEAST_PING_BYTES.into(), USUAL_PING_BYTES.into());
        Ok(Self {
            settings: PingSettings {
                identifier: 0,
                count: fields.integer("requests", 1..=60_000, 10)? as u16,
                interval_ns: fields.seconds("interval_s", 0.001..=1e6, 1.0)?,
                payload_bytes: fields.integer("payload_bytes", least_bytes..=1472, usual_bytes)? as u16,
                patience_ns: USUAL_PATIENCE_NS,
            },
            server_number: read_server_number(fields)?,
        })
    }

    pub(super) fn flow(&self) -> ApplicationFlow {
        let transport = Transport::Datagrams(DatagramTransport::Icmp);
        ApplicationFlow { transport, server_number: self.server_number, server_port: 0 }
    }

    pub(super) fn ends(&self, flow: u32) -> Ends {
        let settings = PingSettings { identifier: flow as u16 + 1, ..self.settings };
        let end = |role| Box::new(Ping::new(settings, role));
        Ends { mobile: end(Role::Client), server: end(Role::Server) }
    }
}

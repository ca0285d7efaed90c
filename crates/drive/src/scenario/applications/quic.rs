//! Requests over QUIC.

use pepscope_applications::{InnerProtocol, Quic, QuicSettings, ServerTimes, TlsSettings, TlsVersion};
use pepscope_path::Nanoseconds;
use pepscope_tcp::{DatagramTransport, Role};

use super::web::{host, read_server_times};
use super::{random, read_server_number, ApplicationFlow, Ends};
use crate::fields::{Fields, Read};
use crate::scenario::transport::Transport;

#[derive(Clone, Debug)]
pub(super) struct QuicDescription {
    certificate_chain_bytes: u64,
    server_hello_time_ns: Nanoseconds,
    client_finished_time_ns: Nanoseconds,
    exchanges: u16,
    request_bytes: u64,
    answer_bytes: u64,
    think_time_mean_s: f64,
    datagram_bytes: u64,
    has_spin_bit: bool,
    times: ServerTimes,
    server_number: u16,
    port: u16,
}

impl QuicDescription {
    /// Reads a client that asks over QUIC, one request after the other; proxies let it pass.
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `requests` | 1-4000 | 1 | how many |
    /// | `request_bytes` | 1-1100 | 300 | of a request, in one packet |
    /// | `answer_bytes` | 1-1e9 | 20000 | of an answer |
    /// | `think_time_mean_s` | 0-1e6 | 5 | mean of the exponential time from an answer to the next request |
    /// | `datagram_bytes` | 1200-1472 | 1250 | most payload of a UDP datagram |
    /// | `spin_bit` | true, false | true | shows round trips (RFC 9000, section 17.4) |
    /// | `certificate_chain_bytes` | 1000-2900 | 2800 | of the server's certificates together: more than three datagrams would wait for the client |
    /// | `server_hello_time_s`, `client_finished_time_s` | 0-100 | 0.001, 0.0005 | from the ClientHello to the server's flight, and from this to the client's |
    /// | `server_time_s`, `server_time_mean_above_s` | 0-1000 | 0.005, 0 | from a request to its answer: at least, and the mean of an exponential time on top |
    /// | `server_port` | 1-65535 | 443 | |
    ///
    /// # Errors
    /// If a field is outside its range.
    pub(super) fn read(fields: &mut Fields) -> Read<Self> {
        let most_bytes = Quic::most_certificate_bytes();
        Ok(Self {
            certificate_chain_bytes: fields.integer("certificate_chain_bytes", 1000..=most_bytes, 2800)?,
            server_hello_time_ns: fields.seconds("server_hello_time_s", 0.0..=100.0, 0.001)?,
            client_finished_time_ns: fields.seconds("client_finished_time_s", 0.0..=100.0, 0.0005)?,
            exchanges: fields.integer("requests", 1..=4000, 1)? as u16,
            request_bytes: fields.integer("request_bytes", 1..=1100, 300)?,
            answer_bytes: fields.integer("answer_bytes", 1..=1_000_000_000, 20_000)?,
            think_time_mean_s: fields.number("think_time_mean_s", 0.0..=1e6, 5.0)?,
            datagram_bytes: fields.integer("datagram_bytes", 1200..=1472, 1250)?,
            has_spin_bit: fields.flag("spin_bit", true)?,
            times: read_server_times(fields)?,
            server_number: read_server_number(fields)?,
            port: fields.integer("server_port", 1..=65_535, 443)? as u16,
        })
    }

    pub(super) fn flow(&self) -> ApplicationFlow {
        let transport = Transport::Datagrams(DatagramTransport::Udp);
        ApplicationFlow { transport, server_number: self.server_number, server_port: self.port }
    }

    pub(super) fn ends(&self, seed: u64, flow: u32) -> Ends {
        let mut identifiers = random(seed, flow, "connection IDs");
        let settings = QuicSettings {
            tls: TlsSettings {
                version: TlsVersion::Tls13,
                is_resumed: false,
                server_name: host(self.server_number),
                protocol: InnerProtocol::Http3,
                client_hello_bytes: 0,
                certificate_chain_bytes: self.certificate_chain_bytes,
                record_bytes: 16_384,
                server_hello_time_ns: self.server_hello_time_ns,
                client_finished_time_ns: self.client_finished_time_ns,
                session_id: [0; 32],
            },
            original_id: identifiers.bits().to_be_bytes(),
            server_id: identifiers.bits().to_be_bytes(),
            exchanges: self.exchanges,
            request_bytes: self.request_bytes,
            answer_bytes: self.answer_bytes,
            think_time_mean_s: self.think_time_mean_s,
            times: self.times,
            datagram_bytes: self.datagram_bytes,
            has_spin_bit: self.has_spin_bit,
        };
        let end = |role, name| Box::new(Quic::new(settings.clone(), role, random(seed, flow, name)));
        Ends { mobile: end(Role::Client, "client"), server: end(Role::Server, "server") }
    }
}

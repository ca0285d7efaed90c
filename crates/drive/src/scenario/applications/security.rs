//! TLS under an application, or nothing.

use pepscope_applications::{InnerProtocol, Tls, TlsSettings, TlsVersion};
use pepscope_path::Nanoseconds;
use pepscope_tcp::{Protocol, Role};

use super::{random, Ends};
use crate::fields::{Fields, Read};

/// How the connections of an application are secured.
#[derive(Clone, Debug)]
pub(super) struct Security {
    /// `None` for no TLS.
    version: Option<TlsVersion>,
    resumes: bool,
    client_hello_bytes: usize,
    certificate_chain_bytes: u64,
    record_bytes: u64,
    server_hello_time_ns: Nanoseconds,
    client_finished_time_ns: Nanoseconds,
}

/// Reads how connections are secured:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `security` | `tls-1.3`, `tls-1.2`, `none` | `tls-1.3`, of plug-ins `none` | |
/// | `resumption` | true, false | true | a further connection to a server uses the first one's ticket, and gets no certificate |
/// | `client_hello_bytes` | 0-16000 | 512 | length of the ClientHello message, or the least that it takes |
/// | `certificate_chain_bytes` | 1500-60000 | 3000 | of the server's certificates together |
/// | `record_bytes` | 512-16384 | 16384 | most plaintext of a record of the application |
/// | `server_hello_time_s` | 0-100 | 0.001 | from the ClientHello to the server's flight |
/// | `client_finished_time_s` | 0-100 | 0.0005 | from the server's flight to the client's |
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_security(fields: &mut Fields, default: &str) -> Read<Security> {
    let mut choices = [("tls-1.3", Some(TlsVersion::Tls13)), ("tls-1.2", Some(TlsVersion::Tls12)), ("none", None)];
    choices.sort_by_key(|(name, _)| *name != default); // the first is the default
    Ok(Security {
        version: fields.choice("security", &choices)?,
        resumes: fields.flag("resumption", true)?,
        client_hello_bytes: fields.integer("client_hello_bytes", 0..=16_000, 512)? as usize,
        certificate_chain_bytes: fields.integer("certificate_chain_bytes", 1500..=60_000, 3000)?,
        record_bytes: fields.integer("record_bytes", 512..=16_384, 16_384)?,
        server_hello_time_ns: fields.seconds("server_hello_time_s", 0.0..=100.0, 0.001)?,
        client_finished_time_ns: fields.seconds("client_finished_time_s", 0.0..=100.0, 0.0005)?,
    })
}

impl Security {
    pub(super) fn is_encrypted(&self) -> bool {
        self.version.is_some()
    }

    /// The port of HTTP over it.
    pub(super) fn web_port(&self) -> u16 {
        if self.is_encrypted() {
            443
        } else {
            80
        }
    }

    /// Both ends of `flow` over it.
    pub(super) fn around(
        &self,
        (seed, flow): (u64, u32),
        (server_name, protocol): (&str, InnerProtocol),
        is_first: bool,
        mobile: impl Protocol + 'static,
        server: impl Protocol + 'static,
    ) -> Ends {
        let Some(settings) = self.settings((seed, flow), server_name, protocol, is_first) else {
            return Ends { mobile: Box::new(mobile), server: Box::new(server) };
        };
        let (client_random, server_random) = (random(seed, flow, "client's TLS"), random(seed, flow, "server's TLS"));
        Ends {
            mobile: Box::new(Tls::new(settings.clone(), Role::Client, client_random, mobile)),
            server: Box::new(Tls::new(settings, Role::Server, server_random, server)),
        }
    }

    /// The settings of TLS for `flow`, which `is_first` of those to its server.
    pub(super) fn settings(
        &self,
        (seed, flow): (u64, u32),
        server_name: &str,
        protocol: InnerProtocol,
        is_first: bool,
    ) -> Option<TlsSettings> {
        let mut session_id = [0; 32];
        let mut random = random(seed, flow, "session");
        session_id.chunks_mut(8).for_each(|part| part.copy_from_slice(&random.bits().to_be_bytes()));
        Some(TlsSettings {
            version: self.version?,
            is_resumed: self.resumes && !is_first,
            server_name: server_name.to_owned(),
            protocol,
            client_hello_bytes: self.client_hello_bytes,
            certificate_chain_bytes: self.certificate_chain_bytes,
            record_bytes: self.record_bytes,
            server_hello_time_ns: self.server_hello_time_ns,
            client_finished_time_ns: self.client_finished_time_ns,
            session_id,
        })
    }
}

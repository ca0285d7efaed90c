//! Video in segments, as DASH has it.

use pepscope_applications::{
    HttpClient, HttpServer, HttpVersion, InnerProtocol, ServerTimes, VideoPlayer, VideoSettings,
};

use super::security::{read_security, Security};
use super::web::{host, read_server_times};
use super::{opened_at_start, random, read_server_number, ApplicationFlow, Ends};
use crate::fields::{Fields, Read};

/// 240p to 1080p, as services commonly encode them.
const LADDER_BIT_S: [u64; 5] = [400_000, 800_000, 1_500_000, 3_000_000, 6_000_000];

#[derive(Clone, Debug)]
pub(super) struct Video {
    security: Security,
    settings: VideoSettings,
    times: ServerTimes,
    server_number: u16,
    port: u16,
}

impl Video {
    /// Reads a player that asks for segments over one connection (HTTP/1.1) and chooses their rate:
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `ladder_bit_s` | list of 1000-1e9 | 400000, 800000, 1500000, 3000000, 6000000 | rates in ascending order |
    /// | `segments`, `segment_s` | 1-100000, 0.1-60 | 30, 4 | how many, and how long each plays |
    /// | `size_spread` | 0-0.9 | 0.2 | a segment's length is that of its rate times a factor within this of one |
    /// | `buffer_s` | 0.1-1000 | 24 | most playing time that waits |
    /// | `start_buffer_s` | 0.1-1000 | 4 | playing begins with so much, and again after a stall |
    /// | `safety` | 0.01-1 | 0.8 | share of the estimated throughput that the next segment's rate may have |
    /// | `estimate_weight` | 0.01-1 | 0.3 | of the newest segment in the mean of their throughputs |
    /// | `manifest_bytes`, `initialisation_bytes` | 1-2^24 | 4000, 900 | what comes first |
    /// | `request_bytes` | 120-16000 | 420 | head of a request |
    /// | `server_time_s`, `server_time_mean_above_s` | 0-1000 | 0.005, 0 | from a request to its answer: at least, and the mean of an exponential time on top |
    /// | `server_port` | 1-65535 | 443, or 80 without TLS | |
    ///
    /// and how it is secured, see [`super::security::read_security`].
    ///
    /// # Errors
    /// If a field is outside its range.
    pub(super) fn read(fields: &mut Fields) -> Read<Self> {
        let security = read_security(fields, "tls-1.3")?;
        let server_number = read_server_number(fields)?;
        let ladder_bit_s = fields.optional_integers("ladder_bit_s", 1000..=1_000_000_000)?;
        let ladder_bit_s = ladder_bit_s.unwrap_or_else(|| LADDER_BIT_S.to_vec());
        if ladder_bit_s.is_empty() || ladder_bit_s.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(fields.refuse("ladder_bit_s", format!("{ladder_bit_s:?}"), "rates in ascending order"));
        }
        let segment_ns = fields.seconds("segment_s", 0.1..=60.0, 4.0)?;
        let buffer_ns = fields.seconds("buffer_s", 0.1..=1000.0, 24.0)?;
        if buffer_ns < segment_ns {
            return Err(fields.refuse("buffer_s", buffer_ns as f64 * 1e-9, "at least segment_s"));
        }
        let start_buffer_ns = fields.seconds("start_buffer_s", 0.1..=1000.0, 4.0)?.min(buffer_ns);
        let port = security.web_port();
        Ok(Self {
            settings: VideoSettings {
                host: host(server_number),
                manifest_bytes: fields.integer("manifest_bytes", 1..=1 << 24, 4000)?,
                initialisation_bytes: fields.integer("initialisation_bytes", 1..=1 << 24, 900)?,
                ladder_bit_s,
                segments: fields.integer("segments", 1..=100_000, 30)? as u32,
                segment_ns,
                size_spread: fields.number("size_spread", 0.0..=0.9, 0.2)?,
                buffer_ns,
                start_buffer_ns,
                safety: fields.number("safety", 0.01..=1.0, 0.8)?,
                estimate_weight: fields.number("estimate_weight", 0.01..=1.0, 0.3)?,
                request_bytes: fields.integer("request_bytes", 120..=16_000, 420)?,
            },
            times: read_server_times(fields)?,
            server_number,
            port: fields.integer("server_port", 1..=65_535, port.into())? as u16,
            security,
        })
    }

    pub(super) fn flow(&self) -> ApplicationFlow {
        opened_at_start(self.server_number, self.port)
    }

    pub(super) fn ends(&self, seed: u64, flow: u32) -> Ends {
        let player = VideoPlayer::new(self.settings.clone(), random(seed, flow, "player"));
        let asks = HttpClient::new(HttpVersion::Http11, player);
        let answers = HttpServer::new(HttpVersion::Http11, self.times, random(seed, flow, "server"));
        self.security.around((seed, flow), (&self.settings.host, InnerProtocol::Http11), true, asks, answers)
    }
}

//! The machine and the program of a proxy.

use std::collections::BTreeMap;
use std::sync::Arc;

use pepscope_path::Nanoseconds;
use pepscope_tcp::proxy::{ConnectionLimit, MachineSettings, OverLimit, ReuseSettings};

use super::times::read_times_where;
use super::traffic::{FlowDescription, Traffic};
use crate::fields::{Fields, Read};

/// A machine as described; who may share connections is for the traffic to say.
#[derive(Clone, Debug)]
pub(super) struct MachineDescription {
    settings: MachineSettings,
    reuse_idle_ns: Option<Nanoseconds>,
}

/// Reads what stands beside the legs of a proxy; by default nothing takes time and nothing is limited:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `takes_time` | true, false | false | its kernel takes time for packets, its program until it acts, as those of a `linux` host do |
/// | `times` | table | those of a `linux` host | how long, where `takes_time`, see [`super::times::read_times`] |
/// | `processing_delay_s` | 0-10 | 0 | how long after something happened its program acts, beside that |
/// | `read_bytes` | 1-2^30 | as much as there is | the most that its program reads at a time; it writes that, does what else is due, and reads again after the time that it takes to act |
/// | `resume_share` | 0-1 | 1 | a buffer that was full is read into again once it holds no more than this share of `buffer_bytes` (hysteresis); kinds with `buffer_bytes` |
/// | `connections_limit` | 1-100000 | none | the most connections of clients that it serves at once |
/// | `over_limit` | `wait`, `refuse`, `drop`, `bypass` | `wait` | what becomes of further ones: its kernel accepts them and its program does not; a reset; nothing; they go past it |
/// | `waiting_limit` | 0-100000 | 4096 | with `wait`: so many wait, the SYNs of others are dropped |
/// | `reuse_idle_s` | 0.001-1e7 | none | how long it keeps a connection with the server whose client has gone for the next one that asks there; traffic of kind `http`; not in window adaptation |
///
/// # Errors
/// If a field is outside its range, or does not go with another.
pub(super) fn read_machine(
    fields: &mut Fields,
    buffer_bytes: Option<u64>,
    may_reuse: bool,
) -> Read<MachineDescription> {
    let takes_time = fields.flag("takes_time", false)?;
    let times = read_times_where(fields, takes_time)?;
    let delay_ns = fields.seconds("processing_delay_s", 0.0..=10.0, 0.0)?;
    let read_bytes = fields.optional_integer("read_bytes", 1..=1 << 30)?;
    if let (Some(read), Some(buffer)) = (read_bytes, buffer_bytes) {
        if read > buffer {
            return Err(fields.refuse("read_bytes", read, format!("at most buffer_bytes, which is {buffer}")));
        }
    }
    let resume_share = match buffer_bytes {
        Some(_) => fields.number("resume_share", 0.0..=1.0, 1.0)?,
        None => 1.0,
    };
    let reuse_idle_ns = if may_reuse { fields.optional_seconds("reuse_idle_s", 0.001..=1e7)? } else { None };
    Ok(MachineDescription {
        settings: MachineSettings {
            read_bytes: read_bytes.unwrap_or(u64::MAX),
            resume_share,
            delay_ns,
            times,
            limit: read_limit(fields)?,
            reuse: None,
        },
        reuse_idle_ns,
    })
}

fn read_limit(fields: &mut Fields) -> Read<Option<ConnectionLimit>> {
    let given = |fields: &Fields, name| fields.given_value(name);
    let (over, waiting) = (given(fields, "over_limit"), given(fields, "waiting_limit"));
    let connections = fields.optional_integer("connections_limit", 1..=100_000)?;
    let kind = fields.choice("over_limit", &[("wait", 0_u8), ("refuse", 1), ("drop", 2), ("bypass", 3)])?;
    let waiting_limit = fields.integer("waiting_limit", 0..=100_000, 4096)? as usize;
    let Some(connections) = connections else {
        for (name, value) in [("over_limit", over), ("waiting_limit", waiting)] {
            if let Some(value) = value {
                return Err(fields.refuse(name, value, "absent where there is no connections_limit"));
            }
        }
        return Ok(None);
    };
    let over_limit = match kind {
        0 => OverLimit::Wait { waiting_limit },
        1 => OverLimit::Refuse,
        2 => OverLimit::Drop,
        _ => OverLimit::Bypass,
    };
    if let Some(value) = waiting.filter(|_| kind != 0) {
        return Err(fields.refuse("waiting_limit", value, "absent where over_limit is not wait"));
    }
    Ok(Some(ConnectionLimit { connections: connections as usize, over_limit }))
}

/// Whom a flow asks, by port and IP version, if its requests can be told from one another: a proxy may have it share
/// connections with others that ask the same.
pub(crate) fn shared_server(flow: &FlowDescription) -> Option<u32> {
    (flow.kind == "http").then_some(u32::from(flow.server_port) << 1 | u32::from(flow.version_6))
}

impl MachineDescription {
    /// Whether connections with the server serve one client after another.
    pub(super) fn reuses(&self) -> bool {
        self.reuse_idle_ns.is_some()
    }

    /// What the machine is like in a run with `traffic`.
    pub(super) fn settings(&self, traffic: &Traffic) -> MachineSettings {
        let reuse = self.reuse_idle_ns.map(|idle_ns| {
            let mut lengths = BTreeMap::new();
            for object in &traffic.objects {
                lengths.insert(object.content, object.bytes);
            }
            ReuseSettings {
                idle_ns,
                servers: traffic.flows.iter().map(shared_server).collect(),
                lengths: Arc::new(lengths),
            }
        });
        MachineSettings { reuse, ..self.settings.clone() }
    }
}

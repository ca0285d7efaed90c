//! Managed queues: a line of constant rate behind RED, CoDel, PIE or fair queueing.

use pepscope_path::{
    Arrivals, CoDelSettings, CrossSettings, Datagram, Discipline, FairSettings, Managed, ManagedLineSettings,
    ManagedQueueSettings, ManagedSettings, PieSettings, RedSettings, SettingsError,
};

use super::{Link, MOST_BIT_S, MOST_DELAY_S};
use crate::fields::{Fields, Read};

pub use pepscope_path::ManagedSettings as Settings;

const MOST_PACKETS: u64 = 1_000_000_000;
/// What may wait where nothing is said.
const MOST_WAITING: u32 = 1_000;
const MOST_S: f64 = 100.0;

impl Link for ManagedSettings {
    const KIND: &'static str = "managed";
    type Model<P: Datagram> = Managed<P>;

    /// Reads a link with managed queues: `down` and `up` (default: as `down`, with random numbers of its own), each
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `rate_bit_s` | 1-1e12 | 10000000 | of IP packets |
    /// | `delay_s` | 0-1000 | 0 | from the last bit out to the last bit in |
    /// | `queue` | table | `codel` | see [`read_queue`] |
    /// | `cross` | table | none | what others send, see [`read_cross`] |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        fields.default_to_sibling("up", "down");
        Ok(ManagedSettings { down: fields.section("down", read_line)?, up: fields.section("up", read_line)? })
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Managed<P>, SettingsError> {
        Managed::new(self, seed, name)
    }
}

fn read_line(fields: &mut Fields) -> Read<ManagedLineSettings> {
    Ok(ManagedLineSettings {
        rate_bit_s: fields.integer("rate_bit_s", 1..=MOST_BIT_S, 10_000_000)?,
        delay_ns: fields.seconds("delay_s", 0.0..=MOST_DELAY_S, 0.0)?,
        queue: fields.optional_section("queue", read_queue)?.unwrap_or(ManagedQueueSettings {
            discipline: Discipline::CoDel(CoDelSettings::default()),
            limit_packets: MOST_WAITING,
            marks: false,
        }),
        cross: fields.optional_section("cross", read_cross)?,
    })
}

/// Traffic of others on a managed link, which waits and is sent as all packets are, and does not go on:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `kind` | `even`, `poisson`, `flows` | | packets at even or exponential distances; short flows that begin at such |
/// | `rate_bit_s` | 1-1e12 | | on average |
/// | `packet_bytes` | 1-65535 | 1500 | |
/// | `flow_bytes` | 1-1e12 | 30000 | `flows`: of one flow on average, exponentially distributed |
/// | `access_bit_s` | 1-1e12 | 10000000 | `flows`: how fast a flow sends |
///
/// # Errors
/// If a field is outside its range.
fn read_cross(fields: &mut Fields) -> Read<CrossSettings> {
    let arrivals = match fields.kind(&["even", "poisson", "flows"])? {
        "even" => Arrivals::Even,
        "poisson" => Arrivals::Poisson,
        _ => Arrivals::Flows {
            mean_bytes: fields.number("flow_bytes", 1.0..=1e12, 30_000.0)?,
            access_bit_s: fields.integer("access_bit_s", 1..=MOST_BIT_S, 10_000_000)?,
        },
    };
    let cross = CrossSettings {
        rate_bit_s: fields.required_integer("rate_bit_s", 1..=MOST_BIT_S)?,
        packet_bytes: fields.integer("packet_bytes", 1..=65_535, 1500)? as u32,
        arrivals,
    };
    cross.check().map_err(|error| fields.refused_by(&error))?;
    Ok(cross)
}

/// The queue of a managed link; times are waits.
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `kind` | `drop-tail`, `red`, `codel`, `pie`, `fq-codel` | | who decides what is dropped |
/// | `packets` | 1-1e9 | 1000; `fq-codel`: 10240 | that may wait, without the one that is sent |
/// | `marks` | true, false | false | packets of senders with ECN are marked instead |
/// | `least_packets`, `most_packets` | 0-1e9 | 5, 15 | `red`: averages from which some, and `most_probability`, are dropped |
/// | `most_probability`, `weight` | 0-1 | 0.1, 0.002 | `red`: at `most_packets`; of a sample in the average |
/// | `gentle` | true, false | true | `red`: above `most_packets` not all are dropped, but ever more |
/// | `target_s` | 0-100 | 0.005; `pie`: 0.015 | the wait that may stand |
/// | `interval_s` | 1e-6-100 | 0.1 | `codel`, `fq-codel`: for how long it may be exceeded |
/// | `update_s`, `burst_s` | 1e-6-100, 0-100 | 0.015, 0.15 | `pie`: between two computations; bursts that pass |
/// | `queues`, `quantum_bytes` | 1-65536, 1-1e6 | 1024, 1514 | `fq-codel`: for flows, by a hash; bytes of a turn |
///
/// # Errors
/// If a field is outside its range.
fn read_queue(fields: &mut Fields) -> Read<ManagedQueueSettings> {
    let kind = fields.kind(&["drop-tail", "red", "codel", "pie", "fq-codel"])?;
    let most = if kind == "fq-codel" { 10_240 } else { MOST_WAITING.into() };
    let limit_packets = fields.integer("packets", 1..=MOST_PACKETS, most)? as u32;
    let marks = fields.flag("marks", false)?;
    let discipline = match kind {
        "red" => Discipline::Red(read_red(fields)?),
        "codel" => Discipline::CoDel(read_codel(fields)?),
        "pie" => Discipline::Pie(PieSettings {
            target_ns: fields.seconds("target_s", 0.0..=MOST_S, 0.015)?,
            update_ns: fields.seconds("update_s", 1e-6..=MOST_S, 0.015)?,
            burst_ns: fields.seconds("burst_s", 0.0..=MOST_S, 0.15)?,
        }),
        "fq-codel" => Discipline::Fair(FairSettings {
            queues: fields.integer("queues", 1..=65_536, 1024)? as u32,
            quantum_bytes: fields.integer("quantum_bytes", 1..=1_000_000, 1514)? as u32,
            codel: read_codel(fields)?,
        }),
        _ => Discipline::DropTail,
    };
    let queue = ManagedQueueSettings { discipline, limit_packets, marks };
    queue.check().map_err(|error| fields.refused_by(&error))?;
    Ok(queue)
}

fn read_red(fields: &mut Fields) -> Read<RedSettings> {
    Ok(RedSettings {
        least_packets: fields.number("least_packets", 0.0..=1e9, 5.0)?,
        most_packets: fields.number("most_packets", 0.0..=1e9, 15.0)?,
        most_probability: fields.number("most_probability", 0.0..=1.0, 0.1)?,
        weight: fields.number("weight", 0.0..=1.0, 0.002)?,
        is_gentle: fields.flag("gentle", true)?,
    })
}

fn read_codel(fields: &mut Fields) -> Read<CoDelSettings> {
    Ok(CoDelSettings {
        target_ns: fields.seconds("target_s", 0.0..=MOST_S, 0.005)?,
        interval_ns: fields.seconds("interval_s", 1e-6..=MOST_S, 0.1)?,
    })
}

//! Scenarios: JSON in, simulations out. The tables in this module's parts are the contract for their authors.
//!
//! | field | unit, range | default | meaning |
//! |---|---|---|---|
//! | `name`, `description` | text | required, empty | |
//! | `seed` | 0-2^64-1 | 1 | of all random numbers; each component draws its own by its name |
//! | `duration_s` | 0.001-1e7 | required | stop at the latest |
//! | `stop_after_finish_s` | 0-1e7, or -1 for never | 1 | stop so long after all flows have finished |
//! | `server`, `mobile` | tables | a host of today | [`endpoint`] |
//! | `path` | list, at most 62 | none | [`path`], from the server on |
//! | `traffic` | list | none | [`traffic`] |
//! | `record` | table | captures at both ends | [`record`] |
//!
//! An unknown field is refused, and null counts as absent.

pub mod acknowledger;
pub mod applications;
pub mod endpoint;
mod host_defaults;
mod http;
pub(crate) mod machine;
pub mod path;
pub mod proxy;
pub mod record;
pub(crate) mod times;
pub mod traffic;
pub mod transport;
mod voice;

use pepscope_path::Nanoseconds;
use pepscope_tcp::{ProcessingSettings, Settings};
use serde_json::Value;

pub use crate::fields::ScenarioError;
use crate::fields::{nanoseconds, Fields, Read, MOST_SECONDS};
use crate::plug_ins::{ApplicationFactory, HopFactory};
use path::HopDescription;
use record::Record;
use traffic::Traffic;

/// Parts of a chain that the driver can keep apart, without the two hosts.
const MOST_HOPS: usize = 62;

/// A scenario as read; see the module for its fields.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub description: String,
    pub seed: u64,
    pub duration_ns: Nanoseconds,
    /// `None`: run for the whole duration.
    pub stop_after_finish_ns: Option<Nanoseconds>,
    pub server: Settings,
    pub mobile: Settings,
    /// How long the machines take; `None` where nothing takes time.
    pub server_times: Option<ProcessingSettings>,
    pub mobile_times: Option<ProcessingSettings>,
    pub path: Vec<HopDescription>,
    pub traffic: Traffic,
    pub record: Record,
    /// The scenario as JSON with every default filled in.
    pub resolved: Value,
    /// Runs with header prediction and the driver's fast path, which tests and measurements turn off. The results are
    /// the same.
    pub fast_path: bool,
    /// Builds hops of the kind `plug-in`.
    pub plug_ins: Option<HopFactory>,
    /// Builds applications of the kind `plug-in`.
    pub application_plug_ins: Option<ApplicationFactory>,
}

impl Scenario {
    /// Reads a scenario from JSON.
    ///
    /// # Errors
    /// A sentence that names the field, its value and what is allowed.
    pub fn from_json(text: &str) -> Read<Self> {
        let mut fields = Fields::parse(text)?;
        let missing = ScenarioError::Missing { field: "name".to_owned(), allowed: "a text".to_owned() };
        let name = fields.optional_text("name", "a text")?.ok_or(missing)?;
        let description = fields.text("description", "")?;
        let seed = fields.integer("seed", 0..=u64::MAX, 1)?;
        let duration_ns = nanoseconds(fields.required_number("duration_s", 0.001..=MOST_SECONDS)?);
        let after_s = fields.number("stop_after_finish_s", -1.0..=MOST_SECONDS, 1.0)?;
        let server = fields.section("server", endpoint::read_end)?;
        let mobile = fields.section("mobile", endpoint::read_end)?;
        let mut kinds = Vec::new();
        let mut path = fields.sections("path", |hop| {
            let description = HopDescription::read(hop, &kinds)?;
            kinds.push(description.kind);
            Ok(description)
        })?;
        if path.len() > MOST_HOPS {
            return Err(fields.refuse("path", format!("{} hops", path.len()), format!("at most {MOST_HOPS} hops")));
        }
        for (number, hop) in path.iter().enumerate() {
            hop.check(path.get(number + 1..).unwrap_or_default())?;
        }
        let mut traffic = Traffic::behind(path.iter().find_map(HopDescription::recompression_ratio));
        fields.sections("traffic", |entry| traffic.read(entry))?;
        let largest_segment = server.tcp.maximum_segment_size.min(mobile.tcp.maximum_segment_size);
        for hop in &mut path {
            hop.meet(&traffic)?;
            hop.check_users(traffic.users())?;
            hop.check_traffic(&traffic, largest_segment)?;
        }
        let record = fields.section("record", |record| Record::read(record, path.len()))?;
        Ok(Self {
            name,
            description,
            seed,
            duration_ns,
            stop_after_finish_ns: (after_s >= 0.0).then(|| nanoseconds(after_s)),
            server: server.tcp,
            mobile: mobile.tcp,
            server_times: server.times,
            mobile_times: mobile.times,
            path,
            traffic,
            record,
            resolved: fields.finish()?,
            fast_path: true,
            plug_ins: None,
            application_plug_ins: None,
        })
    }

    /// What a detector should say of the path: `regular`, or the class of the first hop that acknowledges in the place of an end.
    #[must_use]
    pub fn class(&self) -> &'static str {
        self.path.iter().find_map(HopDescription::class).unwrap_or("regular")
    }
}

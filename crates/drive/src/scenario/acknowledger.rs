//! `[[path]]` entries that acknowledge data without ending connections.

use pepscope_tcp::control::ControlKind;
use pepscope_tcp::AcknowledgerSettings;

use super::traffic::Traffic;
use crate::fields::{Fields, Read, ScenarioError};

/// The name of the kind.
pub(super) const KIND: &str = "local-acknowledger";

/// A local acknowledger as described; which flows it meets is for the traffic to say.
#[derive(Clone, Debug)]
pub struct AcknowledgerDescription {
    settings: AcknowledgerSettings,
    server_ports: Option<Vec<u64>>,
    /// The whole name of its table, for refusals.
    place: String,
}

/// Reads a middlebox that acknowledges data in the receiver's name and passes the segments on as they came, once the
/// receiver's window and its own congestion window allow it; what is lost behind it, it sends again. There is no second
/// connection (RFC 3135, section 3.1.2), and handshakes and ends are the hosts'. `split_at` of the truth names it:
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `directions` | `down`, `up`, `both` | `down` | whose data are acknowledged |
/// | `buffer_bytes` | 1024-2^30 | 262144 | what it holds of a stream; what is left of it is the window of its acknowledgements |
/// | `receivers_acknowledgements` | `dropped`, `passed` | `dropped` | those of the receiver itself |
/// | `identification` | `counter`, `zero` | `counter` | IP identifications of its acknowledgements |
/// | `control` | `cubic`, `cubic-hystart-plus-plus`, `cubic-without-hystart`, `reno` | `cubic` | behind which it sends to the receiver |
/// | `server_ports` | list of 1-65535 | all | which connections it serves |
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_acknowledger(fields: &mut Fields) -> Read<AcknowledgerDescription> {
    let controls = ["cubic", "cubic-hystart-plus-plus", "cubic-without-hystart", "reno"];
    let controls = controls.map(|name| (name, ControlKind::named(name).unwrap_or_default()));
    let settings = AcknowledgerSettings {
        acknowledges: fields
            .choice("directions", &[("down", [true, false]), ("up", [false, true]), ("both", [true, true])])?,
        buffer_bytes: fields.integer("buffer_bytes", 1024..=1 << 30, 256 << 10)?,
        passes_receivers: fields.choice("receivers_acknowledgements", &[("dropped", false), ("passed", true)])?,
        counts_identifications: fields.choice("identification", &[("counter", true), ("zero", false)])?,
        control: fields.choice("control", &controls)?,
        bypassed_flows: Vec::new(),
    };
    let server_ports = fields.optional_integers("server_ports", 1..=65_535)?;
    Ok(AcknowledgerDescription { settings, server_ports, place: fields.place().to_owned() })
}

impl AcknowledgerDescription {
    /// Refuses a buffer whose window would stop a sender of full segments (RFC 1122, section 4.2.3.4).
    ///
    /// # Errors
    /// A sentence that says how much it takes.
    pub(super) fn check_segments(&self, largest_bytes: u16) -> Read<()> {
        let least = 4 * u64::from(largest_bytes);
        if self.settings.buffer_bytes >= least {
            return Ok(());
        }
        Err(ScenarioError::Refused {
            field: format!("{}.buffer_bytes", self.place),
            value: self.settings.buffer_bytes.to_string(),
            allowed: format!("at least {least}, four of the largest segments"),
        })
    }

    /// What it is to do in a run with `traffic`.
    pub(crate) fn settings(&self, traffic: &Traffic) -> AcknowledgerSettings {
        let bypassed_flows = traffic.flows_beside(self.server_ports.as_deref());
        AcknowledgerSettings { bypassed_flows, ..self.settings.clone() }
    }
}

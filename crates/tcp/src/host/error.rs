//! What a host refuses.

use core::fmt;

use crate::applications::script::ScriptError;
use crate::flow_table::FLOW_LIMIT;

/// Why a flow cannot be added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostError {
    /// The host has that flow already.
    FlowTaken {
        flow: u32,
    },
    /// The host has no such flow.
    FlowUnknown {
        flow: u32,
    },
    /// The number is [`FLOW_LIMIT`] or above.
    FlowOutOfRange {
        flow: u32,
    },
    Script(ScriptError),
}

impl fmt::Display for HostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlowTaken { flow } => write!(formatter, "Flow {flow} exists already."),
            Self::FlowUnknown { flow } => write!(formatter, "Flow {flow} does not exist."),
            Self::FlowOutOfRange { flow } => {
                write!(formatter, "The number of a flow must be from 0 to {}, got {flow}.", FLOW_LIMIT - 1)
            }
            Self::Script(error) => error.fmt(formatter),
        }
    }
}

impl core::error::Error for HostError {}

impl From<ScriptError> for HostError {
    fn from(error: ScriptError) -> Self {
        Self::Script(error)
    }
}

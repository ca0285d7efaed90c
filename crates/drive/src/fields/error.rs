//! Refusals of scenarios.

use std::fmt;

/// Why a scenario is refused; `Display` is one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioError {
    /// The text is no JSON.
    NotJson { cause: String },
    /// An unknown field.
    Unknown { field: String, known: Vec<&'static str> },
    /// A field without a default is missing.
    Missing { field: String, allowed: String },
    /// A value of the wrong type or outside its range.
    Refused { field: String, value: String, allowed: String },
    /// A text that is not what it should be.
    Unreadable { field: String, cause: String },
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson { cause } => write!(out, "the scenario must be JSON: {cause}"),
            Self::Unknown { field, known } => {
                write!(out, "{field} is not a field; fields are {}", known.join(", "))
            }
            Self::Missing { field, allowed } => write!(out, "{field} is missing; it must be {allowed}"),
            Self::Unreadable { field, cause } => write!(out, "{field} cannot be read: {cause}"),
            Self::Refused { field, value, allowed } => write!(out, "{field} must be {allowed}, got {value}"),
        }
    }
}

impl std::error::Error for ScenarioError {}

//! Refusals of settings, in one sentence each.

use core::fmt;

/// A setting outside its range: names the field, its value and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    pub field: &'static str,
    pub value: String,
    pub allowed: &'static str,
}

impl SettingsError {
    pub(crate) fn new(field: &'static str, value: impl fmt::Display, allowed: &'static str) -> Self {
        Self { field, value: value.to_string(), allowed }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} must be {}, got {}", self.field, self.allowed, self.value)
    }
}

impl std::error::Error for SettingsError {}

/// Accepts a probability, refuses anything outside [0, 1] (and what is no number).
pub(crate) fn check_probability(field: &'static str, value: f64) -> Result<(), SettingsError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(SettingsError::new(field, value, "a probability from 0 to 1"))
    }
}

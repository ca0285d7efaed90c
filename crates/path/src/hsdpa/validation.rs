//! Refusals of numbers outside their ranges.

use crate::SettingsError;

/// Refuses a value that is not a number in [`lowest`, `highest`]; `allowed` completes "must be".
pub(crate) fn between(
    field: &'static str,
    value: f64,
    (lowest, highest): (f64, f64),
    allowed: &'static str,
) -> Result<(), SettingsError> {
    if (lowest..=highest).contains(&value) {
        Ok(())
    } else {
        Err(SettingsError::new(field, value, allowed))
    }
}

/// Refuses a value that is not a finite number of at least `lowest`; `allowed` completes "must be".
pub(crate) fn at_least(
    field: &'static str,
    value: f64,
    lowest: f64,
    allowed: &'static str,
) -> Result<(), SettingsError> {
    between(field, value, (lowest, f64::MAX), allowed)
}

/// Refuses a value that is not a share.
pub(crate) fn share(field: &'static str, value: f64) -> Result<(), SettingsError> {
    between(field, value, (0.0, 1.0), "from 0 to 1")
}

/// Refuses a value in dB or dBm that no antenna, amplifier or path has.
pub(crate) fn decibels(field: &'static str, value: f64) -> Result<(), SettingsError> {
    between(field, value, (-300.0, 300.0), "from -300 to 300 dB")
}

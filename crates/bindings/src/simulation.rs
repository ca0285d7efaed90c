//! Simulations and live paths, with plug-ins that are written in Python.

pub(crate) mod application_plug_ins;
#[cfg(target_os = "linux")]
pub(crate) mod live;
pub(crate) mod plug_ins;
pub(crate) mod simulate;
pub(crate) mod sliding_mode;

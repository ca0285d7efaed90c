//! Capture files: their compression, containers and records, read, copied and edited.

pub(crate) mod annotated;
pub mod compression;
pub(crate) mod container;
pub(crate) mod editable;
pub(crate) mod opening;
pub(crate) mod other_kinds;
pub(crate) mod reader;
pub(crate) mod series;
pub(crate) mod window;

//! What uses connections: scripts, protocols with streams of bytes, and speakers.

pub(crate) mod application;
pub(crate) mod script;
pub(crate) mod streams;
pub(crate) mod voice;

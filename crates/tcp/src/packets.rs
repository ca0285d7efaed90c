//! What a path carries, with the content of payload by name.

pub(crate) mod content_digest;
pub(crate) mod packet;
pub(crate) mod packet_sink;
pub(crate) mod run;
pub(crate) mod segment;
pub(crate) mod sequence;

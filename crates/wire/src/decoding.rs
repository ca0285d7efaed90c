//! The walk through a frame's headers, and the short ways for what nearly all frames are.

pub(crate) mod decode;
pub(crate) mod dissect;
pub(crate) mod fast_path;
pub(crate) mod plain;
pub(crate) mod position;

//! Captured payload of streams: whether it agrees, and under which shift.

pub mod agreement;
pub mod fingerprints;
pub mod sample;

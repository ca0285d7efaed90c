//! Clocks: constraints on their difference, lines between those, steps, early acknowledgements, host timestamps.

pub mod constraints;
pub mod contradictions;
pub mod early_acks;
pub(crate) mod envelope;
pub mod host_clock;
pub mod lines;
pub mod order_statistics;
pub mod point;
pub mod sender_axis;
pub mod separation;
pub mod standing_still;
pub mod steps;
pub mod thinning;
pub mod timestamps;

//! Numbers that the detector's methods judge by, from the packets of a connection or of a pair of them.
//!
//! Nothing here decides: there is no verdict, and what a method may want to choose otherwise (limits, counts, shares) is
//! an argument. Columns come in as slices and go out as vectors.

pub mod agreement;
pub mod alignment;
mod candidates;
mod distinct;
mod envelope;
pub mod order_statistics;
pub mod packets;
pub mod pair_segments;
pub mod places;
pub mod point;
pub mod segments;
pub mod separation;
pub mod staircase;
pub mod steps;
pub mod thinning;

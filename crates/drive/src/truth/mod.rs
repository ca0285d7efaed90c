//! Ground truth of a run, for comparison with its captures.

pub mod delays;
pub mod report;
pub mod series;

//! Ground truth of a run, for comparison with its captures.

mod applications;
pub mod delays;
pub mod report;
pub mod series;

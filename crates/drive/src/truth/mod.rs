//! What really happened, kept beside the captures that only saw it.

pub mod delays;
pub mod report;
pub mod series;

//! What really happened, kept beside the captures that only saw it.

pub mod delays;
pub mod series;

//! Frames and capture files made byte by byte, so that a test knows what a decoder must find.
// Each test binary uses its own part of this.
#![allow(clippy::unwrap_used, dead_code, unused_imports)]

pub mod files;
pub mod frames;
pub mod links;

//! Capture files and packet headers: bytes to TCP segments, no I/O beyond reading, no panics on any input.

pub mod segment;

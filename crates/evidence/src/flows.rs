//! Flows: when bytes left, arrived and were acknowledged, how windows went, and how connections ended.

pub mod ack_delays;
pub mod byte_times;
pub mod early_fin;
pub mod endings;
pub mod ends;
pub mod hop_limits;
pub mod opening_options;
pub mod openings;
pub mod sender_lead;
pub mod shut_windows;
pub mod staircase;
pub mod staircases;
pub mod times;
pub mod transfer_spans;
pub mod window_course;

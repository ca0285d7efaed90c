//! Numbers that the detector's methods judge by, from the packets of a connection or of a pair of them.
//!
//! Nothing here decides: there is no verdict, and what a method may want to choose otherwise (limits, counts, shares) is
//! an argument. Columns come in as slices and go out as vectors.

pub mod ack_delays;
pub mod agreement;
pub mod alignment;
pub mod byte_times;
mod candidates;
pub mod clock_lines;
pub mod common_packets;
pub mod constraints;
mod distinct;
pub mod early_acks;
pub mod early_fin;
pub mod endings;
mod envelope;
pub mod exchanges;
pub mod flow_ends;
pub mod flow_times;
pub mod hop_limits;
pub mod host_clock;
mod median;
pub mod order_statistics;
pub mod packet_twins;
pub mod packets;
pub mod pair_segments;
pub mod payload;
pub mod payload_agreement;
pub mod payload_fingerprints;
pub mod places;
pub mod point;
pub mod segments;
pub mod sender_lead;
pub mod separation;
pub mod staircase;
pub mod steps;
pub mod thinning;
pub mod timestamps;
pub mod transfer_spans;
pub mod window_course;

//! Segments at both ends of a flow: which may be the same packets, and in which fields they agree.

pub mod agreement;
pub mod ahead;
pub mod alignment;
pub(crate) mod candidates;
pub mod columns;
pub mod common_packets;
pub mod least_changed;
pub mod likeness;
pub mod packet_keys;
pub mod pair;
pub mod places;
pub mod skipped;
pub mod twins;
pub(crate) mod unchanged;

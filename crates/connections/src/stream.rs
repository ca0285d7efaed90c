//! One direction of a connection: what its sender sent, and what the capture shows of it.

pub(crate) mod contradictions;
pub(crate) mod coverage;
pub(crate) mod in_order;
pub(crate) mod opening;
mod queue;
pub(crate) mod reading;
pub(crate) mod retransmission;
pub(crate) mod round_trip;
pub(crate) mod sequence;
pub(crate) mod side;
pub(crate) mod window;

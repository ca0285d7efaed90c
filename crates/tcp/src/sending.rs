//! The sending half of a connection: what is in flight, what was lost, and when it is sent again.

pub(crate) mod flight;
pub(crate) mod recovery;
pub(crate) mod retransmission_timer;
pub(crate) mod send_queue;
pub(crate) mod sender;

//! The receiving half of a connection: data in order and out of order, and acknowledgements.

pub(crate) mod intervals;
pub(crate) mod reassembly;
pub(crate) mod receiver;

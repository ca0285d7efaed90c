//! What one capture shows of connections, as numbers.

pub(crate) mod connection_numbers;
pub(crate) mod exchanges;
pub(crate) mod one_capture;
pub(crate) mod senders;

//! Captures as they are read, for Python to ask.

pub(crate) mod annotated;
pub(crate) mod capture;
pub(crate) mod datagrams;
pub(crate) mod decoding;
pub(crate) mod frames;
pub(crate) mod freed_memory;
pub(crate) mod loading;
pub(crate) mod packet_keys;
pub(crate) mod packets;
pub(crate) mod payload;
pub(crate) mod payload_choice;
pub(crate) mod read;
pub(crate) mod references;
pub(crate) mod standard_input;
pub(crate) mod summaries;
pub(crate) mod tally;

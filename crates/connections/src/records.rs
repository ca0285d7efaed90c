//! Packets and payload of connections as bytes in memory.

pub(crate) mod chains;
pub(crate) mod columns;
pub(crate) mod frame_numbers;
pub(crate) mod packet_records;
pub(crate) mod packet_store;
pub(crate) mod payload_sample;
pub(crate) mod piece_choice;
pub(crate) mod record_reader;
pub(crate) mod segment_record;

//! Tests of this crate in one program: with one for each file, compiling and linking take twice as long.

mod datagram_flows;
mod directions_apart;
mod in_time;
mod json_text;
mod losses;
mod missing_packets;
mod offsets;
mod payload_samples;
mod plain_segments;
mod references;
mod round_trips;
mod sides;
mod streams_property;
mod transcript;
mod windows;

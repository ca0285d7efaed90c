//! What became of the packets of a capture, for Python.

use pepscope_wire::Tally;

/// Counts by name.
pub(crate) fn counts(tally: &Tally) -> [(&'static str, u64); 14] {
    [
        ("frames", tally.frames),
        ("tcp_segments", tally.tcp_segments),
        ("filtered_out", tally.filtered_out),
        ("unknown_link_type", tally.unknown_link_type),
        ("not_ip", tally.not_ip),
        ("not_tcp", tally.not_tcp),
        ("cut_short", tally.cut_short),
        ("malformed", tally.malformed),
        ("too_deep", tally.too_deep),
        ("encrypted", tally.encrypted),
        ("fragments_held", tally.fragments_held),
        ("unfinished_datagrams", tally.unfinished_datagrams),
        ("frames_without_time", tally.frames_without_time),
        ("bytes_read", tally.bytes_read),
    ]
}

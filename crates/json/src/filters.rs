//! Display filters of Wireshark for connections.

/// Writes the display filter of a connection between two end points (`ip:port`, IPv6 in brackets), as
/// `pepscope.captures.files.named_packets.connection_filter` explains it.
///
/// `frames` are the connection's first and last frame.
pub fn write_connection_filter(
    bytes: &mut Vec<u8>,
    client: &str,
    server: &str,
    transport: &str,
    frames: Option<(i64, i64)>,
) {
    let ((one, first), (other, second)) = (end_point(client), end_point(server));
    let (address, quoting) = if one.starts_with('[') { ("ipv6.addr", "icmpv6") } else { ("ip.addr", "icmp") };
    let (from, to) = if first == second { ("srcport", "dstport") } else { ("port", "port") };
    let (one, other) = (bare(one), bare(other));
    bytes.extend_from_slice(
        format!(
            "{address} == {one} && {address} == {other} && {transport}.{from} == {first} && {transport}.{to} == {second} \
             && !{quoting}"
        )
        .as_bytes(),
    );
    if let Some((first, last)) = frames {
        bytes.extend_from_slice(format!(" && frame.number in {{{first}..{last}}}").as_bytes());
    }
}

fn end_point(text: &str) -> (&str, &str) {
    text.rsplit_once(':').unwrap_or(("", text))
}

fn bare(address: &str) -> &str {
    address.trim_matches(['[', ']'])
}

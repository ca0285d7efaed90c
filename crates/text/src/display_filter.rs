//! Wireshark's display filters of connections.

use crate::texts::{TextColumn, Texts};

/// The filters of connections between end points (`ip:port`, IPv6 in brackets); `None` where a column has too few rows.
///
/// `frames` are the first and the last frame of each: between them no other connection of the file has the same end
/// points.
pub fn connection_filters(
    rows: usize,
    clients: &TextColumn<'_>,
    servers: &TextColumn<'_>,
    transports: &TextColumn<'_>,
    frames: Option<&[i64]>,
) -> Option<Texts> {
    Texts::of(rows, |out, row| {
        connection_filter(out, &clients.of(row)?, &servers.of(row)?, &transports.of(row)?);
        if let Some(frames) = frames {
            let &[first, last] = frames.chunks_exact(2).nth(row)? else { return None };
            write_all(out, &[b" && frame.number in {", number(first).as_bytes(), b"..", number(last).as_bytes(), b"}"]);
        }
        Some(())
    })
}

fn connection_filter(out: &mut Vec<u8>, client: &[u8], server: &[u8], transport: &[u8]) {
    let ((mut one, first), (mut other, second)) = (address_and_port(client), address_and_port(server));
    let (mut address, mut quoting): (&[u8], &[u8]) = (b"ip.addr", b"icmp");
    if one.first() == Some(&b'[') {
        (address, quoting) = (b"ipv6.addr", b"icmpv6");
        (one, other) = (without_brackets(one), without_brackets(other));
    }
    let (from_port, to_port): (&[u8], &[u8]) =
        if first == second { (b".srcport == ", b".dstport == ") } else { (b".port == ", b".port == ") };
    // ICMP errors quote the headers of other packets.
    write_all(
        out,
        &[
            address, b" == ", one, b" && ", address, b" == ", other, b" && ", transport, from_port, first, b" && ",
            transport, to_port, second, b" && !", quoting,
        ],
    );
}

fn write_all(out: &mut Vec<u8>, texts: &[&[u8]]) {
    for text in texts {
        out.extend_from_slice(text);
    }
}

fn number(value: i64) -> String {
    value.to_string()
}

fn address_and_port(end_point: &[u8]) -> (&[u8], &[u8]) {
    match end_point.iter().rposition(|&byte| byte == b':') {
        Some(colon) => (&end_point[..colon], &end_point[colon + 1..]),
        None => (&[], end_point),
    }
}

fn without_brackets(address: &[u8]) -> &[u8] {
    let is_bracket = |byte: &u8| matches!(byte, b'[' | b']');
    let begin = address.iter().position(|byte| !is_bracket(byte)).unwrap_or(address.len());
    let end = address.iter().rposition(|byte| !is_bracket(byte)).map_or(begin, |last| last + 1);
    &address[begin..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(client: &str, server: &str, frames: Option<&[i64]>) -> Option<String> {
        let each = |text: &str| TextColumn::Each(vec![text.as_bytes().to_vec()]);
        let texts = connection_filters(1, &each(client), &each(server), &each("tcp"), frames)?;
        String::from_utf8(texts.content).ok()
    }

    #[test]
    fn filters_name_both_ends() {
        assert_eq!(
            of("10.0.0.1:5", "10.0.0.2:80", None).as_deref(),
            Some("ip.addr == 10.0.0.1 && ip.addr == 10.0.0.2 && tcp.port == 5 && tcp.port == 80 && !icmp")
        );
        assert_eq!(
            of("[fe80::1]:80", "[fe80::2]:80", Some(&[3, 14])).as_deref(),
            Some(
                "ipv6.addr == fe80::1 && ipv6.addr == fe80::2 && tcp.srcport == 80 && tcp.dstport == 80 && !icmpv6 && \
                 frame.number in {3..14}"
            )
        );
    }

    #[test]
    fn frames_must_be_there_for_each_row() {
        assert_eq!(of("10.0.0.1:5", "10.0.0.2:80", Some(&[3])), None);
    }
}

//! The presentation language of TLS (RFC 8446, section 3), as far as its messages need it.

/// Bytes behind their length in two bytes.
pub(super) fn with_length_16(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

/// Bytes behind their length in three bytes.
pub(super) fn with_length_24(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[1..], bytes].concat()
}

pub(super) fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &with_length_16(content)].concat()
}

/// A handshake message (RFC 8446, section 4).
pub(super) fn handshake(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &with_length_24(content)].concat()
}

/// Big-endian numbers of two bytes.
pub(super) fn words(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

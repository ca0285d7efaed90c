//! Numbers and texts as JSON writes them.

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// A number in the fewest digits that give it again; null where it is infinite or none.
pub fn write_float(bytes: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        bytes.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else {
        bytes.extend_from_slice(b"null");
    }
}

/// A whole number.
pub fn write_integer(bytes: &mut Vec<u8>, value: i64) {
    bytes.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A text in quotation marks. Only what JSON cannot hold is escaped; bytes that are no UTF-8 stay as they are.
pub fn write_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.push(b'"');
    let mut rest = text;
    while let Some(place) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        bytes.extend_from_slice(&rest[..place]);
        let byte = rest[place];
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            _ => 0,
        };
        if short == 0 {
            bytes.extend_from_slice(b"\\u00");
            bytes.push(HEXADECIMAL[usize::from(byte >> 4)]);
            bytes.push(HEXADECIMAL[usize::from(byte & 15)]);
        } else {
            bytes.extend_from_slice(&[b'\\', short]);
        }
        rest = &rest[place + 1..];
    }
    bytes.extend_from_slice(rest);
    bytes.push(b'"');
}

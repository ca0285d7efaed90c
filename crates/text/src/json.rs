//! Values as JSON (RFC 8259); all append to bytes.

/// A whole number.
pub fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest number that reads as this one; null for what JSON has no number for.
pub fn float(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Text in quotes. It is taken byte by byte, so that what is no Unicode (a path's surrogates) stays as it is.
pub fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut rest = text;
    while let Some(place) = first_escaped(rest) {
        let (plain, escaped) = rest.split_at(place);
        out.extend_from_slice(plain);
        escape(out, escaped[0]);
        rest = &escaped[1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Bytes that are looked at together, without a branch for each.
const TOGETHER: usize = 32;

fn first_escaped(text: &[u8]) -> Option<usize> {
    let is_plain = |part: &&[u8]| !part.iter().fold(false, |found, &byte| found | is_escaped(byte));
    let begin = TOGETHER * text.chunks_exact(TOGETHER).take_while(is_plain).count();
    text[begin..].iter().position(|&byte| is_escaped(byte)).map(|place| begin + place)
}

fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        8 => b'b',
        12 => b'f',
        _ => {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    proptest! {
        #[test]
        fn texts_read_as_they_were(value in any::<String>(), controls in proptest::collection::vec(0_u8..40, 0..9)) {
            let value: String = value.chars().chain(controls.into_iter().map(char::from)).collect();
            let text = written(|out| text(out, value.as_bytes()));
            prop_assert!(text.iter().all(|&byte| byte >= b' '));
            prop_assert_eq!(serde_json::from_slice::<String>(&text).ok(), Some(value));
        }

        #[test]
        fn numbers_read_as_they_were(value in any::<f64>(), whole in any::<i64>()) {
            let text = String::from_utf8(written(|out| float(out, value))).unwrap_or_default();
            if value.is_finite() {
                prop_assert_eq!(text.parse(), Ok(value));
            } else {
                prop_assert_eq!(text, "null");
            }
            prop_assert_eq!(serde_json::from_slice::<i64>(&written(|out| integer(out, whole))).ok(), Some(whole));
        }
    }

    #[test]
    fn booleans_and_numbers_that_are_none() {
        assert_eq!(written(|out| boolean(out, true)), b"true");
        assert_eq!(written(|out| float(out, f64::NAN)), b"null");
    }
}

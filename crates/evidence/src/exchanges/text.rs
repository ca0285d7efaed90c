//! Protocols of text: HTTP/1 (RFC 9112) and those of lines, where the server speaks first (SMTP, FTP, POP3, IMAP, SSH).

/// Whether bytes begin with an HTTP/1 request.
pub(super) fn is_http_request(bytes: &[u8]) -> bool {
    const METHODS: [&[u8]; 10] = [
        b"GET ",
        b"POST ",
        b"HEAD ",
        b"PUT ",
        b"DELETE ",
        b"OPTIONS ",
        b"PATCH ",
        b"CONNECT ",
        b"TRACE ",
        b"PROPFIND ",
    ];
    METHODS.iter().any(|method| bytes.starts_with(method))
}

/// Whether bytes begin with an HTTP/1 response.
pub(super) fn is_http_response(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.")
}

/// Whether bytes are the greeting of a protocol of lines (SMTP and FTP, POP3, IMAP).
pub(super) fn is_banner(bytes: &[u8]) -> bool {
    const BANNERS: [&[u8]; 5] = [b"220 ", b"220-", b"+OK", b"* OK", b"* PREAUTH"];
    BANNERS.iter().any(|banner| bytes.starts_with(banner))
}

/// Whether bytes are how SMTP and LMTP clients answer a greeting, which they must wait for (RFC 5321, section 4.3.1).
pub(super) fn is_mail_greeting(bytes: &[u8]) -> bool {
    let word = bytes.first_chunk::<5>().map(|word| word.to_ascii_uppercase());
    word.is_some_and(|word| matches!(&word[..], b"EHLO " | b"HELO " | b"LHLO "))
}

/// Whether bytes begin with a reply of a protocol of lines: three digits, or a POP3 status.
pub(super) fn is_reply(bytes: &[u8]) -> bool {
    let status = match bytes.first_chunk::<4>() {
        Some([hundreds @ b'1'..=b'5', tens, ones, b' ' | b'-']) => {
            hundreds.is_ascii_digit() && tens.is_ascii_digit() && ones.is_ascii_digit()
        }
        _ => false,
    };
    status || bytes.starts_with(b"+OK") || bytes.starts_with(b"-ERR")
}

/// Whether bytes look like text: some of them, and none but printable ones and white space.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 16;
    let start = &bytes[..bytes.len().min(LOOKED_AT)];
    !start.is_empty()
        && start.iter().all(|&byte| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_recognised_by_their_first_bytes() {
        assert!(is_http_request(b"GET /") && !is_http_request(b"GETTING") && !is_http_request(b"PRI * HTTP/2.0"));
        assert!(is_http_response(b"HTTP/1.1 200") && !is_http_response(b"HTTP/2"));
        assert!(is_reply(b"250-mail") && is_reply(b"-ERR") && !is_reply(b"250") && !is_reply(b"999 x"));
        assert!(is_mail_greeting(b"ehlo x") && !is_mail_greeting(b"EHLO"));
        assert!(is_text(b"a\r\n") && !is_text(b"") && !is_text(b"\x16\x03\x01"));
    }
}

//! Heads of HTTP messages (RFC 9112) that contents begin with.

/// The text before the body.
pub(super) struct Head(String);

impl Head {
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

const PADDING: &str = "X-Padding: ";

/// A request without a body, of `bytes` bytes or the least that it takes.
pub(super) fn get(bytes: u64) -> Head {
    let start = "GET /content HTTP/1.1\r\nHost: server.example\r\nUser-Agent: pepscope\r\nAccept: */*\r\n";
    let missing = (bytes as usize).saturating_sub(start.len() + 2);
    let padding = match missing.checked_sub(PADDING.len() + 2) {
        Some(count) => format!("{PADDING}{}\r\n", "x".repeat(count)),
        None => String::new(),
    };
    Head(format!("{start}{padding}\r\n"))
}

/// A request with a body of `body_bytes`.
pub(super) fn put(body_bytes: u64) -> Head {
    Head(format!(
        "PUT /content HTTP/1.1\r\nHost: server.example\r\nUser-Agent: pepscope\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {body_bytes}\r\n\r\n"
    ))
}

/// A good answer with a body of `body_bytes`.
pub(super) fn response(body_bytes: u64) -> Head {
    Head(format!(
        "HTTP/1.1 200 OK\r\nServer: pepscope\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {body_bytes}\r\n\r\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::get;

    #[test]
    fn a_request_has_the_length_that_is_asked_for() {
        for bytes in [120, 300, 1460] {
            assert_eq!(get(bytes).bytes(), bytes);
            assert!(get(bytes).text().ends_with("\r\n\r\n"));
        }
        assert!(get(0).bytes() < 100);
    }
}

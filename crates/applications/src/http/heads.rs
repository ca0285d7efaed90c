//! Heads of HTTP/1.1 messages (RFC 9112).

use super::Request;

const COOKIE: &str = "Cookie: id=";

pub(super) fn request(request: &Request) -> Vec<u8> {
    let start = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: Mozilla/5.0 (simulated)\r\nAccept: */*\r\n\
         Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n",
        request.path, request.host
    );
    let missing = (request.request_bytes as usize).saturating_sub(start.len() + 2);
    let cookie = match missing.checked_sub(COOKIE.len() + 2) {
        Some(count) if count > 0 => format!("{COOKIE}{}\r\n", "c".repeat(count)),
        _ => String::new(),
    };
    format!("{start}{cookie}\r\n").into_bytes()
}

pub(super) fn response(body_bytes: u64) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nServer: simulated\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {body_bytes}\r\nCache-Control: no-store\r\n\
         Connection: keep-alive\r\n\r\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{request, Request};

    #[test]
    fn a_request_has_the_length_that_is_asked_for_if_it_can() {
        for request_bytes in [0, 200, 420, 1900] {
            let made = request(&Request {
                host: "server-0.example".to_owned(),
                path: "/page-0/document".to_owned(),
                request_bytes,
                ..Request::default()
            });
            assert!(made.ends_with(b"\r\n\r\n"));
            assert!(request_bytes <= 200 || made.len() as u64 == request_bytes, "{}", made.len());
        }
    }
}

//! Requests that a client makes of an HTTP proxy, and headers of the PROXY protocol.

use super::kind::Kind;

/// Schemes of what proxies are asked for, and the ports that stand for none.
const SCHEMES: [(&[u8], u16); 3] = [(b"http://", 80), (b"https://", 443), (b"ftp://", 21)];
/// Begin an authority's end (RFC 3986, section 3.2).
const ENDS: &[u8] = b"/?# ";
/// How headers of the PROXY protocol begin (HAProxy's proxy-protocol.txt, sections 2.1 and 2.2).
const HEADERS: [&[u8]; 4] = [b"PROXY TCP4 ", b"PROXY TCP6 ", b"PROXY UNKNOWN", b"\r\n\r\n\0\r\nQUIT\n"];

/// Kind of an HTTP/1 request with its answer, of which nothing may be captured, and whether it is strict.
pub(super) fn kind(question: &[u8], answer: &[u8], server_port: impl Fn() -> Option<u16>) -> (Kind, bool) {
    if question.starts_with(b"CONNECT ") {
        // Another host has to be reached first.
        let is_opened = is_success(answer) && !has_content(answer);
        return (if is_opened { Kind::ProxyConnect } else { Kind::HttpRequest }, false);
    }
    let Some(asked) = absolute_target(question) else { return (Kind::HttpRequest, true) };
    // Servers have to accept the form for themselves (RFC 9112, section 3.2.2), and then get it at the port that it
    // names. Who looks for open proxies finds servers that refuse it, or lead elsewhere.
    let is_elsewhere = asked.is_some_and(|asked| server_port().is_some_and(|port| port != asked));
    let is_granted = is_success(answer) || status(answer) == Some(*b"304");
    (if is_elsewhere && is_granted { Kind::ProxyRequest } else { Kind::AbsoluteRequest }, true)
}

/// Whether bytes begin a header of the PROXY protocol.
pub(super) fn is_proxy_header(bytes: &[u8]) -> bool {
    HEADERS.iter().any(|header| bytes.starts_with(header))
}

/// The port that a request in absolute-form names, as far as it was captured; `None` for the other forms.
fn absolute_target(request: &[u8]) -> Option<Option<u16>> {
    let target = request.splitn(2, |&byte| byte == b' ').nth(1)?;
    let is_of = |scheme: &[u8]| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let (scheme, usual) = SCHEMES.into_iter().find(|(scheme, _)| is_of(scheme))?;
    let rest = &target[scheme.len()..];
    let end = rest.iter().position(|byte| ENDS.contains(byte));
    Some(end.and_then(|end| port_of(&rest[..end], usual)))
}

/// The port of an authority: its own or the usual one; `None` where it is not a number of 16 bits.
fn port_of(authority: &[u8], usual: u16) -> Option<u16> {
    // An address of IPv6 stands in brackets, and has colons.
    let behind = authority.rsplit(|&byte| byte == b']' || byte == b'@').next().unwrap_or_default();
    let Some(colon) = behind.iter().rposition(|&byte| byte == b':') else { return Some(usual) };
    let digits = std::str::from_utf8(&behind[colon + 1..]).ok()?;
    if digits.is_empty() {
        return Some(usual);
    }
    digits.parse().ok()
}

/// The status of a response.
fn status(response: &[u8]) -> Option<[u8; 3]> {
    match response.strip_prefix(b"HTTP/1.")? {
        [b'0' | b'1', b' ', code @ ..] => code.first_chunk().copied(),
        _ => None,
    }
}

fn is_success(response: &[u8]) -> bool {
    status(response).is_some_and(|[class, tens, ones]| class == b'2' && tens.is_ascii_digit() && ones.is_ascii_digit())
}

/// Whether a response, as far as it was captured, says that it brings content. One that opens a tunnel brings none; some
/// servers answer any method with a page.
fn has_content(response: &[u8]) -> bool {
    let lines = response.split(|&byte| byte == b'\n').skip(1).take_while(|line| !line.trim_ascii().is_empty());
    lines.filter_map(|line| line.split_at_checked(line.iter().position(|&byte| byte == b':')?)).any(|(name, value)| {
        let is_length = name.eq_ignore_ascii_case(b"content-length") && value.trim_ascii() != b": 0";
        is_length || name.eq_ignore_ascii_case(b"content-type")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";

    fn kind_at(port: u16, request: &[u8], answer: &[u8]) -> Kind {
        kind(request, answer, || Some(port)).0
    }

    #[test]
    fn a_tunnel_is_one_that_the_proxy_opens() {
        // curl 7.88 through tinyproxy 1.11.
        let asked = b"CONNECT 10.3.0.2:8443 HTTP/1.1\r\nHost: 10.3.0.2:8443\r\nUser-Agent: curl/7.88.1\r\n";
        let opened = b"HTTP/1.0 200 Connection established\r\nProxy-agent: tinyproxy/1.11.1\r\n\r\n";
        assert_eq!(kind(asked, opened, || None), (Kind::ProxyConnect, false));
        for refused in [&b"HTTP/1.1 403 Access violation\r\n"[..], b"HTTP/1.1 407 Proxy", b"HTTP/1.1 2", b""] {
            assert_eq!(kind(asked, refused, || None), (Kind::HttpRequest, false));
        }
    }

    #[test]
    fn a_page_is_no_tunnel() {
        let asked = b"CONNECT example.com:443 HTTP/1.1\r\n";
        for page in [
            &b"HTTP/1.1 200 OK\r\nDate: Mon, 02 Mar 2026 10:00:00 GMT\r\nContent-Type: text/html\r\n\r\n<html>"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1",
        ] {
            assert_eq!(kind(asked, page, || None), (Kind::HttpRequest, false), "{}", page.escape_ascii());
        }
        for opened in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", // Go's net/http where a handler takes over
            b"HTTP/1.1 200 OK\r\n\r\nContent-Type: of what the tunnel brings\r\n",
        ] {
            assert_eq!(kind(asked, opened, || None), (Kind::ProxyConnect, false), "{}", opened.escape_ascii());
        }
    }

    #[test]
    fn absolute_form_asks_a_proxy_where_it_names_another_port() {
        for asked in [
            &b"GET http://example.com/ HTTP/1.1\r\n"[..],
            b"GET HTTP://example.com HTTP/1.1",
            b"GET http://user:secret@example.com/",
            b"GET http://[2001:db8::1]/",
            b"GET http://[2001:db8::1]:80/",
            b"POST http://example.com:80?x",
            b"HEAD http://example.com:/",
        ] {
            assert_eq!(kind_at(3128, asked, OK), Kind::ProxyRequest, "{}", asked.escape_ascii());
            assert_eq!(kind_at(80, asked, OK), Kind::AbsoluteRequest, "{}", asked.escape_ascii());
            assert_eq!(kind(asked, OK, || None).0, Kind::AbsoluteRequest);
        }
        assert_eq!(kind_at(8080, b"GET http://example.com:8080/ HTTP/1.1", OK), Kind::AbsoluteRequest);
        assert_eq!(kind_at(80, b"GET https://example.com/ HTTP/1.1", OK), Kind::ProxyRequest);
        assert_eq!(kind_at(80, b"GET ftp://example.com/ HTTP/1.1", OK), Kind::ProxyRequest);
    }

    #[test]
    fn what_servers_answer_to_absolute_form_declares_nothing() {
        let asked = b"GET http://example.com/ HTTP/1.1";
        for answer in [&b"HTTP/1.1 400 Bad Request"[..], b"HTTP/1.1 404 Not Found", b"HTTP/1.1 301 Moved", b"HTTP/1.1"]
        {
            assert_eq!(kind_at(3128, asked, answer), Kind::AbsoluteRequest);
        }
        assert_eq!(kind_at(3128, asked, b"HTTP/1.0 304 Not Modified"), Kind::ProxyRequest);
        assert_eq!(kind_at(3128, b"GET http://exam", OK), Kind::AbsoluteRequest, "cut");
        assert_eq!(kind_at(3128, b"GET http://example.com:99999/", OK), Kind::AbsoluteRequest);
        for other in [&b"GET / HTTP/1.1"[..], b"OPTIONS * HTTP/1.1", b"OPTIONS rtsp://example.com/ RTSP/1.0", b"GET "] {
            assert_eq!(kind(other, OK, || Some(3128)), (Kind::HttpRequest, true));
        }
    }

    #[test]
    fn headers_of_the_proxy_protocol_are_known_by_their_beginning() {
        assert!(is_proxy_header(b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n"));
        assert!(is_proxy_header(b"PROXY UNKNOWN\r\n"));
        assert!(is_proxy_header(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"));
        assert!(!is_proxy_header(b"PROXY") && !is_proxy_header(b"\r\n\r\n\0\r\nQUIT"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(target in prop::collection::vec(any::<u8>(), 0..40), port in any::<u16>()) {
            let request = [&b"GET http://"[..], &target].concat();
            let found = kind_at(port, &request, OK);
            prop_assert!(matches!(found, Kind::ProxyRequest | Kind::AbsoluteRequest));
            is_proxy_header(&target);
            status(&target);
        }

        #[test]
        fn the_port_is_the_one_that_stands_there(port in 1_u16.., host in "[a-z]{1,9}(\\.[a-z]{1,9}){0,2}") {
            let request = format!("GET http://{host}:{port}/ HTTP/1.1");
            prop_assert_eq!(absolute_target(request.as_bytes()), Some(Some(port)));
        }
    }
}

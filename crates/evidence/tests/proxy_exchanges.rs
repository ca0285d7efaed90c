//! Exchanges of clients with proxies that they ask for: what real programs say, byte by byte.

use crate::conversation::{record, Conversation, CLIENT, SERVER};
use pepscope_evidence::exchanges::Kind;

/// curl 7.88 with --socks5: it offers no authentication, and GSSAPI.
const CURL_GREETS: &[u8] = &[5, 2, 0, 1];
const CHOSEN: &[u8] = &[5, 0];
/// CONNECT to 10.213.8.2:443, by address (curl, OpenBSD's nc -X 5) and by name (curl with --socks5-hostname).
const ASKED: &[u8] = &[5, 1, 0, 1, 10, 213, 8, 2, 1, 187];
const ASKED_BY_NAME: &[u8] = b"\x05\x01\x00\x03\x0aexample.eu\x01\xbb";
/// microsocks 1.0.2 and OpenSSH 9.2 (ssh -D) grant it, microsocks refuses it (host unreachable).
const GRANTED: &[u8] = &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
const REFUSED: &[u8] = &[5, 4, 0, 1, 0, 0, 0, 0, 0, 0];

/// Kinds of what the client asks.
fn kinds(talk: &Conversation) -> Vec<Kind> {
    let found = talk.exchanges().exchanges;
    let rows = found.asked.iter().zip(&found.kind).zip(&found.strict);
    rows.filter(|((&asked, _), _)| asked == CLIENT)
        .map(|((_, &kind), &strict)| {
            let kind = Kind::ALL[usize::from(kind)];
            assert!(!strict || matches!(kind, Kind::TlsHello | Kind::HttpRequest | Kind::ProxyRequest));
            kind
        })
        .collect()
}

/// Says these in turns, the client first.
fn said(turns: &[&[u8]]) -> Conversation {
    let mut talk = Conversation::opened();
    for (place, bytes) in (0_u8..).zip(turns) {
        talk.say(if place % 2 == 0 { CLIENT } else { SERVER }, 10 * (i64::from(place) + 1), bytes);
    }
    talk
}

fn hello() -> (Vec<u8>, Vec<u8>) {
    let client = [&[1, 0, 0, 41, 3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
    let server = [&[2, 0, 0, 38, 3, 3][..], &[9; 32], &[0, 0x13, 1, 0]].concat();
    (record(22, &client), record(22, &server))
}

#[test]
fn a_socks_proxy_answers_the_greeting_itself_and_the_request_when_it_has_connected() {
    let (client, server) = hello();
    for asked in [ASKED, ASKED_BY_NAME] {
        let talk = said(&[CURL_GREETS, CHOSEN, asked, GRANTED, &client, &server]);
        assert_eq!(kinds(&talk), [Kind::SocksGreeting, Kind::SocksRequest, Kind::TlsHello]);
    }
    let talk = said(&[&[5, 1, 0], CHOSEN, ASKED, GRANTED, b"GET / HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n"]);
    assert_eq!(kinds(&talk), [Kind::SocksGreeting, Kind::SocksRequest, Kind::HttpRequest]);
    assert_eq!(kinds(&said(&[CURL_GREETS, CHOSEN, ASKED, REFUSED])), [Kind::SocksGreeting; 2]);
}

#[test]
fn authentication_is_the_proxys_own() {
    // curl 7.88 with a name and a password, microsocks -u me -P secret.
    let secret = [&[1, 2][..], b"me", &[6], b"secret"].concat();
    let talk = said(&[&[5, 3, 0, 1, 2], &[5, 2], &secret, &[1, 0], ASKED, GRANTED]);
    assert_eq!(kinds(&talk), [Kind::SocksGreeting, Kind::SocksGreeting, Kind::SocksRequest]);
    let talk = said(&[&[5, 3, 0, 1, 2], &[5, 2], &secret, &[1, 1]]);
    assert_eq!(kinds(&talk), [Kind::SocksGreeting; 2]);
    assert_eq!(kinds(&said(&[CURL_GREETS, &[5, 255]])), [Kind::SocksGreeting], "no method is acceptable");
}

#[test]
fn a_request_that_does_not_wait_is_part_of_the_greeting() {
    let talk = said(&[&[&[5, 1, 0], ASKED].concat(), CHOSEN, b"GET / HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n"]);
    assert_eq!(kinds(&talk), [Kind::SocksGreeting, Kind::HttpRequest]);
    let secret = [&[1, 2][..], b"me", &[6], b"secret", ASKED].concat();
    let talk = said(&[&[5, 1, 2], &[5, 2], &secret, &[1, 0], b"GET / HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n"]);
    assert_eq!(kinds(&talk), [Kind::SocksGreeting, Kind::SocksGreeting, Kind::HttpRequest]);
}

#[test]
fn what_goes_on_in_another_way_than_socks_is_none() {
    let pipelined = [&[5, 1, 0], ASKED].concat();
    let refused = &[5, 255][..];
    let secret = [&[1, 2][..], b"me", &[6], b"secret"].concat();
    for (first, said_first, then) in [
        (&[5, 1, 0][..], CHOSEN, &b"what another protocol says"[..]),
        (CURL_GREETS, refused, b"and who was refused"),
        (&pipelined, refused, b"with a request that did not wait"),
        (&[5, 1, 2], &[5, 2], &secret),
    ] {
        let talk = said(&[first, said_first, then, b"another answer"]);
        assert_eq!(kinds(&talk), [Kind::Turn; 2], "{}", then.escape_ascii());
    }
}

#[test]
fn datagrams_are_passed_on_beside_the_connection() {
    let associate = [5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(kinds(&said(&[CURL_GREETS, CHOSEN, &associate, GRANTED])), [Kind::SocksGreeting; 2]);
}

#[test]
fn version_4_asks_at_once() {
    // curl 7.88 with --socks4 and --socks4a, ssh -D.
    let asked = [&[4, 1, 1, 187, 10, 213, 8, 2, 0][..], b"\x04\x01\x01\xbb\x00\x00\x00\x01\x0010.213.8.2\x00"];
    let (client, server) = hello();
    for asked in asked {
        let talk = said(&[asked, &[0, 90, 0, 0, 0, 0, 0, 0], &client, &server]);
        assert_eq!(kinds(&talk), [Kind::SocksRequest, Kind::TlsHello]);
        assert_eq!(kinds(&said(&[asked, &[0, 91, 0, 0, 0, 0, 0, 0]])), [Kind::SocksGreeting]);
        assert_eq!(kinds(&said(&[asked, &[0, 90]])), [Kind::Turn], "too short for a reply");
    }
}

#[test]
fn what_only_begins_like_socks_is_a_turn() {
    let bind = [&[5, 0, 11, 3, 16, 0, 0, 0][..], &[0; 64]].concat();
    let answer = [&[5, 0, 12, 3, 16, 0, 0, 0][..], &[0; 44]].concat();
    for turns in [
        [&bind[..], &answer],                                           // DCE/RPC
        [CURL_GREETS, &[5, 2]],                                         // a method that was not offered
        [CURL_GREETS, &[5, 0, 0]],                                      // an answer that goes on
        [&[5, 2, 0, 1, 9][..], CHOSEN],                                 // a question that goes on
        [&[5, 0][..], CHOSEN],                                          // no method
        [&[4, 1, 1, 187, 10, 0, 0, 2][..], &[0, 90, 0, 0, 0, 0, 0, 0]], // no user name
        [&[4, 1, 1, 187, 10, 0, 0, 2, 0][..], &[4, 90, 0, 0, 0, 0, 0, 0]],
        [&[4, 1, 1, 187, 10, 0, 0, 2, 0, 7][..], &[0, 90, 0, 0, 0, 0, 0, 0]], // goes on behind the name
        [&[4, 1, 1, 187, 0, 0, 0, 1, 0][..], &[0, 90, 0, 0, 0, 0, 0, 0]],     // no name of a host
        [&[4, 1, 1, 187, 0, 0, 0, 1, 0, b'a'][..], &[0, 90, 0, 0, 0, 0, 0, 0]],
    ] {
        assert_eq!(kinds(&said(&turns)), [Kind::Turn], "{turns:?}");
    }
    let talk = said(&[b"hello", b"world", CURL_GREETS, CHOSEN]);
    assert_eq!(kinds(&talk), [Kind::Turn, Kind::Turn], "later in a connection");
}

#[test]
fn what_a_tunnel_carries_is_recognised() {
    // curl 7.88 through tinyproxy 1.11.
    let asked = b"CONNECT 10.213.8.2:443 HTTP/1.1\r\nHost: 10.213.8.2:443\r\nUser-Agent: curl/7.88.1\r\n\r\n";
    let opened = b"HTTP/1.0 200 Connection established\r\nProxy-agent: tinyproxy/1.11.1\r\n\r\n";
    let (client, server) = hello();
    let talk = said(&[asked, opened, &client, &server]);
    assert_eq!(kinds(&talk), [Kind::ProxyConnect, Kind::TlsHello]);
    let challenged = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
    let talk = said(&[asked, challenged, asked, opened, &client, &server]);
    assert_eq!(kinds(&talk), [Kind::HttpRequest, Kind::ProxyConnect, Kind::TlsHello]);
}

#[test]
fn kinds_are_the_same_where_160_bytes_were_captured() {
    let (client, server) = hello();
    for turns in [
        [CURL_GREETS, CHOSEN, ASKED, GRANTED, &client, &server],
        [b"CONNECT a:443 HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n", &client, &server, b"", b""],
    ] {
        let talk = said(&turns[..turns.iter().position(|said| said.is_empty()).unwrap_or(turns.len())]);
        let mut cut = said(&[]);
        cut.kept_bytes = 160 - 66;
        for (place, bytes) in (0_u8..).zip(turns).filter(|(_, bytes)| !bytes.is_empty()) {
            cut.say(if place % 2 == 0 { CLIENT } else { SERVER }, 10 * (i64::from(place) + 1), bytes);
        }
        assert_eq!(kinds(&talk), kinds(&cut));
    }
}

#[test]
fn a_header_of_the_proxy_protocol_is_named() {
    let header = b"PROXY TCP4 192.0.2.7 10.213.8.2 56324 443\r\n";
    let (client, server) = hello();
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 10, header).say(CLIENT, 11, &client).say(SERVER, 20, &server);
    assert_eq!(kinds(&talk), [Kind::ProxyHeader]);
    let talk = said(&[&[&header[..], b"GET / HTTP/1.1\r\n"].concat(), b"HTTP/1.1 200 OK\r\n"]);
    assert_eq!(kinds(&talk), [Kind::ProxyHeader]);
}

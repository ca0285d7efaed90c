//! Conversations in which a side speaks by itself, written as scripts.

mod conversation;

use conversation::{record, Conversation, CLIENT, SERVER};
use pepscope_evidence::exchanges::Kind;

const MS: i64 = 1_000_000;

fn kinds(talk: &Conversation) -> Vec<(u8, Kind)> {
    let found = talk.exchanges().exchanges;
    found.asked.iter().zip(&found.kind).map(|(&asked, &kind)| (asked, Kind::ALL[usize::from(kind)])).collect()
}

fn message(bytes: usize) -> Vec<u8> {
    record(23, &vec![0xdd; bytes])
}

/// Hellos and Finished, then calls of the client, each answered 40 ms later, as the Finished is; in between the server
/// sends what it likes.
fn encrypted(between: &[&[u8]]) -> Conversation {
    let hello = |kind: u8| record(22, &[&[kind, 0, 0, 46, 3, 3][..], &[7; 44]].concat());
    let mut talk = Conversation::opened();
    talk.say(CLIENT, 0, &hello(1)).say(SERVER, 40 * MS, &[hello(2), record(20, &[1]), message(900)].concat());
    talk.say(CLIENT, 41 * MS, &[record(20, &[1]), message(53)].concat()).say(SERVER, 81 * MS, &message(300));
    for turn in 1..5 {
        let asked_ns = turn * 1000 * MS;
        talk.say(CLIENT, asked_ns, &message(150)).say(SERVER, asked_ns + 40 * MS, &message(400));
        for (place, bytes) in (1..).zip(between) {
            talk.say(SERVER, asked_ns + (40 + 200 * place) * MS, bytes);
        }
    }
    talk
}

#[test]
fn what_a_server_sends_unasked_may_precede_its_answers() {
    let calls = |talk: &Conversation, kind| kinds(talk).iter().filter(|&&found| found == (0, kind)).count();
    assert_eq!(calls(&encrypted(&[]), Kind::TlsData), 5);
    let pushed = encrypted(&[&message(160), &message(170)]);
    assert_eq!((calls(&pushed, Kind::TlsData), calls(&pushed, Kind::Unasked)), (0, 5));
    assert_eq!(kinds(&pushed)[..2], [(0, Kind::TlsHello), (1, Kind::TlsFinished)], "handshakes stay");
    let ping = record(23, &[0xdd; 17 + 17]);
    assert_eq!(calls(&encrypted(&[&ping, &ping]), Kind::TlsData), 5, "frames of HTTP/2 that ask for nothing");
}

#[test]
fn requests_of_text_are_answered_whatever_comes_between() {
    let mut talk = Conversation::opened();
    for turn in 0..4 {
        let asked_ns = turn * 1000 * MS;
        talk.say(CLIENT, asked_ns, b"GET / HTTP/1.1\r\n\r\n");
        talk.say(SERVER, asked_ns + 40 * MS, b"HTTP/1.1 200 OK\r\n\r\n");
        talk.say(SERVER, asked_ns + 300 * MS, b"more");
    }
    assert!(kinds(&talk).iter().all(|&(_, kind)| kind != Kind::Unasked));
}

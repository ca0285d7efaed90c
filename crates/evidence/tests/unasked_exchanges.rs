//! Conversations in which a side speaks by itself, written as scripts.

use crate::conversation::{record, Conversation, CLIENT, SERVER};
use pepscope_evidence::exchanges::Kind;
use pepscope_evidence::packets::flag;

const MS: i64 = 1_000_000;

fn kinds(talk: &Conversation) -> Vec<(u8, Kind)> {
    let found = talk.exchanges().exchanges;
    found.asked.iter().zip(&found.kind).map(|(&asked, &kind)| (asked, Kind::ALL[usize::from(kind)])).collect()
}

/// Each thing that is said is pushed.
fn opened() -> Conversation {
    let mut talk = Conversation::opened();
    talk.flags = flag::ACK | flag::PSH;
    talk
}

fn message(bytes: usize) -> Vec<u8> {
    record(23, &vec![0xdd; bytes])
}

/// Hellos, Finished and tickets, then calls of the client, each answered 40 ms later; in between the server
/// sends what it likes.
fn encrypted(between: &[&[u8]]) -> Conversation {
    encrypted_since(&[&message(300)], between)
}

/// As `encrypted`, with what the server says behind the client's Finished.
fn encrypted_since(finished: &[&[u8]], between: &[&[u8]]) -> Conversation {
    let hello = |kind: u8| match kind {
        // Session, suite, compression, and TLS 1.3 as the version that is chosen.
        2 => record(22, &[&[2, 0, 0, 46, 3, 3][..], &[7; 32], &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat()),
        _ => record(22, &[&[kind, 0, 0, 46, 3, 3][..], &[7; 44]].concat()),
    };
    let mut talk = opened();
    talk.say(CLIENT, 0, &hello(1)).say(SERVER, 40 * MS, &[hello(2), record(20, &[1]), message(900)].concat());
    talk.say(CLIENT, 41 * MS, &[record(20, &[1]), message(53)].concat());
    for (place, bytes) in (0..).zip(finished) {
        talk.say(SERVER, (81 + 200 * place) * MS, bytes);
    }
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
    assert_eq!(calls(&encrypted(&[]), Kind::TlsData), 4);
    let pushed = encrypted(&[&message(160), &message(170)]);
    assert_eq!((calls(&pushed, Kind::TlsData), calls(&pushed, Kind::Unasked)), (0, 4));
    assert_eq!(kinds(&pushed)[..2], [(0, Kind::TlsHello), (1, Kind::TlsFinished)], "handshakes stay");
    let ping = record(23, &[0xdd; 17 + 17]);
    assert_eq!(calls(&encrypted(&[&ping, &ping]), Kind::TlsData), 4, "frames of HTTP/2 that ask for nothing");
}

#[test]
fn pieces_of_a_record_are_one_word() {
    let answered_by = |pieces: [&[u8]; 3]| {
        let mut talk = encrypted(&[]);
        for turn in 5..9 {
            talk.say(CLIENT, turn * 1000 * MS, &message(150));
            for (place, bytes) in (0..).zip(pieces) {
                talk.say(SERVER, (turn * 1000 + 40 + 200 * place) * MS, bytes);
            }
        }
        kinds(&talk).iter().any(|&(_, kind)| kind == Kind::Unasked)
    };
    let page = message(3000);
    assert!(!answered_by([&page[..700], &page[700..1600], &page[1600..]]));
    assert!(answered_by([&message(700), &message(900), &message(1100)]));
}

#[test]
fn tickets_come_before_the_answer() {
    let mut talk = encrypted_since(&[&message(250), &message(900)], &[]);
    talk.say(SERVER, 5500 * MS, &message(300));
    assert!(kinds(&talk).iter().all(|&(_, kind)| kind != Kind::Unasked), "said unasked once");
    talk.say(SERVER, 5900 * MS, &message(300));
    assert!(kinds(&talk).iter().any(|&(_, kind)| kind == Kind::Unasked));
}

#[test]
fn requests_of_text_are_answered_whatever_comes_between() {
    let mut talk = opened();
    for turn in 0..4 {
        let asked_ns = turn * 1000 * MS;
        talk.say(CLIENT, asked_ns, b"GET / HTTP/1.1\r\n\r\n");
        talk.say(SERVER, asked_ns + 40 * MS, b"HTTP/1.1 200 OK\r\n\r\n");
        talk.say(SERVER, asked_ns + 300 * MS, b"more");
    }
    assert!(kinds(&talk).iter().all(|&(_, kind)| kind != Kind::Unasked));
}

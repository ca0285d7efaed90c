//! What application speaks in an exchange, as far as the captured bytes show it.

use super::http2;
use super::kind::Kind;
use super::proxy_requests;
use super::socks;
use super::stream::Stream;
use super::text;
use super::tls_turns::Encrypted;
use super::turns::Turn;
use super::unasked::UnaskedWords;
use crate::packets::{flag, Packets};
use std::collections::BTreeSet;

/// The SYN is looked for in so many first packets.
const OPENING_PACKETS: usize = 64;

/// Shorter beginnings show no protocol: the header of a TLS record, and the shortest word of a protocol of text.
const TELLING_BYTES: i64 = 5;

/// Kind of each of a connection's turns, and whether it is strict: its answer cannot wait for a person and needs the
/// question's end.
pub(super) fn classify<'a>(
    packets: &Packets<'_>,
    payload: [impl Iterator<Item = (i64, &'a [u8])>; 2],
    turns: &[Turn],
    server_port: impl Fn() -> Option<u16>,
) -> Vec<(Kind, bool)> {
    if turns.is_empty() {
        return Vec::new();
    }
    let streams = payload.map(Stream::of);
    let encrypted = Encrypted::of(&streams);
    let opened = packets.flags.iter().take(OPENING_PACKETS).any(|&flags| flags & flag::SYN != 0);
    let has_banner = text::is_banner(streams[1].bytes_at(0));
    let preface = http2::preface_offset(&streams[0], turns);
    let socks = socks::kinds(&streams, turns);
    let of = |turn: &Turn| {
        let (kind, strict) = match &encrypted {
            _ if begins_by_proxy(turn, &streams) => (Kind::ProxyHeader, false),
            Some(encrypted) if encrypted.has(turn) => encrypted.kind(turn),
            _ if preface.is_some_and(|offset| is_http2_control(turn, &streams, offset)) => (Kind::Http2Control, false),
            _ => plain_kind(turn, &streams, opened, has_banner, &server_port),
        };
        (kind, strict && !turn.crossed)
    };
    let mut kinds: Vec<_> = turns.iter().map(of).collect();
    for (place, kind) in socks {
        if let Some(cell) = kinds.get_mut(place) {
            *cell = (kind, false);
        }
    }
    let is_control = |way: usize, offset| {
        encrypted.as_ref().is_some_and(|encrypted| encrypted.is_control_at(way, offset))
            || preface.is_some() && http2::are_control_frames(streams[way].bytes_at(offset))
    };
    let goes_on = |way, offset| encrypted.as_ref().is_some_and(|encrypted| encrypted.goes_on_at(way, offset));
    leave_unasked(packets, &mut kinds, turns, is_control, goes_on);
    kinds
}

/// Whether an exchange of this kind is nothing but taking turns: that its answer belongs to its question is not seen.
fn is_conversation(kind: Kind) -> bool {
    matches!(kind, Kind::TlsData | Kind::Turn | Kind::Unread | Kind::Command)
}

/// Exchanges that something else may precede, since a side speaks by itself, are `Unasked`. Answers of other
/// kinds are no words of a conversation: they show what they answer or, as session tickets do, come before the answer.
fn leave_unasked(
    packets: &Packets<'_>,
    kinds: &mut [(Kind, bool)],
    turns: &[Turn],
    is_control: impl Fn(usize, i64) -> bool,
    goes_on: impl Fn(usize, i64) -> bool,
) {
    if !kinds.iter().any(|&(kind, _)| is_conversation(kind)) {
        return;
    }
    let known = turns.iter().zip(&*kinds).filter(|(_, (kind, _))| !is_conversation(*kind));
    let known_answers: BTreeSet<_> = known.map(|(turn, _)| (1 - turn.asked, turn.answer_offset)).collect();
    let are_words = |way: usize, offset| !known_answers.contains(&(way as u8, offset)) && !is_control(way, offset);
    let unasked = UnaskedWords::of(packets, are_words, goes_on);
    for asked in [0, 1] {
        let talk = turns.iter().zip(&*kinds).filter(|(turn, (kind, _))| turn.asked == asked && is_conversation(*kind));
        if unasked.precede(talk.map(|(turn, _)| turn)) {
            for (_, kind) in turns.iter().zip(kinds.iter_mut()).filter(|(turn, _)| turn.asked == asked) {
                if is_conversation(kind.0) {
                    *kind = (Kind::Unasked, false);
                }
            }
        }
    }
}

/// Whether a question or its answer is control frames alone. The preface itself answers an upgrade, and is causal.
fn is_http2_control(turn: &Turn, streams: &[Stream<'_>; 2], preface_offset: i64) -> bool {
    let is_behind = match turn.asked {
        0 => turn.question_offset >= preface_offset,
        _ => turn.answer_offset > preface_offset,
    };
    is_behind && spoken(turn, streams).iter().any(|bytes| http2::are_control_frames(bytes))
}

/// Captured bytes from where the question and the answer begin.
fn spoken<'a>(turn: &Turn, streams: &[Stream<'a>; 2]) -> [&'a [u8]; 2] {
    let [asking, answering] = if turn.asked == 0 { [0, 1] } else { [1, 0] }.map(|way: usize| &streams[way]);
    [asking.bytes_at(turn.question_offset), answering.bytes_at(turn.answer_offset)]
}

/// Whether a question is the header of a proxy, which TLS may follow at once.
fn begins_by_proxy(turn: &Turn, streams: &[Stream<'_>; 2]) -> bool {
    turn.asked == 0 && turn.question_offset == 0 && proxy_requests::is_proxy_header(streams[0].bytes_at(0))
}

/// Kind of an exchange that is not encrypted.
fn plain_kind(
    turn: &Turn,
    streams: &[Stream<'_>; 2],
    opened: bool,
    has_banner: bool,
    server_port: impl Fn() -> Option<u16>,
) -> (Kind, bool) {
    let [question, answer] = spoken(turn, streams);
    if turn.asked == 0 {
        let answers = answer.is_empty() || text::is_http_response(answer);
        if text::is_http_request(question) && answers {
            return proxy_requests::kind(question, answer, server_port);
        }
    } else {
        if text::is_http_request(answer) && !has_banner && (turn.question_offset > 0 || turn.answer_offset > 0) {
            return (Kind::HttpNextRequest, false);
        }
        if turn.question_offset == 0 && turn.answer_offset == 0 && (opened || text::is_banner(question)) {
            return (Kind::Greeting, text::is_banner(question) && text::is_mail_greeting(answer));
        }
    }
    let replies = turn.asked == 0 && !opened && text::is_reply(answer);
    let lines = (has_banner || replies) && text::is_text(question) && text::is_text(answer);
    let unread = is_unread(question, turn.question_bytes) && is_unread(answer, turn.answer_bytes);
    let other = if unread { Kind::Unread } else { Kind::Turn };
    (if lines { Kind::Command } else { other }, false)
}

/// Whether too little was captured of what one side said, `said_bytes` long.
fn is_unread(captured: &[u8], said_bytes: i64) -> bool {
    (captured.len() as i64) < said_bytes.min(TELLING_BYTES)
}

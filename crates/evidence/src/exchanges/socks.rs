//! Which exchanges a client has with a SOCKS proxy (RFC 1928; version 4 and 4a), before what they ask for begins.

use super::kind::Kind;
use super::stream::Stream;
use super::turns::Turn;

const VERSION_5: u8 = 5;
const VERSION_4: u8 = 4;
/// Version of the authentication by name and password (RFC 1929).
const AUTHENTICATION: u8 = 1;
/// CONNECT, BIND and, in version 5, UDP ASSOCIATE.
const COMMANDS: std::ops::RangeInclusive<u8> = 1..=3;
/// Replies of version 4: granted, and three sorts of refusals.
const REPLIES_OF_4: std::ops::RangeInclusive<u8> = 90..=93;
const GRANTED_BY_4: u8 = 90;
/// Bytes of a version 4 request before the user's name.
const HEAD_OF_4: usize = 8;
/// A greeting, authentication in several steps (RFC 1961), and a request.
const EXCHANGES_AT_MOST: usize = 8;

/// The exchanges with a SOCKS proxy, by their places; none where the first one is none.
pub(super) fn kinds(streams: &[Stream<'_>; 2], turns: &[Turn]) -> Vec<(usize, Kind)> {
    let mut found = Vec::new();
    if !matches!(streams[0].bytes_at(0).first(), Some(&(VERSION_4 | VERSION_5))) {
        return found;
    }
    let of_client = turns.iter().enumerate().filter(|(_, turn)| turn.asked == 0);
    for (place, turn) in of_client.take(EXCHANGES_AT_MOST) {
        let said = Said::of(turn, streams);
        let kind = match found.first() {
            None if turn.question_offset != 0 || turn.answer_offset != 0 => None,
            None => said.greeting().or_else(|| said.request_of_4()),
            Some(_) => said.request_of_5().or_else(|| said.authentication()),
        };
        let Some(kind) = kind else { break };
        found.push((place, kind));
        if kind == Kind::SocksRequest {
            break;
        }
    }
    found
}

/// What was said in an exchange, and how long question and answer are.
struct Said<'a> {
    question: &'a [u8],
    answer: &'a [u8],
    question_bytes: i64,
    answer_bytes: i64,
}

impl<'a> Said<'a> {
    fn of(turn: &Turn, streams: &[Stream<'a>; 2]) -> Self {
        Said {
            question: streams[0].bytes_at(turn.question_offset),
            answer: streams[1].bytes_at(turn.answer_offset),
            question_bytes: turn.question_bytes,
            answer_bytes: turn.answer_bytes,
        }
    }

    /// Methods of authentication and the choice among them, which the request may follow without waiting.
    fn greeting(&self) -> Option<Kind> {
        let [VERSION_5, count, rest @ ..] = self.question else { return None };
        let [VERSION_5, chosen, ..] = self.answer else { return None };
        let (methods, behind) = rest.split_at_checked(usize::from(*count))?;
        let is_alone = self.question_bytes == 2 + i64::from(*count) && self.answer_bytes == 2;
        let is_followed = matches!(behind, [VERSION_5, command, 0, ..] if COMMANDS.contains(command));
        let is_chosen = methods.contains(chosen) || *chosen == u8::MAX;
        (!methods.is_empty() && is_chosen && (is_alone || is_followed)).then_some(Kind::SocksGreeting)
    }

    fn authentication(&self) -> Option<Kind> {
        let is_answered = matches!(self.answer, [AUTHENTICATION, _, ..]);
        (self.question.first() == Some(&AUTHENTICATION) && is_answered).then_some(Kind::SocksGreeting)
    }

    fn request_of_5(&self) -> Option<Kind> {
        let [VERSION_5, command, 0, kind, ..] = self.question else { return None };
        let [VERSION_5, reply, 0, ..] = self.answer else { return None };
        let is_request = COMMANDS.contains(command) && matches!(kind, 1 | 3 | 4);
        is_request.then_some(if *reply == 0 { Kind::SocksRequest } else { Kind::SocksGreeting })
    }

    /// A request whose user name ends, with a reply of version 0.
    fn request_of_4(&self) -> Option<Kind> {
        let [VERSION_4, 1 | 2, ..] = self.question else { return None };
        let [0, reply, ..] = self.answer else { return None };
        let ends = self.question.get(HEAD_OF_4..).is_some_and(|name| name.contains(&0));
        let is_reply = REPLIES_OF_4.contains(reply) && self.answer_bytes >= HEAD_OF_4 as i64;
        let kind = if *reply == GRANTED_BY_4 { Kind::SocksRequest } else { Kind::SocksGreeting };
        (ends && is_reply).then_some(kind)
    }
}

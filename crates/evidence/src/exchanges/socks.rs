//! Which exchanges a client has with a SOCKS proxy (RFC 1928; version 4 and 4a), before what they ask for begins.

use super::kind::Kind;
use super::stream::Stream;
use super::turns::Turn;

const VERSION_5: u8 = 5;
const VERSION_4: u8 = 4;
/// Version of the authentication by name and password (RFC 1929).
const AUTHENTICATION: u8 = 1;
/// CONNECT and BIND, which lead to a connection of the proxy's own.
const CONNECTING: std::ops::RangeInclusive<u8> = 1..=2;
/// The same and, in version 5, UDP ASSOCIATE: what the proxy then passes on goes beside this connection.
const COMMANDS: std::ops::RangeInclusive<u8> = 1..=3;
/// No method of authentication is acceptable: the client has to close the connection.
const NO_METHOD: u8 = u8::MAX;
/// Replies of version 4: granted, and three sorts of refusals.
const REPLIES_OF_4: std::ops::RangeInclusive<u8> = 90..=93;
const GRANTED_BY_4: u8 = 90;
/// Bytes of a version 4 request before the user's name.
const HEAD_OF_4: usize = 8;
/// A greeting, authentication in several steps (RFC 1961), and a request.
const EXCHANGES_AT_MOST: usize = 8;

/// The exchanges with a SOCKS proxy, by their places; none where the first one is none, or where the client goes on in
/// another way than SOCKS has it.
pub(super) fn kinds(streams: &[Stream<'_>; 2], turns: &[Turn]) -> Vec<(usize, Kind)> {
    let mut found = Vec::new();
    if !matches!(streams[0].bytes_at(0).first(), Some(&(VERSION_4 | VERSION_5))) {
        return found;
    }
    let of_client = turns.iter().enumerate().filter(|(_, turn)| turn.asked == 0);
    let mut has_asked = false;
    for (place, turn) in of_client.take(EXCHANGES_AT_MOST) {
        let said = Said::of(turn, streams);
        let kind = match found.first() {
            None if turn.question_offset != 0 || turn.answer_offset != 0 => None,
            None => said.greeting().or_else(|| said.request_of_4()),
            Some(_) => said.request_of_5().or_else(|| said.authentication()),
        };
        let Some(kind) = kind else {
            // By chance other protocols begin like a greeting; none goes on with a request.
            if !has_asked {
                found.clear();
            }
            break;
        };
        found.push((place, kind));
        if kind == Kind::SocksRequest {
            break;
        }
        has_asked = said.holds_request();
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
        let behind = self.behind_methods()?;
        let [VERSION_5, chosen, ..] = self.answer else { return None };
        let methods = &self.question[2..self.question.len() - behind.len()];
        let is_alone = self.question_bytes == 2 + methods.len() as i64 && self.answer_bytes == 2;
        let is_chosen = methods.contains(chosen) || *chosen == NO_METHOD;
        (!methods.is_empty() && is_chosen && (is_alone || begins_request(behind))).then_some(Kind::SocksGreeting)
    }

    fn authentication(&self) -> Option<Kind> {
        let is_answered = matches!(self.answer, [AUTHENTICATION, _, ..]);
        (self.question.first() == Some(&AUTHENTICATION) && is_answered).then_some(Kind::SocksGreeting)
    }

    /// Whether a request that asks for a connection follows a greeting, or authentication by name and password, of which
    /// neither was refused.
    fn holds_request(&self) -> bool {
        let behind = match self.answer {
            [VERSION_5, chosen, ..] if *chosen != NO_METHOD => self.behind_methods(),
            [AUTHENTICATION, 0, ..] => self.behind_password(),
            _ => None,
        };
        behind.is_some_and(begins_request)
    }

    /// What stands behind the methods of a greeting.
    fn behind_methods(&self) -> Option<&'a [u8]> {
        let [VERSION_5, count, rest @ ..] = self.question else { return None };
        rest.get(usize::from(*count)..)
    }

    /// What stands behind the name and the password of an authentication (RFC 1929, section 2).
    fn behind_password(&self) -> Option<&'a [u8]> {
        let [AUTHENTICATION, length, rest @ ..] = self.question else { return None };
        let [length, rest @ ..] = rest.get(usize::from(*length)..)? else { return None };
        rest.get(usize::from(*length)..)
    }

    fn request_of_5(&self) -> Option<Kind> {
        let [VERSION_5, command, 0, kind, ..] = self.question else { return None };
        let [VERSION_5, reply, 0, ..] = self.answer else { return None };
        if !COMMANDS.contains(command) || !matches!(kind, 1 | 3 | 4) {
            return None;
        }
        let is_granted = *reply == 0 && CONNECTING.contains(command);
        Some(if is_granted { Kind::SocksRequest } else { Kind::SocksGreeting })
    }

    /// A request that ends with the user's name or, in version 4a, the host's, with a reply of version 0.
    fn request_of_4(&self) -> Option<Kind> {
        let [VERSION_4, 1 | 2, _, _, address @ ..] = self.question else { return None };
        let (address, names) = address.split_first_chunk::<4>()?;
        let [0, reply, ..] = self.answer else { return None };
        let names_host = matches!(address, [0, 0, 0, last] if *last != 0);
        let mut ends = names.iter().enumerate().filter(|(_, &byte)| byte == 0).map(|(place, _)| place);
        let end = ends.nth(usize::from(names_host))?;
        let is_whole = self.question_bytes == (HEAD_OF_4 + end + 1) as i64;
        let is_reply = REPLIES_OF_4.contains(reply) && self.answer_bytes >= HEAD_OF_4 as i64;
        let kind = if *reply == GRANTED_BY_4 { Kind::SocksRequest } else { Kind::SocksGreeting };
        (is_whole && is_reply).then_some(kind)
    }
}

/// Whether a request begins here that asks for a connection.
fn begins_request(bytes: &[u8]) -> bool {
    matches!(bytes, [VERSION_5, command, 0, ..] if CONNECTING.contains(command))
}

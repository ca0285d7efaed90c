//! ICMP echo (RFC 792): round trips that nothing on the way can shorten for TCP's sake.

use pepscope_path::{Nanoseconds, MICROSECOND, NEVER, SECOND};
use pepscope_tcp::{Action, Message, Piece, Protocol, Role, Write};

use crate::agenda::Agenda;

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const HEADER_BYTES: usize = 8;
/// The time at which a request left, as Linux's ping writes it: seconds and microseconds, eight bytes each.
const TIME_BYTES: usize = 16;
const SEQUENCE_BITS: u32 = 16;

/// Of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingSettings {
    pub identifier: u16,
    pub count: u16,
    pub interval_ns: Nanoseconds,
    /// Behind the ICMP header.
    pub payload_bytes: u16,
    /// How long the client waits for the last reply.
    pub patience_ns: Nanoseconds,
}

/// One end: the client asks, the server's kernel repeats.
#[derive(Debug)]
pub struct Ping {
    settings: PingSettings,
    role: Role,
    agenda: Agenda,
    sent: u16,
    replies: u16,
    next_ns: Nanoseconds,
    ends_ns: Nanoseconds,
}

impl Ping {
    #[must_use]
    pub fn new(settings: PingSettings, role: Role) -> Self {
        let agenda = Agenda::default();
        Self { settings, role, agenda, sent: 0, replies: 0, next_ns: NEVER, ends_ns: NEVER }
    }

    /// A message of `kind`: header, the time of the request, and bytes that count up.
    fn message(&self, kind: u8, sequence: u16, time_us: u64) -> Write {
        let bytes = HEADER_BYTES + usize::from(self.settings.payload_bytes);
        let mut message = vec![kind, 0, 0, 0];
        message.extend(self.settings.identifier.to_be_bytes());
        message.extend(sequence.to_be_bytes());
        message.extend((time_us / 1_000_000).to_le_bytes());
        message.extend((time_us % 1_000_000).to_le_bytes());
        message.extend((message.len()..bytes).map(|place| (place - HEADER_BYTES) as u8));
        let checksum = checksum(&message).to_be_bytes();
        message[2..4].copy_from_slice(&checksum);
        let name = format!("echo {} {sequence}", if kind == ECHO_REQUEST { "request" } else { "reply" });
        let number = time_us << SEQUENCE_BITS | u64::from(sequence);
        Write::new(vec![Piece::Literal(message)], Message { name, number, answer_bytes: 0 })
    }
}

/// RFC 1071.
fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

impl Protocol for Ping {
    fn handle_connected(&mut self, now: Nanoseconds) {
        self.next_ns = now;
    }

    fn handle_message(&mut self, now: Nanoseconds, message: Message) {
        let (sequence, time_us) = (message.number as u16, message.number >> SEQUENCE_BITS);
        if self.role == Role::Server {
            let reply = self.message(ECHO_REPLY, sequence, time_us);
            self.agenda.write(now, reply);
            return;
        }
        self.replies += 1;
        if self.replies == self.settings.count {
            self.ends_ns = now;
        }
    }

    fn handle_peer_finished(&mut self, _now: Nanoseconds) {}

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_timeout(&self) -> Nanoseconds {
        self.agenda.next_time().min(self.next_ns).min(self.ends_ns)
    }

    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action> {
        if now >= self.ends_ns {
            return Some(Action::Close);
        }
        if let Some(action) = self.agenda.pop(now) {
            return Some(action);
        }
        if now < self.next_ns {
            return None;
        }
        self.sent += 1;
        self.next_ns = now.saturating_add(self.settings.interval_ns.max(1));
        if self.sent == self.settings.count {
            self.next_ns = NEVER;
            self.ends_ns = now.saturating_add(self.settings.patience_ns);
        }
        Some(Action::Write(self.message(ECHO_REQUEST, self.sent, now / MICROSECOND)))
    }
}

/// The least that holds the time of the request.
pub const LEAST_PING_BYTES: u16 = TIME_BYTES as u16;
/// What Linux's ping sends.
pub const USUAL_PING_BYTES: u16 = 56;
pub const USUAL_PATIENCE_NS: Nanoseconds = 10 * SECOND;

#[cfg(test)]
mod tests {
    use super::{checksum, Ping, PingSettings};
    use pepscope_path::SECOND;
    use pepscope_tcp::{Action, Piece, Protocol, Role};

    #[test]
    fn a_reply_repeats_the_request() {
        let settings =
            PingSettings { identifier: 77, count: 2, interval_ns: SECOND, payload_bytes: 56, patience_ns: SECOND };
        let (mut client, mut server) = (Ping::new(settings, Role::Client), Ping::new(settings, Role::Server));
        client.handle_connected(5 * SECOND);
        for at in [5 * SECOND, 6 * SECOND] {
            assert_eq!(client.poll_timeout(), at);
            let Some(Action::Write(request)) = client.poll_action(at) else { panic!("a request is due") };
            server.handle_message(at, request.message.clone().expect("its message"));
            let Some(Action::Write(reply)) = server.poll_action(at) else { panic!("a reply is due") };
            let (Piece::Literal(asked), Piece::Literal(answered)) = (&request.pieces[0], &reply.pieces[0]) else {
                panic!("bytes")
            };
            assert_eq!((asked.len(), asked[0], answered[0]), (64, 8, 0));
            assert_eq!(asked[4..], answered[4..]);
            assert_eq!([checksum(asked), checksum(answered)], [0, 0]);
            client.handle_message(at, reply.message.expect("its message"));
        }
        assert_eq!(client.poll_action(6 * SECOND), Some(Action::Close));
    }
}

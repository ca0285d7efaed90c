//! A chat: short messages both ways at random times, each of which the other side confirms.

use pepscope_path::{Nanoseconds, Random, NEVER, SECOND};
use pepscope_tcp::{Action, Message, Piece, Protocol, Role, Write};

use crate::agenda::Agenda;

const TEXT: u64 = 1;
const RECEIPT: u64 = 2;

/// Of both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChatSettings {
    /// Mean of the exponential time between two messages of either side.
    pub gap_mean_s: f64,
    /// Lengths are uniform between these.
    pub least_bytes: u64,
    pub most_bytes: u64,
    pub receipt_bytes: u64,
    /// From a message to its receipt.
    pub receipt_after_ns: Nanoseconds,
    /// The client leaves so long after it is connected.
    pub duration_ns: Nanoseconds,
}

/// One end.
#[derive(Debug)]
pub struct Chat {
    settings: ChatSettings,
    role: Role,
    random: Random,
    agenda: Agenda,
    next_ns: Nanoseconds,
    leaves_ns: Nanoseconds,
    said: u64,
}

impl Chat {
    #[must_use]
    pub fn new(settings: ChatSettings, role: Role, random: Random) -> Self {
        let agenda = Agenda::default();
        Self { settings, role, random, agenda, next_ns: NEVER, leaves_ns: NEVER, said: 0 }
    }

    fn gap_ns(&mut self) -> Nanoseconds {
        (self.random.exponential(self.settings.gap_mean_s) * SECOND as f64) as Nanoseconds
    }

    fn text(&mut self) -> Write {
        let span = self.settings.most_bytes - self.settings.least_bytes + 1;
        let bytes = self.settings.least_bytes + (self.random.uniform() * span as f64) as u64;
        self.said += 1;
        let name = format!("text {}", self.said);
        Write::new(vec![Piece::Filler(bytes)], Message { name, number: TEXT, answer_bytes: 0 })
    }
}

impl Protocol for Chat {
    fn handle_connected(&mut self, now: Nanoseconds) {
        self.next_ns = now.saturating_add(self.gap_ns());
        if self.role == Role::Client {
            self.leaves_ns = now.saturating_add(self.settings.duration_ns);
        }
    }

    fn handle_message(&mut self, now: Nanoseconds, message: Message) {
        if message.number == TEXT {
            let receipt = Message { name: format!("receipt of {}", message.name), number: RECEIPT, answer_bytes: 0 };
            let pieces = vec![Piece::Filler(self.settings.receipt_bytes)];
            self.agenda.write(now.saturating_add(self.settings.receipt_after_ns), Write::new(pieces, receipt));
        }
    }

    fn handle_peer_finished(&mut self, now: Nanoseconds) {
        self.leaves_ns = now;
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_timeout(&self) -> Nanoseconds {
        self.agenda.next_time().min(self.next_ns).min(self.leaves_ns)
    }

    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action> {
        if now >= self.leaves_ns {
            return Some(Action::Close);
        }
        if let Some(action) = self.agenda.pop(now) {
            return Some(action);
        }
        if now < self.next_ns {
            return None;
        }
        self.next_ns = now.saturating_add(self.gap_ns().max(1));
        Some(Action::Write(self.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Chat, ChatSettings};
    use pepscope_path::{Random, MILLISECOND, SECOND};
    use pepscope_tcp::{Action, Message, Protocol, Role};

    const SETTINGS: ChatSettings = ChatSettings {
        gap_mean_s: 5.0,
        least_bytes: 20,
        most_bytes: 200,
        receipt_bytes: 40,
        receipt_after_ns: 3 * MILLISECOND,
        duration_ns: 10_000 * SECOND,
    };

    #[test]
    fn messages_come_at_the_mean_gap_until_the_client_leaves() {
        let mut chat = Chat::new(SETTINGS, Role::Client, Random::new(1, "chat"));
        chat.handle_connected(0);
        let mut written = 0;
        loop {
            let now = chat.poll_timeout();
            chat.handle_timeout(now);
            match chat.poll_action(now) {
                Some(Action::Write(write)) => {
                    assert!((20..=200).contains(&write.bytes()));
                    written += 1;
                }
                Some(Action::Close) => {
                    assert_eq!(now, SETTINGS.duration_ns);
                    break;
                }
                other => panic!("{other:?} at {now}"),
            }
        }
        // Poisson with mean 2000: five standard deviations are 224.
        assert!((1776..2224).contains(&written), "{written}");
    }

    #[test]
    fn a_text_is_confirmed_and_a_receipt_is_not() {
        let mut chat = Chat::new(SETTINGS, Role::Server, Random::new(1, "chat"));
        chat.handle_message(SECOND, Message { name: "text 1".to_owned(), number: 1, answer_bytes: 0 });
        chat.handle_message(SECOND, Message { name: "receipt".to_owned(), number: 2, answer_bytes: 0 });
        assert_eq!(chat.poll_timeout(), SECOND + 3 * MILLISECOND);
        assert!(matches!(chat.poll_action(chat.poll_timeout()), Some(Action::Write(write)) if write.bytes() == 40));
        assert_eq!(chat.poll_action(2 * SECOND), None);
    }
}

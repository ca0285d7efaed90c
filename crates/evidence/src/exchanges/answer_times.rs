//! How often one side was answered, and how soon.

use super::turns::find_turns;
use crate::packets::Packets;

/// Answers to one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerTimes {
    pub count: usize,
    /// Least time from the last byte of a question to the first of its answer.
    pub least_ns: Option<i64>,
}

impl Packets<'_> {
    /// The answers to questions in `asked`, without those that cannot be timed.
    pub fn answer_times(&self, asked: u8) -> AnswerTimes {
        let mut turns = Vec::new();
        find_turns(self, &mut turns);
        let timed = turns.iter().filter(|turn| turn.asked == asked && !turn.repeated);
        let took_ns = timed.map(|turn| turn.answered_ns.saturating_sub(turn.question_ns));
        AnswerTimes { count: took_ns.clone().count(), least_ns: took_ns.min() }
    }
}

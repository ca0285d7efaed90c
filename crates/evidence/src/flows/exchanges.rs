//! Questions and answers of an application, as one capture shows them.

use crate::packets::{flag, Packets};

/// Answers that acknowledge their question whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanges {
    pub count: usize,
    /// Least time from the last byte of a question to the first of its answer.
    pub least_ns: Option<i64>,
}

impl Packets<'_> {
    /// Questions in `asked` and the answers to them; data that follow data of the other direction begin a new question.
    pub fn exchanges(&self, asked: u8) -> Exchanges {
        let mut found = Exchanges::default();
        let mut question = None;
        for (place, &way) in self.direction.iter().enumerate() {
            if self.payload_bytes[place] == 0 || self.flags[place] & flag::SYN != 0 {
                continue;
            }
            if way == asked {
                question = Some(place);
                continue;
            }
            let Some(question) = question.take() else {
                continue;
            };
            let end = self.sequence_offset[question].saturating_add(i64::from(self.payload_bytes[question]));
            if self.acknowledgement_offset[place] >= end {
                let took_ns = self.time_ns[place].wrapping_sub(self.time_ns[question]);
                found.count += 1;
                found.least_ns = Some(found.least_ns.map_or(took_ns, |least_ns| least_ns.min(took_ns)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_acknowledges_its_question_whole() {
        let packets = Packets {
            time_ns: &[0, 10, 40, 50, 60, 90],
            direction: &[0, 0, 1, 1, 0, 1],
            sequence_offset: &[0, 10, 0, 5, 20, 10],
            acknowledgement_offset: &[0, 0, 20, 20, 10, 25],
            payload_bytes: &[10, 10, 5, 5, 10, 5],
            flags: &[flag::ACK; 6],
            ..Packets::default()
        };
        assert_eq!(packets.exchanges(0), Exchanges { count: 1, least_ns: Some(30) });
        assert_eq!(packets.exchanges(1), Exchanges { count: 1, least_ns: Some(10) });
    }
}

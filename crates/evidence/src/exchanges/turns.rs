//! Who speaks when: questions and answers from headers alone.
//!
//! A *question* is a run of new bytes of one side that no data of the other side interrupt. Its *answer* begins with
//! the other side's first packet that brings new bytes and acknowledges the question whole. Data of the other side that
//! do not acknowledge it whole left before it had arrived: the two crossed, and what the asker says next is a new
//! question. Unless the asker has by then heard the other side out, what follows may answer the older question.

use super::sent::{Sent, Sight};
use crate::packets::{flag, mark, Packets, NO_ACKNOWLEDGEMENT};

/// One exchange without its kind. Times are those of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Direction of the question.
    pub asked: u8,
    pub first: bool,
    pub repeated: bool,
    pub crossed: bool,
    pub question_ns: i64,
    pub acknowledged_ns: i64,
    pub answered_ns: i64,
    pub question_bytes: i64,
    pub answer_bytes: i64,
    pub question_span_ns: i64,
    pub flight_bytes: i64,
    pub idle_ns: i64,
    /// Stream offsets of the question's first byte, of the byte after its last, and of the answer's first.
    pub question_offset: i64,
    pub question_end: i64,
    pub answer_offset: i64,
}

/// A question in the making.
#[derive(Clone, Copy, Debug)]
struct Question {
    start: i64,
    end: i64,
    first_ns: i64,
    last_ns: i64,
    bytes: i64,
    flight_bytes: i64,
    idle_ns: i64,
    acknowledged_ns: Option<i64>,
    repeated: bool,
    crossed: bool,
    /// The other side has spoken since: what follows is another question.
    interrupted: bool,
}

#[derive(Clone, Debug, Default)]
struct Speaker {
    sent: Sent,
    /// Highest offset that the other side acknowledged.
    acknowledged: Option<i64>,
    question: Option<Question>,
    /// Place of the exchange whose answer this side is giving.
    answering: Option<usize>,
    has_asked: bool,
}

/// What one data packet brings.
#[derive(Clone, Copy)]
struct Speech {
    time_ns: i64,
    start: i64,
    end: i64,
    bytes: i64,
    acknowledgement: i64,
    idle_ns: i64,
    repeated: bool,
    gap: bool,
}

/// Whether new bytes of a packet belong to a question or an answer.
pub(super) fn is_speech(flags: u16, marks: u16) -> bool {
    flags & (flag::RST | flag::SYN) == 0 && marks & (mark::KEEP_ALIVE | mark::ZERO_WINDOW_PROBE) == 0
}

/// Appends the exchanges of a connection to `turns`, by the time of the answer.
///
/// Keep-alives, zero-window probes and resets are no questions and no answers, nor are data in a SYN (RFC 7413).
pub fn find_turns(packets: &Packets<'_>, turns: &mut Vec<Turn>) {
    let mut speakers = [Speaker::default(), Speaker::default()];
    let mut previous_ns = None;
    let base = turns.len();
    for place in 0..packets.len() {
        let (way, time_ns, flags) = (packets.direction[place], packets.time_ns[place], packets.flags[place]);
        if way > 1 || flags & flag::RST != 0 {
            continue;
        }
        let [first, second] = &mut speakers;
        let (own, other) = if way == 0 { (first, second) } else { (second, first) };
        let acknowledgement = packets.acknowledgement_offset[place];
        if acknowledgement != NO_ACKNOWLEDGEMENT {
            other.note_acknowledgement(acknowledgement, time_ns);
        }
        let idle_ns = previous_ns.map_or(-1, |previous_ns| time_ns.saturating_sub(previous_ns).max(0));
        previous_ns = Some(time_ns);
        let (length, marks) = (packets.payload_bytes[place], packets.marks[place]);
        if length == 0 || marks & (mark::KEEP_ALIVE | mark::ZERO_WINDOW_PROBE) != 0 {
            continue;
        }
        let syn = i64::from(flags & flag::SYN != 0);
        let start = packets.sequence_offset[place].saturating_add(syn);
        let end = start.saturating_add(i64::from(length));
        match own.sent.sight(start, end) {
            Sight::Stray => {}
            _ if !is_speech(flags, marks) => {}
            Sight::Copy => own.repeat(start, end, marks),
            Sight::New { first, bytes, gap } => {
                let repeated = marks & mark::RETRANSMISSION != 0;
                let speech = Speech { time_ns, start: first, end, bytes, acknowledgement, idle_ns, repeated, gap };
                speak(way, own, other, speech, base, turns);
            }
        }
    }
}

fn speak(way: u8, own: &mut Speaker, other: &mut Speaker, speech: Speech, base: usize, turns: &mut Vec<Turn>) {
    other.answering = None;
    let answers = other.question.is_some_and(|question| speech.acknowledgement >= question.end);
    match &mut other.question {
        Some(question) if answers => {
            own.answering = Some(turns.len());
            turns.push(Turn {
                asked: 1 - way,
                first: !std::mem::replace(&mut other.has_asked, true),
                repeated: question.repeated || speech.is_late() || question.is_cut(&speech),
                crossed: question.crossed,
                question_ns: question.last_ns,
                acknowledged_ns: question.acknowledged_ns.unwrap_or(speech.time_ns),
                answered_ns: speech.time_ns,
                question_bytes: question.bytes,
                answer_bytes: speech.bytes,
                question_span_ns: question.last_ns.saturating_sub(question.first_ns).max(0),
                flight_bytes: question.flight_bytes,
                idle_ns: question.idle_ns,
                question_offset: question.start,
                question_end: question.end,
                answer_offset: speech.start,
            });
            other.question = None;
        }
        answered => {
            if let Some(question) = answered {
                question.crossed = true;
                question.interrupted = true;
            }
            if let Some(turn) = own.answering.filter(|&place| place >= base).and_then(|place| turns.get_mut(place)) {
                turn.answer_bytes = turn.answer_bytes.saturating_add(speech.bytes);
            }
        }
    }
    own.ask(speech, answers);
}

impl Speech {
    /// Whether an earlier copy of it, or earlier bytes, may have come before.
    fn is_late(&self) -> bool {
        self.repeated || self.gap
    }
}

impl Question {
    /// Whether its end was not captured, as its answer acknowledges more (one more may be a FIN), or only after the
    /// answer, by a clock that went back.
    fn is_cut(&self, answer: &Speech) -> bool {
        answer.acknowledgement > self.end.saturating_add(1) || answer.time_ns < self.last_ns
    }
}

impl Speaker {
    fn note_acknowledgement(&mut self, offset: i64, time_ns: i64) {
        self.acknowledged = Some(self.acknowledged.map_or(offset, |reached| reached.max(offset)));
        if let Some(question) = &mut self.question {
            if offset >= question.end && question.acknowledged_ns.is_none() {
                question.acknowledged_ns = Some(time_ns);
            }
        }
    }

    /// Bytes of the question that were sent again; what the network or the capture doubled was not.
    fn repeat(&mut self, start: i64, end: i64, marks: u16) {
        if let Some(question) = &mut self.question {
            question.repeated |= marks & mark::DUPLICATE == 0 && start < question.end && end > question.start;
        }
    }

    /// New bytes begin a question or continue one.
    fn ask(&mut self, speech: Speech, answers: bool) {
        let unacknowledged = |end: i64, start: i64| end.saturating_sub(self.acknowledged.unwrap_or(start)).max(0);
        match &mut self.question {
            Some(question) if !question.interrupted => {
                question.repeated |= speech.repeated;
                question.bytes = question.bytes.saturating_add(speech.bytes);
                if speech.end > question.end {
                    question.end = speech.end;
                    question.last_ns = speech.time_ns;
                    question.acknowledged_ns = None;
                    question.flight_bytes = unacknowledged(speech.end, question.start);
                }
            }
            interrupted => {
                *interrupted = Some(Question {
                    start: speech.start,
                    end: speech.end,
                    first_ns: speech.time_ns,
                    last_ns: speech.time_ns,
                    bytes: speech.bytes,
                    flight_bytes: unacknowledged(speech.end, speech.start),
                    idle_ns: speech.idle_ns,
                    acknowledged_ns: None,
                    repeated: speech.repeated,
                    crossed: interrupted.is_some() && !answers,
                    interrupted: false,
                });
            }
        }
    }
}

//! Sides that speak by themselves: feeds of news and prices, chats, calls of a server, typed words that get no answer.
//!
//! Where one side says something that nothing asked for, the next words of either need not be an answer: they may come
//! sooner than an answer could, or any time later. Taking turns does not show that by itself. What shows it is a side
//! that speaks again after it had nothing more to say, later than answers usually come, though it has heard nothing new
//! since. So much may come before one of the answers: the rate of such words times what answers usually take.

use super::sent::{Sent, Sight};
use super::turns::{is_speech, Turn};
use crate::packets::{flag, mark, Packets};

/// Share of answers that something else may precede: as many as timing tables expect behind a hidden leg
/// (`UNASKED_SHARE` of `detector/one_capture/likelihoods/timing_tables.py`).
const PRECEDED_SHARE: f64 = 0.003;
/// No path has shorter full segments (RFC 9293, section 3.7.1), and few have longer ones.
const FULL_SEGMENT_BYTES: std::ops::RangeInclusive<u32> = 536..=1500;

/// How long each side was silent before it spoke again by itself, and how long the conversation took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnaskedWords {
    silences_ns: Vec<i64>,
    span_ns: i64,
}

impl UnaskedWords {
    /// Of a connection; `are_words` says of a direction and an offset whether what begins there may be part of a
    /// conversation. Control frames of a protocol are not, which wait for nothing. Behind frames of that length nothing
    /// counts as said unasked: a short request of HTTP/2 looks like them. `goes_on`: whether it is the midst of what began
    /// before.
    pub(super) fn of(
        packets: &Packets<'_>,
        are_words: impl Fn(usize, i64) -> bool,
        goes_on: impl Fn(usize, i64) -> bool,
    ) -> Self {
        let full_bytes = [0, 1].map(|way| full_segment_bytes(packets, way));
        let mut sent = [Sent::default(), Sent::default()];
        let mut found = UnaskedWords { silences_ns: Vec::new(), span_ns: span_ns(packets) };
        let mut last: Option<Word> = None;
        for place in 0..packets.len() {
            let (way, bytes, marks) = (packets.direction[place], packets.payload_bytes[place], packets.marks[place]);
            if bytes == 0 || way > 1 || !is_speech(packets.flags[place], marks) {
                continue;
            }
            let (way, time_ns, start) = (usize::from(way), packets.time_ns[place], packets.sequence_offset[place]);
            let Sight::New { first, gap, .. } = sent[way].sight(start, start.saturating_add(i64::from(bytes))) else {
                continue;
            };
            let is_pushed = packets.flags[place] & flag::PSH != 0;
            let is_late = gap || marks & mark::RETRANSMISSION != 0;
            let word = are_words(way, first).then_some(Word {
                way,
                time_ns,
                heard: packets.acknowledgement_offset[place],
                is_ended: is_pushed && full_bytes[way].is_none_or(|full| bytes % full != 0),
            });
            if let (Some(before), Some(again), false) = (last, word, is_late || goes_on(way, first)) {
                found.silences_ns.extend(again.silence_ns(&before));
            }
            last = word;
        }
        found
    }

    /// Whether more of these answers than a few may be preceded by something else. Where looking begins with the first
    /// such word, those behind it show how often they come (inverse sampling; Haldane 1945, 'On a method of estimating
    /// frequencies').
    pub(super) fn precede<'a>(&self, answers: impl Iterator<Item = &'a Turn>) -> bool {
        let timed = answers.filter(|turn| !turn.repeated && !turn.crossed);
        let mut took_ns: Vec<i64> = timed.map(|turn| turn.answered_ns.saturating_sub(turn.question_ns)).collect();
        if took_ns.is_empty() {
            return false;
        }
        let middle = took_ns.len() / 2;
        let (_, &mut usual_ns, _) = took_ns.select_nth_unstable(middle);
        let count = self.silences_ns.iter().filter(|&&silence_ns| silence_ns > usual_ns).count();
        count.saturating_sub(1) as f64 * usual_ns as f64 > PRECEDED_SHARE * self.span_ns as f64
    }
}

/// New bytes of one side.
#[derive(Clone, Copy)]
struct Word {
    way: usize,
    time_ns: i64,
    /// How far it acknowledges the other side.
    heard: i64,
    /// Whether its side then had nothing more to say: the last segment of what is to be sent is pushed (RFC 9293,
    /// section 3.9.1.2), and seldom full. What waits for a window, or for the network, goes on behind neither.
    is_ended: bool,
}

impl Word {
    /// How long its side was silent if it says this by itself. What acknowledges more than the word before may answer
    /// that, whether it crossed the word before or is missing in the capture.
    fn silence_ns(&self, before: &Word) -> Option<i64> {
        let is_unasked = before.way == self.way && before.is_ended && self.heard <= before.heard;
        is_unasked.then(|| self.time_ns.saturating_sub(before.time_ns))
    }
}

/// The payload of a side's full segments; `None` where it sent none. What a network card joined holds several.
fn full_segment_bytes(packets: &Packets<'_>, way: u8) -> Option<u32> {
    let own = packets.payload_bytes.iter().zip(packets.direction).filter(|(_, &direction)| direction == way);
    own.map(|(&bytes, _)| bytes).filter(|bytes| FULL_SEGMENT_BYTES.contains(bytes)).max()
}

fn span_ns(packets: &Packets<'_>) -> i64 {
    let times_ns = packets.time_ns;
    let ends = times_ns.first().zip(times_ns.last());
    ends.map_or(0, |(first_ns, last_ns)| last_ns.saturating_sub(*first_ns).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::find_turns;
    use crate::packets::flag;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    /// Packets as (millisecond, direction, bytes), with these flags: whether exchanges asked up and down may be preceded.
    fn preceded(
        packets: &[(i64, u8, u32)],
        flags: impl Fn(usize) -> u16,
        are_words: impl Fn(usize, i64) -> bool,
    ) -> [bool; 2] {
        let mut reached = [0_i64; 2];
        let mut columns = (Vec::new(), Vec::new());
        for &(_, way, bytes) in packets {
            let way = usize::from(way.min(1));
            columns.0.push(reached[way]);
            columns.1.push(reached[1 - way]);
            reached[way] += i64::from(bytes);
        }
        let packets = Packets {
            time_ns: &packets.iter().map(|packet| packet.0 * MS).collect::<Vec<_>>(),
            direction: &packets.iter().map(|packet| packet.1).collect::<Vec<_>>(),
            flags: &(0..packets.len()).map(flags).collect::<Vec<_>>(),
            marks: &vec![0; packets.len()],
            payload_bytes: &packets.iter().map(|packet| packet.2).collect::<Vec<_>>(),
            sequence_offset: &columns.0,
            acknowledgement_offset: &columns.1,
            ..Packets::default()
        };
        let mut turns = Vec::new();
        find_turns(&packets, &mut turns);
        let words = UnaskedWords::of(&packets, are_words, |_, _| false);
        [0, 1].map(|asked| words.precede(turns.iter().filter(|turn| turn.asked == asked)))
    }

    fn is_preceded(packets: &[(i64, u8, u32)]) -> [bool; 2] {
        preceded(packets, pushed, |_, _| true)
    }

    fn pushed(_: usize) -> u16 {
        flag::ACK | flag::PSH
    }

    #[test]
    fn a_side_that_speaks_again_before_it_is_asked_may_precede_its_answers() {
        let feed = [(0, 0, 90), (40, 1, 300), (190, 1, 300), (400, 1, 300), (900, 0, 90), (940, 1, 300)];
        assert_eq!(is_preceded(&feed), [true, false], "the client takes longer than the feed is silent");
        let asked = [(0, 0, 90), (40, 1, 300), (900, 0, 90), (940, 1, 300), (1900, 0, 90), (1940, 1, 300)];
        assert_eq!(is_preceded(&asked), [false, false], "turns are taken");
        let typed = [(0, 1, 90), (40, 0, 9), (200, 0, 9), (400, 0, 9), (500, 0, 9), (560, 1, 90), (600, 0, 9)];
        assert_eq!(is_preceded(&typed), [true, true], "what is said again gets no answer");
    }

    #[test]
    fn long_answers_are_one() {
        let page = [(0, 0, 90), (40, 1, 1448), (90, 1, 2896), (141, 1, 2896), (192, 1, 700), (940, 0, 700)];
        assert_eq!(is_preceded(&page), [false, false], "full segments wait for the window");
        let joined = [(0, 0, 90), (40, 1, 2896), (90, 1, 4344), (141, 1, 2896), (192, 1, 700), (940, 0, 700)];
        let flags = |place| if place == 4 { flag::ACK | flag::PSH } else { flag::ACK };
        assert_eq!(preceded(&joined, flags, |_, _| true), [false, false], "what is not pushed goes on");
        assert_eq!(is_preceded(&joined), [true, false]);
        let slow = [(0, 0, 90), (40, 1, 200), (70, 1, 700), (100, 1, 700), (900, 0, 90), (940, 1, 700)];
        assert_eq!(is_preceded(&slow), [false, false], "it goes on sooner than answers come");
    }

    #[test]
    fn words_that_acknowledge_more_may_answer_it() {
        let word = |time_ns, heard| Word { way: 1, time_ns, heard, is_ended: true };
        assert_eq!(word(900, 90).silence_ns(&word(40, 90)), Some(860));
        assert_eq!(word(900, 180).silence_ns(&word(40, 90)), None, "a question that crossed, or is missing");
        assert_eq!(word(900, 90).silence_ns(&Word { is_ended: false, ..word(40, 90) }), None);
        assert_eq!(word(900, 90).silence_ns(&Word { way: 0, ..word(40, 90) }), None);
    }

    #[test]
    fn few_words_in_a_long_conversation_are_what_is_expected() {
        let mut news = vec![(0, 0, 90), (40, 1, 300), (400, 1, 300), (800, 1, 300)];
        news.extend((1..9).flat_map(|turn| [(2000 * turn, 0, 90), (2000 * turn + 40, 1, 300)]));
        assert_eq!(is_preceded(&news), [false, false]);
        assert_eq!(is_preceded(&news[..8]), [true, false]);
        news.remove(3);
        assert_eq!(is_preceded(&news[..5]), [false, false], "once is no habit");
    }

    #[test]
    fn control_frames_are_no_words() {
        let pinged = [(0, 0, 90), (40, 1, 300), (400, 1, 17), (700, 1, 17), (1200, 0, 90), (1240, 1, 300)];
        assert_eq!(preceded(&pinged, pushed, |way, offset| way == 0 || ![300, 317].contains(&offset)), [false, false]);
        assert_eq!(is_preceded(&pinged), [true, false]);
        let settled = [(0, 0, 90), (40, 1, 17), (400, 1, 300), (900, 1, 17), (940, 1, 300), (1800, 0, 9), (1840, 1, 9)];
        let is_news = |way: usize, offset: i64| way == 0 || offset % 317 > 0;
        assert_eq!(preceded(&settled, pushed, is_news), [false, false], "then comes the answer");
        assert_eq!(is_preceded(&settled), [true, false]);
        let short = [(0, 0, 90), (40, 1, 300), (900, 0, 35), (940, 1, 300), (1800, 0, 35), (1840, 1, 300)];
        let is_long = |way: usize, offset: i64| way == 1 || offset % 90 > 0 && offset % 35 > 0;
        assert_eq!(preceded(&short, pushed, is_long), [false, false], "it may be a request");
    }

    proptest! {
        #[test]
        fn any_packets_are_taken(packets in prop::collection::vec((any::<i32>(), 0_u8..3, any::<u32>()), 0..30)) {
            let packets: Vec<_> = packets.into_iter().map(|(ms, way, bytes)| (i64::from(ms), way, bytes)).collect();
            is_preceded(&packets);
        }
    }
}

//! Transport round trips of one connection's data, as the capture saw data pass and its acknowledgement return.
//!
//! Samples are those of the reading (Karn's rule, RFC 6298 section 3; the last segment that an acknowledgement covers).
//! A *plain* one ends with a packet that carries no payload, so that no application can have held it back; it holds
//! the path, its queues, and what the receiver delayed its acknowledgement by: up to 500 ms (RFC 9293, section
//! 3.8.6.3), in practice 40 ms (Linux) to 200 ms, where it had only one segment to acknowledge. The least and the lower
//! quantiles are therefore the ones to compare with. A *prompt* one acknowledges more new bytes than a segment holds,
//! which no receiver delays (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2): it holds the path and its queues alone.
//! On the receiver's side of a capture they are the delays alone. First flights that a firewall may have acknowledged
//! give no sample ([`FirstFlight`]).

use crate::exchanges::first_flight::FirstFlight;
use crate::packets::{flag, Packets, NO_ACKNOWLEDGEMENT};
use std::collections::VecDeque;

/// Round trips this far from a question tell of the same state of the path.
const AROUND_NS: i64 = 1_000_000_000;
/// No segment of a path without jumbo frames holds more bytes.
const LONGEST_SEGMENT_BYTES: i64 = 1500;
/// Per cent of the plain samples below which the quantiles lie.
pub const QUANTILES: [usize; 4] = [10, 20, 60, 90];

/// Per cent of the prompt samples below which theirs lie.
pub const PROMPT_QUANTILES: [usize; 2] = [10, 60];

/// A handshake that data end may count where no more of the plain samples than these, in per cent, are shorter.
const SHORTER_PERCENT: usize = 60;

/// Stands for the round trip of a handshake whose answer was captured before what it answers: two clocks timed it.
pub const ANSWERED_BEFORE: i64 = -2;
/// Interrupts and queues of a capturing host put packets out of order by less.
const OUT_OF_ORDER_NS: i64 = 1_000_000;

/// Numbers of one connection and direction of data; -1 stands for what is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    pub count: u32,
    pub plain_count: u32,
    pub least_of_all_ns: i64,
    pub least_ns: i64,
    /// At `QUANTILES`: the sample with rank `(plain_count - 1) * quantile / 100`, rounded down.
    pub quantiles_ns: [i64; 4],
    pub prompt_count: u32,
    /// At `PROMPT_QUANTILES`, likewise.
    pub prompt_ns: [i64; 2],
    /// The handshake on this side: SYN to SYN-ACK of data up, SYN-ACK to its own acknowledgement of data down; or
    /// `ANSWERED_BEFORE`.
    pub handshake_ns: i64,
}

/// Times and lengths of plain samples of one direction, and the scratch to rank them.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    plain: Vec<(i64, i64)>,
    prompt: Vec<i64>,
    ranked: Vec<i64>,
}

impl Samples {
    /// Takes the samples of `direction`'s data.
    pub(super) fn take(&mut self, packets: &Packets<'_>, direction: u8) -> RoundTrips {
        const SPECIAL: u16 = flag::SYN | flag::FIN | flag::RST;
        self.plain.clear();
        self.prompt.clear();
        let (mut count, mut least_of_all_ns) = (0, i64::MAX);
        let mut acknowledged = None;
        let mut first_flight = FirstFlight::of(packets, direction);
        for (place, &round_trip_ns) in packets.round_trip_time_ns.iter().enumerate() {
            let is_own = packets.direction[place] == direction;
            first_flight.pass(is_own, packets.payload_bytes[place]);
            if is_own {
                continue;
            }
            let new_bytes = advance(&mut acknowledged, packets.acknowledgement_offset[place]);
            if round_trip_ns < 0 || first_flight.may_be_inspected(packets.acknowledgement_offset[place]) {
                continue;
            }
            count += 1;
            least_of_all_ns = least_of_all_ns.min(round_trip_ns);
            if packets.payload_bytes[place] == 0 && packets.flags[place] & SPECIAL == 0 {
                self.plain.push((packets.time_ns[place], round_trip_ns));
                if new_bytes > LONGEST_SEGMENT_BYTES {
                    self.prompt.push(round_trip_ns);
                }
            }
        }
        self.ranked.clear();
        self.ranked.extend(self.plain.iter().map(|&(_, round_trip_ns)| round_trip_ns));
        self.ranked.sort_unstable();
        self.prompt.sort_unstable();
        RoundTrips {
            count,
            plain_count: self.plain.len() as u32,
            least_of_all_ns: if count == 0 { -1 } else { least_of_all_ns },
            least_ns: ranked(&self.ranked, 0),
            quantiles_ns: QUANTILES.map(|percent| ranked(&self.ranked, percent)),
            prompt_count: self.prompt.len() as u32,
            prompt_ns: PROMPT_QUANTILES.map(|percent| ranked(&self.prompt, percent)),
            handshake_ns: self.handshake_ns(packets, direction),
        }
    }

    /// The handshake's round trip. Where data carry its end, their sender may not have had them before, or the
    /// acknowledgement before them was not captured: then it counts where plain acknowledgements are seldom shorter.
    fn handshake_ns(&self, packets: &Packets<'_>, direction: u8) -> i64 {
        match handshake(packets, direction) {
            Handshake::Timed(handshake_ns) => handshake_ns,
            Handshake::EndsWithData(most_ns) if most_ns <= ranked(&self.ranked, SHORTER_PERCENT) => most_ns,
            Handshake::EndsWithData(_) | Handshake::NotSeen => -1,
            Handshake::AnsweredBefore => ANSWERED_BEFORE,
        }
    }

    /// The least plain round trip that ended within `AROUND_NS` of each of these times; -1 where there is none. The
    /// times ascend but for a clock that went back, of which some are then not found.
    pub(super) fn around(&mut self, times_ns: impl Iterator<Item = i64>, mut put: impl FnMut(i64)) {
        if !self.plain.is_sorted() {
            self.plain.sort_unstable();
        }
        let mut coming = self.plain.iter().copied().peekable();
        // Ascending in both: a later shorter one makes those before it useless.
        let mut least: VecDeque<(i64, i64)> = VecDeque::new();
        for time_ns in times_ns {
            let (from_ns, to_ns) = (time_ns.saturating_sub(AROUND_NS), time_ns.saturating_add(AROUND_NS));
            while let Some(sample) = coming.next_if(|&(ended_ns, _)| ended_ns <= to_ns) {
                while least.back().is_some_and(|&(_, round_trip_ns)| round_trip_ns >= sample.1) {
                    least.pop_back();
                }
                least.push_back(sample);
            }
            while least.front().is_some_and(|&(ended_ns, _)| ended_ns < from_ns) {
                least.pop_front();
            }
            put(least.front().map_or(-1, |&(_, round_trip_ns)| round_trip_ns));
        }
    }
}

/// Moves the highest acknowledged offset on. Gives by how many bytes; 0 of the first one.
fn advance(acknowledged: &mut Option<i64>, offset: i64) -> i64 {
    if offset == NO_ACKNOWLEDGEMENT {
        return 0;
    }
    let before = acknowledged.unwrap_or(offset);
    *acknowledged = Some(before.max(offset));
    offset.saturating_sub(before)
}

/// The value at this per cent of ascending ones; -1 of none.
fn ranked(ascending: &[i64], percent: usize) -> i64 {
    let last = ascending.len().saturating_sub(1);
    ascending.get(last.saturating_mul(percent) / 100).copied().unwrap_or(-1)
}

/// What shows of one side's handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    Timed(i64),
    /// It took this long at most.
    EndsWithData(i64),
    /// A packet of it was not captured, or one was sent again.
    NotSeen,
    AnsweredBefore,
}

/// From the SYN of `direction` (with ACK if down) to the packet that answers it.
fn handshake(packets: &Packets<'_>, direction: u8) -> Handshake {
    const KIND: u16 = flag::SYN | flag::ACK | flag::RST;
    let asked = if direction == 0 { flag::SYN } else { flag::SYN | flag::ACK };
    let answered = if direction == 0 { flag::SYN | flag::ACK } else { flag::ACK };
    let (mut sent_ns, mut answered_ns) = (None, None);
    for (place, &flags) in packets.flags.iter().enumerate() {
        let way = packets.direction[place];
        if way == direction && flags & KIND == asked {
            let time_ns = packets.time_ns[place];
            if sent_ns.replace(time_ns).is_some() {
                return Handshake::NotSeen;
            }
            if answered_ns.is_some_and(|answered_ns| time_ns.saturating_sub(OUT_OF_ORDER_NS) > answered_ns) {
                return Handshake::AnsweredBefore;
            }
        } else if way != direction && flags & KIND == answered {
            let Some(sent_ns) = sent_ns else {
                answered_ns.get_or_insert(packets.time_ns[place]);
                continue;
            };
            let taken_ns = packets.time_ns[place].saturating_sub(sent_ns).max(-1);
            return if direction == 1 && packets.acknowledgement_offset[place] > 0 {
                Handshake::NotSeen
            } else if direction == 1 && packets.payload_bytes[place] > 0 {
                Handshake::EndsWithData(taken_ns)
            } else {
                Handshake::Timed(taken_ns)
            };
        }
    }
    Handshake::NotSeen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_around_a_time_is_that_of_the_window(
            samples in prop::collection::vec((0_i64..40, 0_i64..9), 0..30),
            mut times in prop::collection::vec(0_i64..40, 0..10),
        ) {
            const TENTH_NS: i64 = AROUND_NS / 10;
            times.sort_unstable();
            let plain: Vec<(i64, i64)> = samples.iter().map(|&(time, length)| (time * TENTH_NS, length)).collect();
            let mut held = Samples { plain: plain.clone(), ..Samples::default() };
            let mut found = Vec::new();
            held.around(times.iter().map(|time| time * TENTH_NS), |least_ns| found.push(least_ns));
            let wanted: Vec<i64> = times
                .iter()
                .map(|time| {
                    let near = plain.iter().filter(|(ended_ns, _)| (ended_ns - time * TENTH_NS).abs() <= AROUND_NS);
                    near.map(|sample| sample.1).min().unwrap_or(-1)
                })
                .collect();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn what_acknowledges_more_than_a_segment_is_prompt() {
        let samples = |acknowledgement_offset: &[i64]| {
            let times: Vec<i64> = (0..acknowledgement_offset.len() as i64).collect();
            let packets = Packets {
                time_ns: &times,
                direction: &[0, 0, 0],
                flags: &[flag::ACK; 3],
                payload_bytes: &[0; 3],
                round_trip_time_ns: &[40, 10, 50],
                acknowledgement_offset,
                ..Packets::default()
            };
            Samples::default().take(&packets, 1)
        };
        let found = samples(&[1_448, 4_344, 5_792]);
        assert_eq!((found.plain_count, found.prompt_count, found.prompt_ns), (3, 1, [10, 10]));
        let found = samples(&[1_448, NO_ACKNOWLEDGEMENT, 2_896]);
        assert_eq!((found.plain_count, found.prompt_count, found.prompt_ns), (3, 0, [-1, -1]));
    }

    #[test]
    fn a_handshake_is_timed_where_one_syn_was_sent() {
        let of_packets = |flags: &[u16], direction: &[u8], way, payload_bytes: &[u32], acknowledged: &[i64]| {
            let times: Vec<i64> = (0..flags.len() as i64).map(|place| place * place).collect();
            let packets = Packets {
                time_ns: &times,
                direction,
                flags,
                payload_bytes,
                acknowledgement_offset: acknowledged,
                ..Packets::default()
            };
            Samples::default().take(&packets, way).handshake_ns
        };
        let of = |flags: &[u16], direction: &[u8], way| {
            of_packets(flags, direction, way, &vec![0; flags.len()], &vec![0; flags.len()])
        };
        let (syn, syn_ack, ack) = (flag::SYN, flag::SYN | flag::ACK, flag::ACK);
        assert_eq!([0, 1].map(|way| of(&[syn, syn_ack, ack], &[0, 1, 0], way)), [1, 3]);
        assert_eq!([0, 1].map(|way| of(&[syn, syn, syn_ack, ack], &[0, 0, 1, 0], way)), [-1, 5]);
        assert_eq!([0, 1].map(|way| of(&[ack, ack], &[0, 1], way)), [-1, -1]);
        let before = of(&[syn, ack, syn_ack, ack], &[0, 0, 1, 0], 1);
        assert_eq!(before, 5, "out of order by less than queues put packets");
        let (handshake, ways) = ([syn, syn_ack, ack], [0, 1, 0]);
        let rides_on_data = |way| of_packets(&handshake, &ways, way, &[0, 0, 9], &[0, 0, 0]);
        let acknowledges_more = |way| of_packets(&handshake, &ways, way, &[0, 0, 0], &[0, 0, 70]);
        assert_eq!(([0, 1].map(rides_on_data), [0, 1].map(acknowledges_more)), ([1, -1], [1, -1]));
    }

    #[test]
    fn a_handshake_that_data_end_counts_where_acknowledgements_take_as_long() {
        const TAKEN_NS: i64 = 5;
        let timed = |plain_ns: &[i64]| {
            let handshake = [(0, 0, flag::SYN, 0), (1, 1, flag::SYN | flag::ACK, 0), (1 + TAKEN_NS, 0, flag::ACK, 9)];
            let acknowledgements = (0..plain_ns.len() as i64).map(|place| (20 + place, 0, flag::ACK, 0));
            let packets: Vec<(i64, u8, u16, u32)> = handshake.into_iter().chain(acknowledgements).collect();
            let packets = Packets {
                time_ns: &packets.iter().map(|packet| packet.0).collect::<Vec<_>>(),
                direction: &packets.iter().map(|packet| packet.1).collect::<Vec<_>>(),
                flags: &packets.iter().map(|packet| packet.2).collect::<Vec<_>>(),
                payload_bytes: &packets.iter().map(|packet| packet.3).collect::<Vec<_>>(),
                acknowledgement_offset: &vec![0; packets.len()],
                round_trip_time_ns: &[&[-1; 3][..], plain_ns].concat(),
                ..Packets::default()
            };
            Samples::default().take(&packets, 1).handshake_ns
        };
        let [shorter, longer] = [TAKEN_NS - 1, TAKEN_NS + 30];
        assert_eq!([shorter, TAKEN_NS, longer].map(|plain_ns| timed(&[plain_ns])), [-1, TAKEN_NS, TAKEN_NS]);
        assert_eq!(timed(&[shorter, shorter, longer, TAKEN_NS, longer]), TAKEN_NS);
        assert_eq!(timed(&[shorter, shorter, shorter, TAKEN_NS, longer]), -1);
        assert_eq!(timed(&[]), -1, "nothing to compare with");
    }

    #[test]
    fn an_answer_before_what_it_answers_is_told_apart() {
        const MS: i64 = 1_000_000;
        let (syn, syn_ack, ack) = (flag::SYN, flag::SYN | flag::ACK, flag::ACK);
        let of = |flags: &[u16], direction: &[u8], way| {
            let times: Vec<i64> = (0..flags.len() as i64).map(|place| place * 20 * MS).collect();
            let none = vec![0; flags.len()];
            let packets = Packets {
                time_ns: &times,
                direction,
                flags,
                payload_bytes: &vec![0; flags.len()],
                acknowledgement_offset: &none,
                ..Packets::default()
            };
            Samples::default().take(&packets, way).handshake_ns
        };
        assert_eq!(of(&[syn, ack, syn_ack, ack], &[0, 0, 1, 0], 1), ANSWERED_BEFORE);
        assert_eq!(of(&[syn_ack, syn, ack], &[1, 0, 0], 0), ANSWERED_BEFORE);
        assert_eq!(of(&[syn, syn_ack, ack], &[0, 1, 0], 1), 20 * MS);
        assert_eq!(of(&[ack, ack], &[0, 1], 1), -1, "begun late");
    }
}

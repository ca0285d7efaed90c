//! How a stream ends in a capture: FINs, and resets in the middle of a transfer.

use crate::packets::{bearing, flag, mark, Packets, NO_ACKNOWLEDGEMENT};

const ENDING: u16 = flag::FIN | flag::RST;
const PROBE_OR_COPY: u16 = mark::ZERO_WINDOW_PROBE | mark::DUPLICATE;

/// A receiver's abort: the time of its first FIN or RST, and the highest offset that it had received or acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort {
    pub time_ns: i64,
    pub reached_bytes: i64,
}

/// What a sender's capture shows of a connection that its receiver aborted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbortAtSender {
    pub acknowledged_bytes: i64,
    /// Largest payload of a packet, in either direction.
    pub largest_payload_bytes: i64,
    /// First FIN or RST that came from the receiver.
    pub end_ns: Option<i64>,
    pub zero_window_probes: usize,
}

/// The FINs of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fins {
    pub count: usize,
    /// Time of the first; `None` where there is none, or where it is a copy of one that was missed.
    pub first_ns: Option<i64>,
}

impl Packets<'_> {
    /// Whether the receiver of `direction` reset the connection before that stream's FIN was seen.
    pub fn abort(&self, direction: u8) -> Option<Abort> {
        let (mut first_reset, mut first_ending, mut finished) = (None, None, None);
        let (mut received, mut acknowledged) = (None, 0);
        for (place, (&way, &flags)) in self.direction.iter().zip(self.flags).enumerate() {
            let time_ns = self.time_ns[place];
            if way == direction {
                if flags & flag::FIN != 0 {
                    finished = earlier(finished, time_ns);
                }
                if self.payload_bytes[place] > 0 {
                    let end = self.sequence_offset[place].saturating_add(i64::from(self.payload_bytes[place]));
                    received = received.max(Some(end));
                }
                continue;
            }
            if flags & flag::RST != 0 {
                first_reset = earlier(first_reset, time_ns);
            }
            if flags & ENDING != 0 {
                first_ending = earlier(first_ending, time_ns);
            }
            acknowledged = acknowledged.max(self.acknowledgement_offset[place]);
        }
        let first_reset = first_reset?;
        if finished.is_some_and(|time_ns| time_ns <= first_reset) {
            return None;
        }
        Some(Abort { time_ns: first_ending?, reached_bytes: received?.max(acknowledged) })
    }

    /// How far the sender of `direction` was acknowledged, other than by resets, and when the other end ended.
    pub fn abort_at_sender(&self, direction: u8) -> AbortAtSender {
        let mut found = AbortAtSender::default();
        for (place, (&way, &flags)) in self.direction.iter().zip(self.flags).enumerate() {
            found.largest_payload_bytes = found.largest_payload_bytes.max(i64::from(self.payload_bytes[place]));
            if way == direction {
                let is_sent_probe = self.marks[place] & PROBE_OR_COPY == mark::ZERO_WINDOW_PROBE;
                found.zero_window_probes += usize::from(is_sent_probe);
                continue;
            }
            if flags & flag::RST == 0 && self.acknowledgement_offset[place] != NO_ACKNOWLEDGEMENT {
                found.acknowledged_bytes = found.acknowledged_bytes.max(self.acknowledgement_offset[place]);
            }
            if flags & ENDING != 0 {
                found.end_ns = earlier(found.end_ns, self.time_ns[place]);
            }
        }
        found
    }

    /// FINs that were sent up (0) and down (1).
    pub fn fins(&self) -> [Fins; 2] {
        let mut found = [Fins::default(); 2];
        for place in bearing(self.flags, flag::FIN).filter(|&place| self.marks[place] & mark::DUPLICATE == 0) {
            let Some(fins) = found.get_mut(usize::from(self.direction[place])) else {
                continue;
            };
            if fins.count == 0 && self.marks[place] & mark::RETRANSMISSION == 0 {
                fins.first_ns = Some(self.time_ns[place]);
            }
            fins.count += 1;
        }
        found
    }
}

fn earlier(known: Option<i64>, time_ns: i64) -> Option<i64> {
    Some(known.map_or(time_ns, |known| known.min(time_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: i64 = NO_ACKNOWLEDGEMENT;

    /// Data down, and what the client answers.
    fn answered(flags: [u16; 2], fin_down: u16) -> Option<Abort> {
        Packets {
            time_ns: &[1, 2, 3, 4, 5],
            direction: &[1, 0, 1, 0, 1],
            sequence_offset: &[0, 0, 100, 0, 200],
            acknowledgement_offset: &[NONE, 150, NONE, NONE, NONE],
            payload_bytes: &[100, 0, 100, 0, 0],
            flags: &[flag::ACK, flags[0], flag::ACK, flags[1], fin_down],
            marks: &[0; 5],
            ..Packets::default()
        }
        .abort(1)
    }

    #[test]
    fn a_reset_in_the_middle_of_a_stream_is_an_abort() {
        let (ack, fin, reset) = (flag::ACK, flag::ACK | flag::FIN, flag::RST);
        assert_eq!(answered([ack, reset], ack), Some(Abort { time_ns: 4, reached_bytes: 200 }));
        assert_eq!(answered([fin, reset], ack), Some(Abort { time_ns: 2, reached_bytes: 200 }));
        assert_eq!(answered([ack, reset], fin), Some(Abort { time_ns: 4, reached_bytes: 200 }));
        assert_eq!(answered([fin, ack], ack), None);
    }

    #[test]
    fn probes_that_were_captured_twice_count_once() {
        let packets = Packets {
            time_ns: &[1, 2, 3],
            direction: &[0; 3],
            acknowledgement_offset: &[NONE; 3],
            payload_bytes: &[1; 3],
            flags: &[flag::ACK; 3],
            marks: &[mark::ZERO_WINDOW_PROBE, PROBE_OR_COPY, mark::ZERO_WINDOW_PROBE],
            ..Packets::default()
        };
        assert_eq!(packets.abort_at_sender(0).zero_window_probes, 2);
    }

    #[test]
    fn a_first_fin_that_was_sent_before_has_no_time() {
        let packets = Packets {
            time_ns: &[1, 2, 3],
            direction: &[0, 0, 1],
            flags: &[flag::FIN, flag::FIN, flag::FIN],
            marks: &[mark::RETRANSMISSION, 0, 0],
            ..Packets::default()
        };
        assert_eq!(packets.fins(), [Fins { count: 2, first_ns: None }, Fins { count: 1, first_ns: Some(3) }]);
        let captured_twice = Packets { marks: &[0, mark::DUPLICATE, 0], ..packets };
        assert_eq!(captured_twice.fins()[0], Fins { count: 1, first_ns: Some(1) });
    }
}

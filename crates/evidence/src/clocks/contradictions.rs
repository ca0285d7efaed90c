//! Captures whose times contradict themselves: acknowledgements that stand before what they acknowledge.

use crate::clocks::early_acks::EarlyCount;
use crate::flows::byte_times::NEVER;
use crate::packets::{bearing, flag, Packets, DOWN};

impl Packets<'_> {
    /// Packets with acknowledgements of either direction, up first, and how many of them come more than `least_ns` before
    /// its first SYN: of all, and of those that acknowledge the SYN alone. None are compared without a SYN.
    ///
    /// Of a sender without data nothing else stands before them, and of two clocks that differ by less than data take to
    /// be acknowledged nothing but the SYN's own acknowledgements shows it.
    pub fn acks_before_syns(&self, least_ns: i64) -> [[EarlyCount; 2]; 2] {
        let opened_ns = self.first_syn_ns();
        let mut counts = [[EarlyCount::default(); 2]; 2];
        let rows = self.direction.iter().zip(self.flags).zip(self.time_ns).zip(self.acknowledgement_offset);
        for (((&way, &flags), &time_ns), &acknowledged) in rows {
            let opposite = usize::from(way != DOWN);
            let is_ack = flags & flag::ACK != 0;
            let is_early = is_ack & (opened_ns[opposite].wrapping_sub(time_ns) > least_ns);
            let is_of_syn = acknowledged == 0;
            let [all, of_syn] = &mut counts[opposite];
            all.compared += usize::from(is_ack);
            all.early += usize::from(is_early);
            of_syn.compared += usize::from(is_ack & is_of_syn);
            of_syn.early += usize::from(is_early & is_of_syn);
        }
        for (counts, opened_ns) in counts.iter_mut().zip(opened_ns) {
            if opened_ns == NEVER {
                *counts = [EarlyCount::default(); 2];
            }
        }
        counts
    }

    /// The least time of a SYN up and down.
    fn first_syn_ns(&self) -> [i64; 2] {
        let mut first_ns = [NEVER; 2];
        for row in bearing(self.flags, flag::SYN) {
            let first_ns = &mut first_ns[usize::from(self.direction[row] == DOWN)];
            *first_ns = self.time_ns[row].min(*first_ns);
        }
        first_ns
    }

    /// Acknowledgements of bytes of `direction` that the capture holds, and how many of them come more than `least_ns`
    /// before these bytes.
    pub fn acks_before_bytes(&self, direction: u8, least_ns: i64) -> EarlyCount {
        let (arrived, acknowledged) = (self.first_arrivals(direction), self.acknowledgement_times(direction));
        let steps = &acknowledged.steps;
        let mut count = EarlyCount::default();
        let mut behind = 0; // ranges that begin at or before the byte
        for (&value, &time_ns) in steps.value.iter().zip(&steps.time_ns) {
            let byte = value.wrapping_sub(1);
            behind += arrived.start[behind..].iter().take_while(|&&start| start <= byte).count();
            let Some(place) = behind.checked_sub(1) else { continue };
            if byte < arrived.end[place] {
                count.compared += 1;
                count.early += usize::from(arrived.time_ns[place].wrapping_sub(time_ns) > least_ns);
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::UP;

    const LINES: Packets<'static> = Packets {
        time_ns: &[90, 95, 10, 12, 50, 60],
        direction: &[DOWN, DOWN, UP, UP, UP, DOWN],
        sequence_offset: &[-1, 0, -1, 0, 0, 100],
        acknowledgement_offset: &[0, 0, crate::packets::NO_ACKNOWLEDGEMENT, 0, 100, 0],
        payload_bytes: &[0, 100, 0, 0, 0, 100],
        window_bytes: &[0; 6],
        flags: &[flag::SYN | flag::ACK, flag::ACK, flag::SYN, flag::ACK, flag::ACK, flag::ACK],
        tsval: &[0; 6],
        tsecr: &[0; 6],
        ip_id: &[0; 6],
        ttl: &[0; 6],
        payload_hash: &[0; 6],
        marks: &[0; 6],
        round_trip_time_ns: &[0; 6],
        staircases: None,
    };

    #[test]
    fn only_acknowledgements_before_the_syn_of_the_other_side_are_early() {
        let count = |early, compared| EarlyCount { early, compared };
        let of_client = [count(0, 3), count(0, 3)];
        assert_eq!(LINES.acks_before_syns(0), [of_client, [count(2, 2), count(1, 1)]]);
        assert_eq!(LINES.acks_before_syns(40), [of_client, [count(1, 2), count(1, 1)]]);
        let flags = &[flag::ACK; 6];
        assert_eq!(Packets { flags, ..LINES }.acks_before_syns(0), [[EarlyCount::default(); 2]; 2]);
    }

    #[test]
    fn only_acknowledgements_of_captured_bytes_are_compared() {
        assert_eq!(LINES.acks_before_bytes(DOWN, 44), EarlyCount { early: 1, compared: 1 });
        assert_eq!(LINES.acks_before_bytes(DOWN, 45), EarlyCount { early: 0, compared: 1 });
        let beyond = &[0, 0, 0, 0, 250, 0];
        let found = Packets { acknowledgement_offset: beyond, ..LINES }.acks_before_bytes(DOWN, 0);
        assert_eq!(found, EarlyCount::default());
    }
}

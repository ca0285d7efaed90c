//! Acknowledgements at a sender that came soonest behind the arrival of their data at the receiver, or before it.

use crate::clocks::sender_axis::Axis;
use crate::packets::Packets;
use crate::telling::{advancing_acknowledgements, strongest, LastArrivals};

/// An acknowledgement at the sender, and the packet that brought the last of its bytes to the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Soonest {
    pub row: usize,
    /// How far it acknowledges, by the sender's capture.
    pub acknowledged_bytes: i64,
    /// By how much it came before its data had arrived; negative where it came behind.
    pub early_s: f64,
    pub brought: Option<usize>,
}

/// Those of the data of `direction` that came soonest, at most so many, the soonest first, spread over all; only those
/// whose data the receiver's capture holds. `shift` added to a receiver's offset gives the sender's.
pub fn soonest_acknowledgements(
    sender: &Packets<'_>,
    receiver: &Packets<'_>,
    direction: u8,
    shift: i64,
    axis: Axis<'_>,
    most: usize,
) -> Vec<Soonest> {
    let arrivals = receiver.first_arrivals(direction);
    let mut last = LastArrivals::new(&arrivals);
    let (mut places, mut early_s) = (Vec::new(), Vec::new());
    for (row, value) in advancing_acknowledgements(sender, direction) {
        if let Some(arrival) = last.below(value.wrapping_sub(shift)) {
            let seen_s = sender.time_ns[row].wrapping_sub(axis.origin_ns) as f64 / 1e9;
            places.push((row, arrival));
            early_s.push(axis.receiver_s(arrivals.time_ns[arrival]) - seen_s);
        }
    }
    let at = |place: usize| {
        let (row, arrival) = places[place];
        Soonest {
            row,
            acknowledged_bytes: sender.acknowledgement_offset[row],
            early_s: early_s[place],
            brought: receiver.row_of_byte(direction, arrivals.start[arrival]),
        }
    };
    strongest(&early_s, most, f64::NEG_INFINITY).into_iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{flag, DOWN, UP};

    #[test]
    fn only_acknowledgements_of_data_that_arrived_are_held_against_them() {
        let sender = Packets {
            time_ns: &[0, 1_000, 2_000, 2_700, 4_000, 5_000],
            direction: &[UP, DOWN, DOWN, DOWN, DOWN, UP],
            sequence_offset: &[0; 6],
            acknowledgement_offset: &[0, 100, 100, 200, 350, 900],
            payload_bytes: &[350, 0, 0, 0, 0, 0],
            flags: &[flag::ACK; 6],
            ..Packets::default()
        };
        let receiver = Packets {
            time_ns: &[500, 2_500, 2_600],
            direction: &[UP; 3],
            sequence_offset: &[-7, 93, 193],
            acknowledgement_offset: &[0; 3],
            payload_bytes: &[100; 3],
            flags: &[flag::ACK; 3],
            ..Packets::default()
        };
        let axis = Axis { is_up: true, origin_ns: 0, start_ns: 0, lines: None, raise_ns: 0.0 };
        let found = |most| {
            let soonest = soonest_acknowledgements(&sender, &receiver, UP, 7, axis, most);
            soonest.iter().map(|each| (each.row, each.acknowledged_bytes, each.brought)).collect::<Vec<_>>()
        };
        // What acknowledges 350 bytes is not held against the 300 that arrived; that of 200 came soonest.
        assert_eq!(found(9), [(3, 200, Some(1)), (1, 100, Some(0))]);
        assert_eq!(found(1), [(3, 200, Some(1))]);
        assert_eq!(soonest_acknowledgements(&sender, &receiver, DOWN, 7, axis, 9), []);
    }
}

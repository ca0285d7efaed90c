//! Acknowledgements at a sender, each held against what had reached the receiver when it was seen.

use crate::ascending::Ascending;
use crate::clocks::sender_axis::Axis;
use crate::flows::staircase::ByteRanges;
use crate::packets::Packets;
use crate::telling::{advancing_acknowledgements, LastArrivals};

/// By acknowledgement that advances, in capture order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeldAcknowledgements {
    /// By how much it came before the last of its bytes had arrived; NaN where that is not known.
    pub early_s: Vec<f64>,
    /// Bytes that it acknowledges and that had not arrived.
    pub ahead_bytes: Vec<i64>,
    /// Where the arrival with the last of its bytes begins, by the receiver's capture; -1 where that is not known.
    pub last_start: Vec<i64>,
}

/// The acknowledgements of the data of `direction`. `shift` added to a receiver's offset gives the sender's.
pub fn held_acknowledgements(
    sender: &Packets<'_>,
    receiver: &Packets<'_>,
    direction: u8,
    shift: i64,
    axis: Axis<'_>,
) -> HeldAcknowledgements {
    let arrivals = receiver.first_arrivals(direction);
    let mut last = LastArrivals::new(&arrivals);
    let mut found = HeldAcknowledgements::default();
    let mut seen_s = Vec::new();
    for (row, value) in advancing_acknowledgements(sender, direction) {
        let arrival = last.below(value.wrapping_sub(shift));
        let arrived_s = arrival.map_or(f64::NAN, |place| axis.receiver_s(arrivals.time_ns[place]));
        seen_s.push(sender.time_ns[row].wrapping_sub(axis.origin_ns) as f64 / 1e9);
        found.early_s.extend(seen_s.last().map(|seen_s| arrived_s - seen_s));
        found.ahead_bytes.push(value);
        found.last_start.push(arrival.map_or(-1, |place| arrivals.start[place]));
    }
    let begin = arrivals.start.iter().map(|start| start.wrapping_add(shift)).fold(0, i64::min);
    for (ahead, bytes) in found.ahead_bytes.iter_mut().zip(delivered(&arrivals, axis, &seen_s)) {
        *ahead = ahead.wrapping_sub(begin).wrapping_sub(bytes).max(0);
    }
    found
}

/// How many bytes had arrived at each of some moments, in seconds on the sender's clock.
///
/// A clock that stepped back puts later arrivals before earlier ones: then the order is that of the sender's clock.
fn delivered(arrivals: &ByteRanges, axis: Axis<'_>, moments_s: &[f64]) -> Vec<i64> {
    let mut in_order: Vec<(f64, i64)> =
        arrivals.rows().map(|(start, end, time_ns)| (axis.receiver_s(time_ns), end.wrapping_sub(start))).collect();
    in_order.sort_by(|(one_s, _), (other_s, _)| one_s.total_cmp(other_s));
    let times_s: Vec<f64> = in_order.iter().map(|&(time_s, _)| time_s).collect();
    let mut bytes = vec![0];
    bytes.extend(in_order.iter().scan(0_i64, |reached, &(_, bytes)| {
        *reached = reached.wrapping_add(bytes);
        Some(*reached)
    }));
    let mut times_s = Ascending::new(&times_s);
    moments_s.iter().map(|&moment_s| bytes[times_s.up_to(moment_s)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{flag, DOWN, UP};

    #[test]
    fn bytes_are_ahead_that_arrive_after_they_were_acknowledged() {
        let sender = Packets {
            time_ns: &[0, 1_000, 2_000, 3_000, 9_000],
            direction: &[UP, DOWN, DOWN, DOWN, DOWN],
            sequence_offset: &[0; 5],
            acknowledgement_offset: &[0, 100, 100, 300, 400],
            payload_bytes: &[350, 0, 0, 0, 0],
            flags: &[flag::ACK; 5],
            ..Packets::default()
        };
        let receiver = Packets {
            time_ns: &[500, 2_500, 5_000],
            direction: &[UP; 3],
            sequence_offset: &[-7, 93, 193],
            acknowledgement_offset: &[0; 3],
            payload_bytes: &[100; 3],
            flags: &[flag::ACK; 3],
            ..Packets::default()
        };
        let axis = Axis { is_up: true, origin_ns: 0, start_ns: 0, lines: None, raise_ns: 0.0 };
        let found = held_acknowledgements(&sender, &receiver, UP, 7, axis);
        assert_eq!(found.ahead_bytes, [0, 100, 100]);
        assert_eq!(found.last_start, [-7, 193, -1]);
        let early_ns: Vec<f64> = found.early_s.iter().map(|early_s| (early_s * 1e9).round()).collect();
        assert_eq!(early_ns[..2], [-500.0, 2_000.0]);
        assert!(early_ns[2].is_nan());
        assert_eq!(held_acknowledgements(&sender, &receiver, DOWN, 7, axis), HeldAcknowledgements::default());
    }
}

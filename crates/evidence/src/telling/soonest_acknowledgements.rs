//! Acknowledgements at a sender that came soonest behind the arrival of their data at the receiver, or before it.

use crate::clocks::sender_axis::Axis;
use crate::flows::staircase::ByteRanges;
use crate::packets::Packets;
use crate::telling::{last_arrivals, strongest};

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
    let rows: Vec<usize> =
        sender.acknowledging_rows(direction).into_iter().filter_map(|row| usize::try_from(row).ok()).collect();
    let acknowledged: Vec<i64> = rows.iter().map(|&row| sender.acknowledgement_offset[row]).collect();
    let arrivals: ByteRanges = receiver
        .first_arrivals(direction)
        .rows()
        .map(|(start, end, time_ns)| (start.wrapping_add(shift), end.wrapping_add(shift), time_ns))
        .collect();
    let last: Vec<Option<usize>> =
        last_arrivals(&arrivals, &acknowledged).into_iter().map(|place| usize::try_from(place).ok()).collect();
    let early_s: Vec<f64> = rows
        .iter()
        .zip(&last)
        .map(|(&row, last)| {
            let seen_s = sender.time_ns[row].wrapping_sub(axis.origin_ns) as f64 / 1e9;
            last.map_or(f64::NAN, |place| axis.receiver_s(arrivals.time_ns[place]) - seen_s)
        })
        .collect();
    let at = |place: usize| {
        let first = last[place].map(|arrival| arrivals.start[arrival].wrapping_sub(shift));
        Soonest {
            row: rows[place],
            acknowledged_bytes: acknowledged[place],
            early_s: early_s[place],
            brought: first.and_then(|offset| receiver.row_of_byte(direction, offset)),
        }
    };
    strongest(&early_s, most, f64::NEG_INFINITY).into_iter().map(at).collect()
}

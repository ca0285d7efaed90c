//! Data segments of both directions as they left and as they arrived, the most telling ones first.

use crate::packets::{Packets, DOWN, UP};
use crate::segments::least_changed::least_changed;

/// An arrived data segment of a direction, and the one that held its first byte when it left, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedSegment {
    pub direction: u8,
    pub left: usize,
    pub arrived: usize,
    pub changes: u8,
}

/// Which segments stand first, by how many fields changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Fewest,
    Most,
    /// The same without those that did not change.
    MostOfChanged,
}

/// At most `most` segments of a connection; of equal ones those up, and those that arrived first.
///
/// `shifts`: by direction what is added to a receiver's offset to have the sender's; None where the streams are not
/// aligned. Of a direction at most `looked_at` arrived segments are compared, evenly spread.
pub fn compared_segments(
    client: &Packets<'_>,
    server: &Packets<'_>,
    shifts: [Option<i64>; 2],
    order: Order,
    looked_at: usize,
    most: usize,
) -> Vec<ComparedSegment> {
    let mut found = Vec::new();
    for (direction, emitted, arrived) in [(UP, client, server), (DOWN, server, client)] {
        let Some(shift) = shifts[usize::from(direction)] else { continue };
        let places = spread(&arrived.data_rows(direction), looked_at);
        let mut of_direction: Vec<ComparedSegment> = least_changed(emitted, arrived, direction, shift, &places)
            .into_iter()
            .filter(|each| order != Order::MostOfChanged || each.changes > 0)
            .map(|each| ComparedSegment { direction, left: each.left, arrived: each.arrived, changes: each.changes })
            .collect();
        sort(&mut of_direction, order);
        found.extend(of_direction.into_iter().take(most));
    }
    sort(&mut found, order);
    found.truncate(most);
    found
}

fn sort(segments: &mut [ComparedSegment], order: Order) {
    segments
        .sort_by_key(|each| if order == Order::Fewest { i16::from(each.changes) } else { -i16::from(each.changes) });
}

/// So many of these rows, evenly over all of them, the first and the last among them.
fn spread(rows: &[i64], most: usize) -> Vec<usize> {
    let taken = |place: usize| rows.get(place).and_then(|&row| usize::try_from(row).ok());
    if rows.len() <= most || most < 2 {
        return (0..rows.len().min(most)).filter_map(taken).collect();
    }
    let (last, parts) = (rows.len() - 1, most - 1);
    let step = last as f64 / parts as f64;
    let mut places: Vec<usize> =
        (0..parts).map(|part| (part as f64 * step).round_ties_even() as usize).chain([last]).collect();
    places.dedup();
    places.into_iter().filter_map(taken).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread_from_the_first_to_the_last() {
        let rows: Vec<i64> = (0..10).map(|row| row * 10).collect();
        assert_eq!(spread(&rows, 4), [0, 30, 60, 90]);
        assert_eq!(spread(&rows, 20).len(), 10);
        assert_eq!(spread(&rows, 1), [0]);
        assert_eq!(spread(&[], 4), [0; 0]);
    }

    #[test]
    fn segments_with_fewest_or_most_changes_stand_first() {
        let sent = Packets {
            time_ns: &[0, 1, 2],
            direction: &[0; 3],
            sequence_offset: &[0, 100, 200],
            payload_bytes: &[100; 3],
            window_bytes: &[7; 3],
            tsval: &[0; 3],
            tsecr: &[0; 3],
            ip_id: &[1, 2, 3],
            marks: &[0; 3],
            ..Packets::default()
        };
        let came = Packets { ip_id: &[1, 9, 9], window_bytes: &[7, 7, 8], ..sent };
        let arrived = |order, most| {
            let found = compared_segments(&sent, &came, [Some(0), None], order, 256, most);
            found.iter().map(|each| (each.arrived, each.changes)).collect::<Vec<_>>()
        };
        assert_eq!(arrived(Order::Fewest, 2), [(0, 0), (1, 1)]);
        assert_eq!(arrived(Order::Most, 3), [(2, 2), (1, 1), (0, 0)]);
        assert_eq!(arrived(Order::MostOfChanged, 3), [(2, 2), (1, 1)]);
    }
}

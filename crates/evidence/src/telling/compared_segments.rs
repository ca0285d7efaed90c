//! Data segments of both directions as they left and as they arrived, the most telling ones first.

use crate::packets::{Packets, DOWN, UP};
use crate::segments::least_changed::least_changed;
use crate::telling::is_data;

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
        let places = arrived.spread_data_rows(direction, looked_at);
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

impl Packets<'_> {
    /// So many packets with payload in a direction, evenly over all of them, the first and the last among them.
    fn spread_data_rows(&self, direction: u8, most: usize) -> Vec<usize> {
        /// Of so many packets those with payload are counted before it is asked which they are.
        const COUNTED: usize = 256;
        let kinds = self.direction.chunks(COUNTED).zip(self.payload_bytes.chunks(COUNTED));
        let counts: Vec<usize> = kinds
            .map(|(ways, payloads)| {
                let data = ways.iter().zip(payloads).map(|(&way, &bytes)| u32::from(is_data(direction, way, bytes)));
                data.sum::<u32>() as usize
            })
            .collect();
        let ranks = spread(counts.iter().sum(), most);
        let mut wanted = ranks.into_iter().peekable();
        let mut rows = Vec::new();
        let mut before = 0;
        for (chunk, count) in counts.into_iter().enumerate() {
            let Some(&next) = wanted.peek() else { break };
            if next < before + count {
                let is_meant = |&row: &usize| is_data(direction, self.direction[row], self.payload_bytes[row]);
                let data = (chunk * COUNTED..self.len()).filter(is_meant);
                for (rank, row) in (before..before + count).zip(data) {
                    rows.extend(wanted.next_if_eq(&rank).map(|_| row));
                }
            }
            before += count;
        }
        rows
    }
}

/// So many of `count` ranks, evenly over all of them, the first and the last among them.
fn spread(count: usize, most: usize) -> Vec<usize> {
    if count <= most || most < 2 {
        return (0..count.min(most)).collect();
    }
    let (last, parts) = (count - 1, most - 1);
    let step = last as f64 / parts as f64;
    let mut ranks: Vec<usize> =
        (0..parts).map(|part| (part as f64 * step).round_ties_even() as usize).chain([last]).collect();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_spread_from_the_first_to_the_last() {
        assert_eq!(spread(10, 4), [0, 3, 6, 9]);
        assert_eq!(spread(10, 20).len(), 10);
        assert_eq!(spread(10, 1), [0]);
        assert_eq!(spread(0, 4), [0; 0]);
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_ranks(
            (direction, payload_bytes) in vec((0_u8..2, 0_u32..3), 0..1200).prop_map(|rows| rows.into_iter().unzip()),
            most in 0_usize..40,
        ) {
            let (direction, payload_bytes): (Vec<u8>, Vec<u32>) = (direction, payload_bytes);
            let time_ns = vec![0; direction.len()];
            let packets = Packets {
                time_ns: &time_ns, direction: &direction, payload_bytes: &payload_bytes, ..Packets::default()
            };
            let data = packets.data_rows(UP);
            let rows = spread(data.len(), most).into_iter().map(|rank| data[rank] as usize).collect::<Vec<_>>();
            prop_assert_eq!(packets.spread_data_rows(UP, most), rows);
        }
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

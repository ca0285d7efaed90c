//! Data segments that arrived, each beside the emitted one that held its first byte and of which fewest fields changed.

use crate::ascending::Ascending;
use crate::packets::{mark, Packets};

/// An arrived segment, the emitted one beside it, and how many fields of the two differ: extent, IP ID, timestamps and
/// window. Packets are named by their places in their captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastChanged {
    pub arrived: usize,
    pub left: usize,
    pub changes: u8,
}

/// A place of an arrived packet, and its stream offset at the emitter.
#[derive(Clone, Copy)]
struct Arrived {
    place: usize,
    offset: i64,
}

/// Packets at `places` of those that arrived, in this order; without those whose first byte no emitted packet of
/// `direction` holds. `shift` added to an arrived offset gives the emitter's. Of packets with as few changes the first
/// emitted one stands for them.
pub fn least_changed(
    emitted: &Packets<'_>,
    arrived: &Packets<'_>,
    direction: u8,
    shift: i64,
    places: &[usize],
) -> Vec<LeastChanged> {
    let offset_of = |&place: &usize| Some(arrived.sequence_offset.get(place)?.wrapping_add(shift));
    let mut asked: Vec<(i64, usize)> =
        places.iter().enumerate().filter_map(|(number, place)| Some((offset_of(place)?, number))).collect();
    asked.sort_unstable();
    let offsets: Vec<i64> = asked.iter().map(|&(offset, _)| offset).collect();
    // Between these offsets none is asked about; most segments lie there.
    let (mut before, mut next) = (i64::MAX, i64::MIN);
    let mut ascending = Ascending::new(&offsets);
    let mut beside: Vec<Option<LeastChanged>> = vec![None; places.len()];
    let extents = emitted.direction.iter().zip(emitted.payload_bytes).zip(emitted.sequence_offset).enumerate();
    for (left, ((&way, &payload_bytes), &start)) in extents {
        if way != direction || payload_bytes == 0 {
            continue;
        }
        let end = start.saturating_add(i64::from(payload_bytes));
        if before < start && end <= next {
            continue;
        }
        let first = ascending.below(start);
        before = first.checked_sub(1).map_or(i64::MIN, |place| offsets[place]);
        next = offsets.get(first).copied().unwrap_or(i64::MAX);
        for &(offset, number) in asked[first..].iter().take_while(|&&(offset, _)| offset < end) {
            let came = Arrived { place: places[number], offset };
            let changes = changes(emitted, left, arrived, came);
            if beside[number].is_none_or(|best| changes < best.changes) {
                beside[number] = Some(LeastChanged { arrived: came.place, left, changes });
            }
        }
    }
    beside.into_iter().flatten().collect()
}

impl Packets<'_> {
    /// The timestamps, where there are any.
    fn stamps(&self, place: usize) -> Option<(u32, u32)> {
        (self.marks[place] & mark::HAS_TIMESTAMPS != 0).then(|| (self.tsval[place], self.tsecr[place]))
    }
}

fn changes(emitted: &Packets<'_>, left: usize, arrived: &Packets<'_>, came: Arrived) -> u8 {
    let Arrived { place, offset } = came;
    let extent = (emitted.sequence_offset[left], emitted.payload_bytes[left]) != (offset, arrived.payload_bytes[place]);
    u8::from(extent)
        + u8::from(emitted.ip_id[left] != arrived.ip_id[place])
        + u8::from(emitted.stamps(left) != arrived.stamps(place))
        + u8::from(emitted.window_bytes[left] != arrived.window_bytes[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_with_fewest_changes_stands_beside_what_arrived() {
        let (zeros, lengths) = ([0u32; 4], [100u32, 100, 100, 50]);
        let emitted = Packets {
            time_ns: &[0, 1, 2, 3],
            direction: &[0, 0, 0, 1],
            sequence_offset: &[0, 100, 100, 0],
            payload_bytes: &lengths,
            window_bytes: &zeros,
            tsval: &zeros,
            tsecr: &zeros,
            ip_id: &[1, 2, 3, 4],
            marks: &[0; 4],
            ..Packets::default()
        };
        let arrived = Packets {
            time_ns: &[5, 6, 7],
            direction: &[0; 3],
            sequence_offset: &[50, 130, 450],
            payload_bytes: &lengths[..3],
            ip_id: &[3, 9, 3],
            marks: &[0, mark::HAS_TIMESTAMPS, 0],
            ..emitted
        };
        let found = least_changed(&emitted, &arrived, 0, 50, &[0, 1, 2, 7]);
        let beside = |arrived, left, changes| LeastChanged { arrived, left, changes };
        assert_eq!(found, [beside(0, 2, 0), beside(1, 1, 3)]);
        assert_eq!(least_changed(&emitted, &arrived, 1, 50, &[0, 1, 2]), []);
    }
}

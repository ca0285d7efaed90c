//! Data segments that arrived, each beside the emitted one that held its first byte and of which fewest fields changed.

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
    let extents = emitted.extents(direction);
    // A segment that holds a byte begins at most the longest segment's length before it.
    let longest = extents.iter().map(|&(_, place)| i64::from(emitted.payload_bytes[place])).max().unwrap_or(0);
    let beside = |place: usize| {
        let offset = arrived.sequence_offset.get(place)?.wrapping_add(shift);
        let came = Arrived { place, offset };
        let until = extents.partition_point(|&(start, _)| start <= offset);
        let from = extents[..until].partition_point(|&(start, _)| start <= offset.saturating_sub(longest));
        let (changes, left) = extents[from..until]
            .iter()
            .filter(|&&(start, left)| offset < start.saturating_add(i64::from(emitted.payload_bytes[left])))
            .map(|&(_, left)| (changes(emitted, left, arrived, came), left))
            .min()?;
        Some(LeastChanged { arrived: place, left, changes })
    };
    places.iter().filter_map(|&place| beside(place)).collect()
}

impl Packets<'_> {
    /// Where the data packets of a direction begin, with their places, by the beginning.
    fn extents(&self, direction: u8) -> Vec<(i64, usize)> {
        let has_data = |&place: &usize| self.direction[place] == direction && self.payload_bytes[place] > 0;
        let mut found: Vec<(i64, usize)> =
            (0..self.len()).filter(has_data).map(|place| (self.sequence_offset[place], place)).collect();
        // Mostly in order already, which a stable sort is quick at.
        found.sort();
        found
    }

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

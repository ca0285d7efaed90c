//! Pure acknowledgements that the emitter's capture missed, by the gaps that they left in its host's IP identifications.
//!
//! A host that counts its packets of a connection (RFC 6864 leaves it free to) gives each the next number. Where the
//! capture beside it lacks packets, the counter skips, and what the far capture holds with a skipped number, of the
//! same place in the order of acknowledgements, was sent by that host.

use crate::ascending::Ascending;
use crate::segments::columns::{Flow, Segment};

/// Numbers are counted modulo this.
const NUMBERS: i64 = 1 << 16;

/// The first and the last identification that a host gave while it acknowledged up to one place.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    first: i64,
    last: i64,
}

/// Divides arrived acknowledgements into those with a number that the emitter's counter skipped at their place, between
/// neighbours that are no more than `most` numbers apart, and all others. What the emitter's capture holds was not
/// skipped.
pub fn part_skipped(arrived: Vec<Segment>, emitted: &Flow, most: i64) -> (Vec<Segment>, Vec<Segment>) {
    let named = |segment: &Segment| (segment.acknowledgement, segment.ip_id);
    let mut sent: Vec<(i64, i64)> = emitted.acknowledgements.iter().map(named).collect();
    if most <= 0 {
        return (Vec::new(), arrived);
    }
    // Mostly in order already, which a stable sort is quick at.
    sent.sort();
    let mut held = Ascending::new(&sent);
    let mut is_held = |segment: &Segment| held.has(named(segment));
    if arrived.iter().all(&mut is_held) {
        return (Vec::new(), arrived);
    }
    let counter = Counter::of(emitted);
    arrived.into_iter().partition(|segment| !is_held(segment) && counter.skipped(segment, most))
}

/// How a host's identifications ran over what it acknowledged, as its own capture shows it: by ascending place.
#[derive(Clone, Debug, Default)]
struct Counter(Vec<(i64, Numbered)>);

impl Counter {
    /// Reads the segments of one flow, in capture order.
    fn of(emitted: &Flow) -> Self {
        let mut read: Vec<(i64, Numbered)> =
            [&emitted.data, &emitted.acknowledgements].into_iter().flat_map(|class| numbered_places(class)).collect();
        read.sort_by_key(|&(place, _)| place);
        read.dedup_by(|(place, acknowledged), (same, with_data)| {
            if place != same {
                return false;
            }
            if steps(acknowledged.first, with_data.first) < NUMBERS / 2 {
                with_data.first = acknowledged.first;
            }
            if steps(with_data.last, acknowledged.last) < NUMBERS / 2 {
                with_data.last = acknowledged.last;
            }
            true
        });
        Self(read)
    }

    fn skipped(&self, arrived: &Segment, most: i64) -> bool {
        let place = arrived.acknowledgement;
        let before = self.0.partition_point(|&(other, _)| other < place);
        let after = before + usize::from(self.0.get(before).is_some_and(|&(other, _)| other == place));
        let (Some((_, before)), Some((_, after))) = (before.checked_sub(1).map(|at| self.0[at]), self.0.get(after))
        else {
            return false;
        };
        let width = steps(before.last, after.first);
        let at = steps(before.last, arrived.ip_id);
        0 < at && at < width && width <= most
    }
}

/// The first and the last identification at each place that segments acknowledge, ascending.
fn numbered_places(class: &[Segment]) -> Vec<(i64, Numbered)> {
    let mut read: Vec<(i64, i64)> = class.iter().map(|segment| (segment.acknowledgement, segment.ip_id)).collect();
    read.sort_by_key(|&(place, _)| place);
    let places = read.chunk_by(|one, next| one.0 == next.0);
    places.map(|ids| (ids[0].0, Numbered { first: ids[0].1, last: ids[ids.len() - 1].1 })).collect()
}

/// From one identification up to another.
fn steps(from: i64, to: i64) -> i64 {
    to.wrapping_sub(from).rem_euclid(NUMBERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn numbered(place: usize, first: i64) -> Segment {
        let place = place as i64;
        Segment { acknowledgement: 100 * place, ip_id: (first + place) % NUMBERS, ..Segment::default() }
    }

    fn flow(acknowledgements: Vec<Segment>) -> Flow {
        Flow { acknowledgements, ..Flow::default() }
    }

    fn is_skipped(arrived: &Segment, emitted: &Flow, most: i64) -> bool {
        let (skipped, others) = part_skipped(vec![*arrived], emitted, most);
        assert_eq!(skipped.len() + others.len(), 1);
        skipped.len() == 1
    }

    proptest! {
        #[test]
        fn what_the_capture_missed_between_its_packets_was_skipped(
            kept in vec(any::<bool>(), 2..60), first in 0..NUMBERS,
        ) {
            let all: Vec<Segment> = (0..kept.len()).map(|place| numbered(place, first)).collect();
            let shown: Vec<usize> = (0..kept.len()).filter(|&place| kept[place]).collect();
            let emitted = flow(shown.iter().map(|&place| all[place]).collect());
            for (place, segment) in all.iter().enumerate() {
                let inside = shown.first().is_some_and(|&low| low < place)
                    && shown.last().is_some_and(|&high| place < high);
                prop_assert_eq!(is_skipped(segment, &emitted, 100), !kept[place] && inside);
                // Another host's counter runs elsewhere.
                let foreign = Segment { ip_id: (segment.ip_id + 200) % NUMBERS, ..*segment };
                prop_assert!(!is_skipped(&foreign, &emitted, 100));
            }
        }

        #[test]
        fn a_capture_that_lacks_nothing_skips_nothing(
            count in 2_usize..60, first in 0..NUMBERS, foreign in 0..NUMBERS, place in 0_usize..60,
        ) {
            let emitted = flow((0..count).map(|place| numbered(place, first)).collect());
            let arrived = Segment { acknowledgement: 100 * place as i64 + 50, ip_id: foreign, ..Segment::default() };
            prop_assert!(!is_skipped(&arrived, &emitted, NUMBERS));
        }
    }

    #[test]
    fn wide_gaps_show_nothing() {
        let emitted = flow(vec![numbered(0, 7), numbered(50, 7)]);
        assert!(is_skipped(&numbered(20, 7), &emitted, 50));
        assert!(!is_skipped(&numbered(20, 7), &emitted, 49));
    }

    #[test]
    fn copies_of_one_acknowledgement_are_told_apart() {
        let copy = |ip_id| Segment { acknowledgement: 100, ip_id, ..Segment::default() };
        let emitted = flow(vec![numbered(0, 0), copy(1), copy(3), Segment { ip_id: 5, ..numbered(2, 0) }]);
        let found: Vec<i64> = (0..7).filter(|&id| is_skipped(&copy(id), &emitted, 50)).collect();
        assert_eq!(found, [2, 4]);
    }

    #[test]
    fn data_count_as_well() {
        let sent = Segment { length: 10, ..numbered(3, 0) };
        let emitted = Flow { data: vec![sent], acknowledgements: vec![numbered(1, 0)] };
        assert!(is_skipped(&numbered(2, 0), &emitted, 50));
        assert!(!is_skipped(&numbered(4, 0), &emitted, 50));
    }
}

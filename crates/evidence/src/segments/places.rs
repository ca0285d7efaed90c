//! Where pure acknowledgements stand at both ends of a flow, among the ends of the data that they could acknowledge.

use crate::ascending::Ascending;
use crate::distinct::{distinct, most_common};
use crate::segments::columns::Segment;

/// Ranges of a stream, ascending and disjoint, of which a capture missed the data: without their start, with their end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen(pub Vec<(i64, i64)>);

impl Unseen {
    /// These ranges and some places outside of them.
    pub fn with_places(mut self, places: Vec<i64>) -> Self {
        let mut added = distinct(places);
        added.retain(|&place| !self.holds(place));
        self.0.extend(added.into_iter().map(|place| (place.wrapping_sub(1), place)));
        self.0.sort_unstable();
        self
    }

    fn holds(&self, place: i64) -> bool {
        let before = self.0.partition_point(|range| range.0 < place);
        before > 0 && place <= self.0[before - 1].1
    }
}

/// The acknowledgement numbers that a capture would hold had it been sent them.
///
/// From the first to the last of its pure acknowledgements, and between the ends of what its data carried: at those
/// ends themselves a pure acknowledgement may have gone before the capture began, or after it ended.
#[derive(Clone, Copy, Debug)]
pub struct KnownSpan {
    alone: Option<(i64, i64)>,
    every: Option<(i64, i64)>,
}

impl KnownSpan {
    /// The span of pure acknowledgements (`alone`) and of those that data carried.
    pub fn new(alone: impl Iterator<Item = i64>, carried: impl Iterator<Item = i64>) -> Self {
        let alone = extremes(alone);
        let ends = [alone, extremes(carried)].into_iter().flatten();
        Self { alone, every: extremes(ends.flat_map(|(low, high)| [low, high])) }
    }

    pub fn holds(&self, number: i64) -> bool {
        self.alone.is_some_and(|(low, high)| (low..=high).contains(&number))
            || self.every.is_some_and(|(low, high)| low < number && number < high)
    }

    /// Pure acknowledgements that arrived, in their order, without those that may have gone before the emitter's capture
    /// began or after it ended: more than it holds (`emitted`) of the first number or the last one, which duplicates
    /// repeat. Where data show that it held more numbers before or behind, or `shown_ends` says that the connection
    /// begins and ends within it, such ones were never sent, and stay.
    pub fn without_surplus_at_its_ends(
        &self,
        arrived: Vec<Segment>,
        emitted: &[Segment],
        shown_ends: [bool; 2],
    ) -> Vec<Segment> {
        let (Some(alone), Some(every)) = (self.alone, self.every) else {
            return arrived;
        };
        let count = |segments: &[Segment], number| segments.iter().filter(|one| one.acknowledgement == number).count();
        let surplus = |number, is_end| {
            let more = count(&arrived, number).saturating_sub(count(emitted, number));
            if is_end {
                more
            } else {
                0
            }
        };
        let [begins, ends] = shown_ends;
        let mut early = surplus(alone.0, !begins && alone.0 == every.0);
        let late = surplus(alone.1, !ends && alone.1 == every.1);
        if early == 0 && late == 0 {
            return arrived;
        }
        let mut left = count(emitted, alone.1);
        let is_kept = |one: &Segment| {
            let number = one.acknowledgement;
            if alone.0 == alone.1 && number == alone.0 {
                return false; // before or after: unknown
            }
            if number == alone.0 && early > 0 {
                early -= 1;
                return false;
            }
            if number == alone.1 && late > 0 {
                let stays = left > 0;
                left = left.saturating_sub(1);
                return stays;
            }
            true
        };
        arrived.into_iter().filter(is_kept).collect()
    }
}

fn extremes(mut values: impl Iterator<Item = i64>) -> Option<(i64, i64)> {
    let first = values.next()?;
    Some(values.fold((first, first), |(low, high), value| (low.min(value), high.max(value))))
}

/// Places, each counted once, where acknowledgements were emitted and where they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PositionCounts {
    /// Where they were emitted, and where data end from the first to the last of either side.
    pub emitted: usize,
    pub possible: usize,
    /// Where they arrived, those where they were emitted too, and those of these to which the emitter's stride was not
    /// its most common one.
    pub arrived: usize,
    pub hits: usize,
    pub irregular: usize,
}

/// Whether acknowledgements stand where the emitter put them; None where there is nothing to compare.
///
/// `boundaries` are the ends of data that could have been acknowledged, ascending, each once. What stands in the ranges
/// `unseen` does not count: the capture that missed data there perhaps missed acknowledgements too.
pub fn count_positions(
    emitted: Vec<i64>,
    arrived: Vec<i64>,
    boundaries: &[i64],
    unseen: &Unseen,
) -> Option<PositionCounts> {
    let known = distinct(emitted);
    let mut asked = distinct(arrived);
    asked.retain(|&place| !unseen.holds(place));
    let (first, last) = (*asked.first()?, *asked.last()?);
    let low = known.first().map_or(first, |&place| place.min(first));
    let high = known.last().map_or(last, |&place| place.max(last));
    let possible = within(boundaries, low, high).len();
    if possible == 0 {
        return None;
    }
    let strides: Vec<i64> = known.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let (common, _) = most_common(&strides);
    let mut counts = PositionCounts { emitted: known.len(), possible, arrived: asked.len(), ..Default::default() };
    let mut places = Ascending::new(&known);
    for place in asked {
        if let Some(at) = places.last_of(place) {
            counts.hits += 1;
            counts.irregular += usize::from(at > 0 && strides[at - 1] != common);
        }
    }
    Some(counts)
}

/// Places of one flow, each counted once: acknowledged at both ends, where they were emitted only, where they arrived
/// only, and at neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceCounts {
    pub both: usize,
    pub emitted_only: usize,
    pub arrived_only: usize,
    pub neither: usize,
}

/// Counts places of acknowledgements and ends of data from the first to the last acknowledgement of either side;
/// `boundaries` and `unseen` as for `count_positions`.
pub fn count_places(emitted: Vec<i64>, arrived: Vec<i64>, boundaries: &[i64], unseen: &Unseen) -> PlaceCounts {
    let (left, came) = (distinct(emitted), distinct(arrived));
    let low = left.first().into_iter().chain(came.first()).min();
    let high = left.last().into_iter().chain(came.last()).max();
    let ends = low.zip(high).map_or(boundaries, |(&low, &high)| within(boundaries, low, high));
    let mut counts = PlaceCounts::default();
    let [mut left, mut came, mut ends] = [&left, &came, ends].map(|places| places.iter().copied().peekable());
    while let Some(place) = [left.peek(), came.peek(), ends.peek()].into_iter().flatten().copied().min() {
        let stands = [&mut left, &mut came, &mut ends].map(|places| places.next_if_eq(&place).is_some());
        if unseen.holds(place) {
            continue;
        }
        match (stands[0], stands[1]) {
            (true, true) => counts.both += 1,
            (true, false) => counts.emitted_only += 1,
            (false, true) => counts.arrived_only += 1,
            (false, false) => counts.neither += 1,
        }
    }
    counts
}

/// The ascending values from `low` to `high`.
fn within(values: &[i64], low: i64, high: i64) -> &[i64] {
    let end = values.partition_point(|&value| value <= high);
    let begin = values.partition_point(|&value| value < low).min(end);
    &values[begin..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_beyond_an_end_of_the_capture_are_not_held_against_it() {
        let acks = |rows: &[(i64, i64)]| -> Vec<Segment> {
            rows.iter()
                .map(|&(acknowledgement, tsval)| Segment { acknowledgement, tsval, ..Segment::default() })
                .collect()
        };
        let kept = |emitted: &[(i64, i64)], carried: &[i64], arrived: &[(i64, i64)]| -> Vec<i64> {
            let emitted = acks(emitted);
            let alone = emitted.iter().map(|one| one.acknowledgement);
            let span = KnownSpan::new(alone, carried.iter().copied());
            let kept = span.without_surplus_at_its_ends(acks(arrived), &emitted, [false; 2]);
            kept.iter().map(|one| one.tsval).collect()
        };
        let arrived = [(100, 1), (100, 2), (100, 3), (200, 4), (200, 5), (300, 6), (300, 7)];
        let emitted = [(100, 3), (200, 4), (300, 6)];
        // In the middle of the capture a second one was never sent.
        assert_eq!(kept(&emitted, &[], &arrived), [3, 4, 5, 6]);
        assert_eq!(kept(&emitted, &[50], &arrived), [1, 2, 3, 4, 5, 6]);
        assert_eq!(kept(&emitted, &[50, 400], &arrived), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(kept(&emitted[..1], &[], &arrived[..3]), [0; 0]);
        assert_eq!(kept(&emitted[..1], &[], &arrived[..1]), [1]);
        assert_eq!(kept(&[], &[], &arrived[..1]), [1]);
        let emitted = acks(&emitted);
        let span = KnownSpan::new(emitted.iter().map(|one| one.acknowledgement), [].into_iter());
        for (shown_ends, count) in [([false, false], 4), ([true, false], 6), ([false, true], 5), ([true, true], 7)] {
            assert_eq!(span.without_surplus_at_its_ends(acks(&arrived), &emitted, shown_ends).len(), count);
        }
    }

    #[test]
    fn places_are_counted_where_both_captures_look() {
        let ends = [100, 200, 300, 400, 500];
        let found = count_places(vec![100, 300], vec![200, 300, 400], &ends, &Unseen::default());
        assert_eq!(found, PlaceCounts { both: 1, emitted_only: 1, arrived_only: 2, neither: 0 });
        let unseen = Unseen(vec![(150, 250)]).with_places(vec![400, 200, 400]);
        assert_eq!(unseen, Unseen(vec![(150, 250), (399, 400)]));
        let found = count_places(vec![100, 300], vec![200, 300, 400], &ends, &unseen);
        assert_eq!(found, PlaceCounts { both: 1, emitted_only: 1, arrived_only: 0, neither: 0 });
        // Bytes 150 to 250 were missed, and so was whatever acknowledged 200.
        let unseen = Unseen(vec![(150, 250)]);
        let found = count_places(vec![100, 300], vec![200, 300], &ends[..3], &unseen);
        assert_eq!(found, PlaceCounts { both: 1, emitted_only: 1, arrived_only: 0, neither: 0 });
    }

    #[test]
    fn hits_at_strides_that_the_emitter_seldom_takes_are_irregular() {
        let ends: Vec<i64> = (1..=9).map(|number| 100 * number).collect();
        let found = count_positions(vec![200, 400, 500, 700], vec![200, 300, 500], &ends, &Unseen::default());
        let wanted = PositionCounts { emitted: 4, possible: 6, arrived: 3, hits: 2, irregular: 1 };
        assert_eq!(found, Some(wanted));
        assert_eq!(count_positions(vec![200], vec![], &ends, &Unseen::default()), None);
        assert_eq!(count_positions(vec![20], vec![30], &ends, &Unseen::default()), None);
    }

    #[test]
    fn numbers_at_the_ends_of_what_data_carried_are_not_looked_for() {
        let held = |alone: &[i64], carried: &[i64]| -> Vec<i64> {
            let span = KnownSpan::new(alone.iter().copied(), carried.iter().copied());
            [0, 100, 200, 300].into_iter().filter(|&number| span.holds(number)).collect()
        };
        assert_eq!(held(&[], &[0, 300]), [100, 200]);
        assert_eq!(held(&[0, 100], &[0, 300]), [0, 100, 200]);
        assert!(held(&[], &[]).is_empty());
    }
}

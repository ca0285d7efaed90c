//! When a byte was captured and when it was acknowledged: lookups in the staircases of one flow at one vantage.

use crate::ascending::Ascending;
use crate::flows::staircase::{AcknowledgementSteps, ByteRanges, DataRanges};
use crate::packets::{bearing, flag, Packets, DOWN, UP};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time that is not known, or never came.
pub const NEVER: i64 = i64::MAX;

/// The SYN is looked for in so many first packets.
const OPENING_PACKETS: usize = 64;

/// Looks up the times of bytes in disjoint, ascending ranges.
#[derive(Clone, Debug)]
pub struct TimesOfBytes<'a> {
    ranges: &'a ByteRanges,
    starts: Ascending<'a, i64>,
}

impl TimesOfBytes<'_> {
    /// Time of a byte; `NEVER` where no range holds it.
    #[inline]
    pub fn at(&mut self, offset: i64) -> i64 {
        match self.starts.up_to(offset).checked_sub(1) {
            Some(place) if offset < self.ranges.end[place] => self.ranges.time_ns[place],
            _ => NEVER,
        }
    }
}

impl ByteRanges {
    /// Lookups, each of which begins where the one before ended.
    pub fn times(&self) -> TimesOfBytes<'_> {
        TimesOfBytes { ranges: self, starts: Ascending::new(&self.start) }
    }

    /// Bytes that disjoint ranges hold.
    pub fn covered_bytes(&self) -> i64 {
        self.rows().fold(0, |bytes, (start, end, _)| bytes.wrapping_add(end.wrapping_sub(start)))
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = (i64, i64, i64)> + ExactSizeIterator + '_ {
        let bounds = self.start.iter().zip(&self.end).zip(&self.time_ns);
        bounds.map(|((&start, &end), &time_ns)| (start, end, time_ns))
    }

    /// Neighbours: where one of the ascending ranges ends and where the next one starts.
    fn gaps(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.end
            .iter()
            .zip(self.start.iter().skip(1))
            .map(|(&end, &start)| (end, start))
            .filter(|(end, start)| end < start)
    }
}

impl FromIterator<(i64, i64, i64)> for ByteRanges {
    /// From start, end and time.
    fn from_iter<I: IntoIterator<Item = (i64, i64, i64)>>(rows: I) -> Self {
        let mut ranges = ByteRanges::default();
        rows.into_iter().for_each(|(start, end, time_ns)| ranges.push(start, end, time_ns));
        ranges
    }
}

/// Cumulative acknowledgements of a flow's data. Values at or below `floor` were reached before the capture began, or
/// may have been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AckTimes {
    pub steps: AcknowledgementSteps,
    pub floor: i64,
}

impl AckTimes {
    /// `is_opened`: the capture holds a SYN, so that acknowledgements before the first one of data are known.
    pub(crate) fn of(steps: AcknowledgementSteps, is_opened: bool) -> Self {
        let first = steps.value.first().copied().unwrap_or(0);
        AckTimes { steps, floor: if is_opened { first.min(0) } else { first } }
    }

    /// Lookups, each of which begins where the one before ended.
    pub fn times(&self) -> TimesOfAcks<'_> {
        TimesOfAcks { acks: self, values: Ascending::new(&self.steps.value) }
    }
}

/// Looks up when acknowledgements were seen.
#[derive(Clone, Debug)]
pub struct TimesOfAcks<'a> {
    acks: &'a AckTimes,
    values: Ascending<'a, i64>,
}

impl TimesOfAcks<'_> {
    /// When an acknowledgement of at least `value` was first seen; `NEVER` where unknown.
    #[inline]
    pub fn reaching(&mut self, value: i64) -> i64 {
        match self.acks.steps.time_ns.get(self.values.below(value)) {
            Some(&time_ns) if value > self.acks.floor => time_ns,
            _ => NEVER,
        }
    }

    /// Whether one of exactly this value was seen that carried no payload, SYN, FIN or RST.
    #[inline]
    pub fn has_plain(&mut self, value: i64) -> bool {
        let (steps, place) = (&self.acks.steps, self.values.below(value));
        value > self.acks.floor && steps.value.get(place) == Some(&value) && steps.plain[place]
    }
}

/// Which bytes lie in at least one of some ranges, in any order and overlapping.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    start: Vec<i64>,
    reach: Vec<i64>,
}

impl Coverage {
    /// From start and end of each range.
    pub fn of(ranges: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut ranges: Vec<(i64, i64)> = ranges.collect();
        ranges.sort_unstable();
        let mut coverage = Coverage::default();
        let mut reached = i64::MIN;
        for (start, end) in ranges {
            reached = reached.max(end);
            coverage.start.push(start);
            coverage.reach.push(reached);
        }
        coverage
    }

    pub fn holds(&self, offset: i64) -> bool {
        let before = self.start.partition_point(|&start| start <= offset);
        before.checked_sub(1).is_some_and(|place| self.reach[place] > offset)
    }
}

impl DataRanges {
    /// First arrivals at the receiver; `None` where nothing filled a hole, and they are what lay beyond all before.
    pub(crate) fn first_arrivals(&self) -> Option<ByteRanges> {
        let fillers = hole_fillers(&self.beyond, &self.below);
        if fillers.is_empty() {
            return None;
        }
        let mut rows: Vec<_> = self.beyond.rows().chain(fillers).collect();
        rows.sort_by_key(|&(start, _, _)| start);
        Some(rows.into_iter().collect())
    }
}

impl Packets<'_> {
    /// Whether the capture holds a reset, or the FINs of both ends.
    pub(crate) fn is_closed(&self) -> bool {
        let mut closed = [false; 2];
        for place in bearing(self.flags, flag::FIN | flag::RST) {
            if self.flags[place] & flag::RST != 0 {
                return true;
            }
            closed[usize::from(self.direction[place] == DOWN)] = true;
        }
        closed == [true; 2]
    }

    /// Whether the capture holds packets of both hosts.
    pub(crate) fn go_both_ways(&self) -> bool {
        self.direction.contains(&UP) && self.direction.contains(&DOWN)
    }

    /// Whether the capture holds a SYN of the connection.
    pub(crate) fn is_opened(&self) -> bool {
        self.flags.iter().take(OPENING_PACKETS).any(|&flags| flags & flag::SYN != 0)
    }
}

/// Start, end and time of what arrived first below the highest offset reached, ascending and disjoint: `late` clipped to
/// the holes of `beyond`.
///
/// A segment may span several holes; a filler of another segmentation is rare, so it is cut to the first of them.
fn hole_fillers(beyond: &ByteRanges, late: &ByteRanges) -> Vec<(i64, i64, i64)> {
    if late.start.is_empty() {
        return Vec::new();
    }
    let holes: Vec<(i64, i64)> = beyond.gaps().collect();
    let clipped = late.rows().filter_map(|(start, end, time_ns)| {
        let &(low, high) = holes.get(holes.partition_point(|&(_, high)| high <= start))?;
        (end > low).then(|| (start.max(low), end.min(high), time_ns))
    });
    let mut fillers: Vec<(i64, i64, i64)> = clipped.collect();
    // Capture order decides among equal copies.
    fillers.sort_by_key(|&(low, high, _)| (low, high));
    fillers.dedup_by_key(|&mut (low, high, _)| (low, high));
    if fillers.iter().zip(fillers.iter().skip(1)).any(|(before, after)| after.0 < before.1) {
        return earliest(&fillers);
    }
    fillers
}

/// The earliest time of every byte where ranges, in order of their starts, overlap; cut wherever one starts or ends.
fn earliest(ranges: &[(i64, i64, i64)]) -> Vec<(i64, i64, i64)> {
    let mut edges: Vec<i64> = ranges.iter().flat_map(|&(low, high, _)| [low, high]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut coming = ranges.iter().peekable();
    let mut open = BinaryHeap::new();
    let mut pieces = Vec::with_capacity(edges.len());
    for (&start, &end) in edges.iter().zip(edges.iter().skip(1)) {
        while let Some(&(_, high, time_ns)) = coming.next_if(|range| range.0 <= start) {
            open.push(Reverse((time_ns, high)));
        }
        while open.peek().is_some_and(|Reverse((_, high))| *high <= start) {
            open.pop();
        }
        if let Some(&Reverse((time_ns, _))) = open.peek() {
            pieces.push((start, end, time_ns));
        }
    }
    pieces
}

/// Data packets that a capture admits to have missed, estimated from bytes that it shows acknowledged and does not hold,
/// and those that it holds.
///
/// `from_start`: the capture holds the SYN, so that the stream should begin at offset 0. The last offset acknowledged
/// may be the FIN's, which is no byte, and is not counted.
pub fn missed_packets(held: &ByteRanges, acks: &AckTimes, from_start: bool) -> (f64, usize) {
    let (Some(&held_start), Some(&held_end)) = (held.start.first(), held.end.last()) else {
        return (0.0, 0);
    };
    let count = held.start.len();
    let Some(&acknowledged) = acks.steps.value.last() else {
        return (0.0, count);
    };
    let top = if acknowledged == held_end.saturating_add(1) { held_end } else { acknowledged };
    let begin = if from_start { 0 } else { held_start };
    let packets_per_byte = count as f64 / held.covered_bytes().max(1) as f64;
    let ranges = [(begin, held_start)].into_iter().chain(held.gaps()).chain([(held_end, top)]);
    let lost = ranges
        .map(|(start, end)| (start, end.min(top)))
        .filter(|(start, end)| start < end)
        .map(|(start, end)| (end.wrapping_sub(start) as f64 * packets_per_byte).ceil())
        .sum();
    (lost, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges(rows: &[(i64, i64, i64)]) -> ByteRanges {
        rows.iter().copied().collect()
    }

    #[test]
    fn what_fills_a_hole_counts_when_it_arrives_first() {
        let packets = Packets {
            time_ns: &[1, 2, 3, 4, 5],
            direction: &[1; 5],
            sequence_offset: &[0, 300, 150, 100, 100],
            acknowledgement_offset: &[0; 5],
            payload_bytes: &[100, 100, 100, 120, 200],
            flags: &[flag::ACK; 5],
            ..Packets::default()
        };
        let arrived = packets.first_arrivals(1);
        let offsets = [-1, 0, 100, 149, 150, 219, 249, 250, 299, 300, 400];
        let mut times = arrived.times();
        assert_eq!(offsets.map(|offset| times.at(offset)), [NEVER, 1, 4, 4, 3, 3, 3, 5, 5, 2, NEVER]);
    }

    #[test]
    fn values_from_before_the_capture_have_no_time() {
        let steps = AcknowledgementSteps { value: vec![500, 600], time_ns: vec![1, 2], plain: vec![true, true] };
        let acks = AckTimes { steps, floor: 500 };
        let mut times = acks.times();
        assert_eq!([400, 500, 501, 600, 601].map(|value| times.reaching(value)), [NEVER, NEVER, 2, 2, NEVER]);
        assert_eq!([500, 550, 600].map(|value| times.has_plain(value)), [false, false, true]);
    }

    #[test]
    fn bytes_acknowledged_and_not_held_are_missed() {
        let held = ranges(&[(0, 100, 1), (200, 300, 2)]);
        let steps = AcknowledgementSteps { value: vec![400], time_ns: vec![3], plain: vec![true] };
        let acks = AckTimes { steps, floor: 0 };
        assert_eq!(missed_packets(&held, &acks, true), (2.0, 2));
        assert_eq!(missed_packets(&held, &AckTimes::default(), true), (0.0, 2));
    }

    proptest! {
        #[test]
        fn overlapping_ranges_give_each_byte_its_earliest_time(
            rows in proptest::collection::vec((0i64..60, 1i64..20, 0i64..9), 1..20)
        ) {
            let mut rows: Vec<_> = rows.into_iter().map(|(start, size, time)| (start, start + size, time)).collect();
            rows.sort_unstable();
            let found = ranges(&earliest(&rows));
            let coverage = Coverage::of(rows.iter().map(|&(start, end, _)| (start, end)));
            let mut found = found.times();
            for byte in -1..90 {
                let time_ns = found.at(byte);
                let times = rows.iter().filter(|&&(start, end, _)| start <= byte && byte < end).map(|row| row.2);
                prop_assert_eq!(time_ns, times.min().unwrap_or(NEVER));
                prop_assert_eq!(coverage.holds(byte), time_ns != NEVER);
            }
        }
    }
}

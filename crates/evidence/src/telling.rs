//! Which packets of a connection show something best.

pub mod compared_segments;
pub mod flow_rows;
pub mod held_acknowledgements;
mod least_windows;
pub mod soonest_acknowledgements;

use crate::ascending::Ascending;
use crate::flows::byte_times::NEVER;
use crate::flows::staircase::ByteRanges;
use crate::packets::{bearing, mark, Packets};
use std::cmp::Ordering;

/// Places of high scores above `least`, the highest first: of the scores above it in `most` stretches, as even as can be,
/// the highest of each, of equal ones the first. NaN never counts, what is infinite as the widest number.
pub fn strongest(score: &[f64], most: usize, least: f64) -> Vec<usize> {
    let counting: Vec<usize> =
        (0..score.len()).filter(|&place| score[place].max(f64::MIN) > least && !score[place].is_nan()).collect();
    let parts = most.min(counting.len());
    let mut rest = counting.as_slice();
    let mut best = Vec::with_capacity(parts);
    for part in 0..parts {
        let size = counting.len() / parts + usize::from(part < counting.len() % parts);
        let (own, behind) = rest.split_at(size);
        rest = behind;
        best.extend(own.iter().copied().reduce(|best, next| if score[next] > score[best] { next } else { best }));
    }
    best.sort_by(|&one, &two| score[two].partial_cmp(&score[one]).unwrap_or(Ordering::Equal));
    best
}

/// Rows of acknowledgements of the data of `direction` that acknowledge more than all before, and how far they do.
pub(crate) fn advancing_acknowledgements<'a>(
    packets: &Packets<'a>,
    direction: u8,
) -> impl Iterator<Item = (usize, i64)> + use<'a> {
    let mut most = 0;
    let rows = packets.direction.iter().zip(packets.acknowledgement_offset).enumerate();
    rows.filter_map(move |(row, (&way, &value))| {
        let advances = way != direction && value > most;
        most = if advances { value } else { most };
        advances.then_some((row, value))
    })
}

/// Looks up which of ascending, disjoint arrivals brought the last of the bytes below a place in a stream.
#[derive(Debug)]
pub(crate) struct LastArrivals<'a> {
    arrivals: &'a ByteRanges,
    /// By arrival the latest one up to it; None where that is itself.
    latest: Option<Vec<usize>>,
    starts: Ascending<'a, i64>,
}

impl<'a> LastArrivals<'a> {
    pub(crate) fn new(arrivals: &'a ByteRanges) -> Self {
        let mut last = 0;
        let latest = arrivals.time_ns.iter().enumerate().map(|(place, &time_ns)| {
            last = if time_ns >= arrivals.time_ns[last] { place } else { last };
            last
        });
        let latest = (!arrivals.time_ns.is_sorted()).then(|| latest.collect());
        LastArrivals { arrivals, latest, starts: Ascending::new(&arrivals.start) }
    }

    /// Its place; `None` where that is not known.
    #[inline]
    pub(crate) fn below(&mut self, value: i64) -> Option<usize> {
        let place = self.starts.below(value).checked_sub(1)?;
        let latest = self.latest.as_ref().map_or(place, |latest| latest[place]);
        (value <= self.arrivals.end[place] && self.arrivals.time_ns[latest] != NEVER).then_some(latest)
    }
}

/// Marks of packets whose payload does not lie beyond all before, nor fills a hole.
const AGAIN: u16 = mark::RETRANSMISSION | mark::DUPLICATE | mark::KEEP_ALIVE | mark::ZERO_WINDOW_PROBE;

/// Whether a packet that goes `way` is one of `direction` with payload.
#[inline]
fn is_data(direction: u8, way: u8, payload_bytes: u32) -> bool {
    way == direction && payload_bytes > 0
}

impl Packets<'_> {
    /// Packets with payload in a direction.
    pub fn data_rows(&self, direction: u8) -> Vec<i64> {
        let rows = self.direction.iter().zip(self.payload_bytes);
        rows_where(rows, |(&way, &payload_bytes)| is_data(direction, way, payload_bytes))
    }

    /// Packets of a direction whose payload lies beyond all before, or fills a hole.
    pub fn first_copies(&self, direction: u8) -> Vec<i64> {
        let rows = self.direction.iter().zip(self.payload_bytes).zip(self.marks);
        rows_where(rows, |((&way, &payload_bytes), &marks)| {
            is_data(direction, way, payload_bytes) && marks & AGAIN == 0
        })
    }

    /// Packets that acknowledge more of the data of `direction` than any before.
    pub fn acknowledging_rows(&self, direction: u8) -> Vec<i64> {
        let mut most = 0;
        let rows = self.direction.iter().zip(self.acknowledgement_offset);
        rows_where(rows, |(&way, &acknowledged)| {
            let is_new = way != direction && acknowledged > most;
            most = if is_new { acknowledged } else { most };
            is_new
        })
    }

    /// The first packet of a direction that bears any of these flags.
    pub fn first_flagged(&self, direction: u8, flags: u16) -> Option<usize> {
        bearing(self.flags, flags).find(|&row| self.direction[row] == direction)
    }

    /// The first packet that carries a byte of the stream of `direction`.
    pub fn row_of_byte(&self, direction: u8, offset: i64) -> Option<usize> {
        self.row_of_byte_from(0, direction, offset)
    }

    /// The same of the packets from a place on.
    fn row_of_byte_from(&self, place: usize, direction: u8, offset: i64) -> Option<usize> {
        let mut rows = self.sequence_offset.iter().zip(self.direction).zip(self.payload_bytes).skip(place);
        let further = rows.position(|((&start, &way), &payload_bytes)| {
            way == direction && start <= offset && offset < start.saturating_add(payload_bytes.into())
        })?;
        Some(place + further)
    }
}

/// Numbers of the rows that are meant.
fn rows_where<T>(rows: impl Iterator<Item = T>, mut is_meant: impl FnMut(T) -> bool) -> Vec<i64> {
    (0..).zip(rows).filter_map(|(number, row)| is_meant(row).then_some(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_each_stretch_is_named_the_highest_of_all_first() {
        let score = [1.0, f64::NAN, 3.0, 0.0, 3.0, 7.0, 2.0];
        assert_eq!(strongest(&score, 2, 0.0), [5, 2]);
        assert_eq!(strongest(&score, 9, 2.0), [5, 2, 4]);
        assert_eq!(strongest(&score, 1, 7.0), [0; 0]);
        assert_eq!(strongest(&[f64::NAN, f64::NEG_INFINITY], 3, f64::NEG_INFINITY), [1]);
    }

    #[test]
    fn the_last_of_the_bytes_may_be_an_early_one_that_came_late() {
        let arrivals: ByteRanges = [(0, 10, 5), (10, 20, 9), (20, 30, 9), (40, 50, 7)].into_iter().collect();
        let mut last = LastArrivals::new(&arrivals);
        let found = [0, 1, 10, 15, 30, 35, 45].map(|value| last.below(value));
        assert_eq!(found, [None, Some(0), Some(0), Some(1), Some(2), None, Some(2)]);
        assert_eq!(LastArrivals::new(&ByteRanges::default()).below(5), None);
    }
}

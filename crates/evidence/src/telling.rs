//! Which packets of a connection show something best.

pub mod compared_segments;
pub mod flow_rows;
pub mod soonest_acknowledgements;

use crate::ascending::Ascending;
use crate::flows::byte_times::NEVER;
use crate::flows::staircase::ByteRanges;
use crate::packets::{mark, Packets};
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

/// Which of the ascending, disjoint `arrivals` brought the last of the bytes below each of some places in a stream; -1
/// where that is not known.
pub fn last_arrivals(arrivals: &ByteRanges, acknowledged: &[i64]) -> Vec<i64> {
    let mut brought = Vec::with_capacity(arrivals.start.len());
    let mut last = None;
    for (place, &time_ns) in arrivals.time_ns.iter().enumerate() {
        let is_later = last.is_none_or(|last: usize| time_ns >= arrivals.time_ns[last]);
        let latest = if is_later { place } else { last.unwrap_or(place) };
        last = Some(latest);
        brought.push(latest);
    }
    let mut starts = Ascending::new(&arrivals.start);
    let mut last_of = |&value: &i64| {
        let place = starts.below(value).checked_sub(1)?;
        let is_known = value <= arrivals.end[place] && arrivals.time_ns[brought[place]] != NEVER;
        is_known.then(|| i64::try_from(brought[place]).ok())?
    };
    acknowledged.iter().map(|value| last_of(value).unwrap_or(-1)).collect()
}

impl Packets<'_> {
    /// Packets with payload in a direction.
    pub fn data_rows(&self, direction: u8) -> Vec<i64> {
        let rows = self.direction.iter().zip(self.payload_bytes);
        rows_where(rows, |(&way, &payload_bytes)| way == direction && payload_bytes > 0)
    }

    /// Packets of a direction whose payload lies beyond all before, or fills a hole.
    pub fn first_copies(&self, direction: u8) -> Vec<i64> {
        const AGAIN: u16 = mark::RETRANSMISSION | mark::DUPLICATE | mark::KEEP_ALIVE | mark::ZERO_WINDOW_PROBE;
        let rows = self.direction.iter().zip(self.payload_bytes).zip(self.marks);
        rows_where(rows, |((&way, &payload_bytes), &marks)| way == direction && payload_bytes > 0 && marks & AGAIN == 0)
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
        (0..self.len()).find(|&row| self.direction[row] == direction && self.flags[row] & flags != 0)
    }

    /// The first packet that carries a byte of the stream of `direction`.
    pub fn row_of_byte(&self, direction: u8, offset: i64) -> Option<usize> {
        let mut rows = self.sequence_offset.iter().zip(self.direction).zip(self.payload_bytes);
        rows.position(|((&start, &way), &payload_bytes)| {
            way == direction && start <= offset && offset < start.saturating_add(payload_bytes.into())
        })
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
        assert_eq!(last_arrivals(&arrivals, &[0, 1, 10, 15, 30, 35, 45]), [-1, 0, 0, 1, 2, -1, 2]);
        assert_eq!(last_arrivals(&ByteRanges::default(), &[5]), [-1]);
    }
}

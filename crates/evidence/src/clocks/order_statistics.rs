//! The k-th least offset of a cloud's points for many slopes at once.
//!
//! A point counts for no slope of a range where `rank + 1` others stand lower for all of them, which the two ends of the
//! range show: of two points the earlier one stands lower for every slope if it does for the greatest, and the later one
//! if it does for the least. So the range is halved again and again, and each half has fewer points to look at.

use crate::clocks::point::{rounding_ns, Point};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// For each of the ascending `slopes` the offset of rank `rank` (0: the least) among the points, which are in order of
/// time; infinite where there are not so many points.
pub fn order_statistics(points: &[Point], rank: usize, slopes: &[f64]) -> Vec<f64> {
    let mut found = Vec::with_capacity(slopes.len());
    if rank >= points.len() {
        found.resize(slopes.len(), f64::INFINITY);
        return found;
    }
    let slope_limit = slopes.iter().fold(0.0, |most: f64, slope| most.max(slope.abs()));
    Search { rank, rounding_ns: rounding_ns(points, slope_limit) }.halve(points, slopes, &mut found);
    found
}

struct Search {
    rank: usize,
    rounding_ns: f64,
}

impl Search {
    fn halve(&self, points: &[Point], slopes: &[f64], found: &mut Vec<f64>) {
        let (Some(&least), Some(&greatest)) = (slopes.first(), slopes.last()) else {
            return;
        };
        let earlier = self.without_covered(points.iter(), greatest);
        let mut kept = self.without_covered(earlier.iter().rev(), least);
        if slopes.len() == 1 || kept.len() <= 2 * self.rank + FEW_POINTS {
            let mut offsets = Vec::with_capacity(kept.len());
            for &slope in slopes {
                offsets.clear();
                offsets.extend(kept.iter().map(|point| point.offset_ns(slope)));
                found.push(*offsets.select_nth_unstable_by(self.rank, f64::total_cmp).1);
            }
            return;
        }
        kept.reverse();
        let (lesser, greater) = slopes.split_at(slopes.len() / 2);
        self.halve(&kept, lesser, found);
        self.halve(&kept, greater, found);
    }

    /// The points that `rank + 1` points before them do not undercut by more than rounding.
    fn without_covered<'a>(&self, points: impl Iterator<Item = &'a Point>, slope: f64) -> Vec<Point> {
        let mut least = Smallest::new(self.rank);
        points
            .copied()
            .filter(|point| {
                let offset_ns = point.offset_ns(slope);
                let covered = least.last().is_some_and(|last| last + self.rounding_ns <= offset_ns);
                if !covered {
                    least.push(offset_ns);
                }
                !covered
            })
            .collect()
    }
}

/// So few points more than twice the rank are looked at for each slope.
const FEW_POINTS: usize = 16;

/// The `rank + 1` smallest numbers so far.
pub(crate) struct Smallest {
    rank: usize,
    heap: BinaryHeap<Number>,
}

impl Smallest {
    pub(crate) fn new(rank: usize) -> Self {
        Self { rank, heap: BinaryHeap::new() }
    }

    /// The number of rank `rank`, where there are so many.
    pub(crate) fn last(&self) -> Option<f64> {
        if self.heap.len() > self.rank {
            self.heap.peek().map(|number| number.0)
        } else {
            None
        }
    }

    pub(crate) fn push(&mut self, number: f64) {
        if self.heap.len() <= self.rank {
            self.heap.push(Number(number));
        } else if let Some(mut greatest) = self.heap.peek_mut() {
            if number < greatest.0 {
                *greatest = Number(number);
            }
        }
    }
}

/// A number in its total order.
struct Number(f64);

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

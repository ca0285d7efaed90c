//! Offsets of two captures against each other, by packets that look alike whatever their offsets.

use crate::distinct::most_common;
use crate::segments::columns::{Flow, Segment};

/// What to add to the arrived segments' offsets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    pub sequence: i64,
    pub acknowledgement: i64,
    /// Packets that were joined, and the share of them that agrees on the offsets.
    pub joined: usize,
    pub share: f64,
}

/// A packet's fields by which it is found again.
type Key = (i64, i64, i64);

/// The shift between the captures of one flow. Packets are joined on timestamps and length, or on IP ID and length
/// where hardly any have timestamps in both captures, if no other packet of that capture has the same; None where fewer
/// than `fewest` can be joined.
pub fn shift_from_fields(emitted: &Flow, arrived: &Flow, fewest: usize) -> Option<Shift> {
    fn stamped(flow: &Flow) -> impl Iterator<Item = &Segment> {
        flow.all().filter(|segment| segment.has_timestamps)
    }
    let by_stamps = |segment: &Segment| (segment.tsval, segment.tsecr, segment.length);
    let found = joined_shift(alone(stamped(emitted), by_stamps), alone(stamped(arrived), by_stamps), fewest);
    if found.is_some() || emitted.all().chain(arrived.all()).all(|segment| segment.has_timestamps) {
        return found;
    }
    let by_id = |segment: &Segment| (segment.ip_id, 0, segment.length);
    joined_shift(alone(emitted.all(), by_id), alone(arrived.all(), by_id), fewest)
}

/// The segments whose key no other has, in order of their keys.
fn alone<'a>(segments: impl Iterator<Item = &'a Segment>, key: impl Fn(&Segment) -> Key) -> Vec<(Key, &'a Segment)> {
    let mut keyed: Vec<_> = segments.map(|segment| (key(segment), segment)).collect();
    // Mostly in order already, which a stable sort is quick at.
    keyed.sort_by_key(|item| item.0);
    let runs = keyed.chunk_by(|a, b| a.0 == b.0);
    runs.filter(|run| run.len() == 1).map(|run| run[0]).collect()
}

fn joined_shift(emitted: Vec<(Key, &Segment)>, arrived: Vec<(Key, &Segment)>, fewest: usize) -> Option<Shift> {
    let mut sequence = Vec::new();
    let mut acknowledgement = Vec::new();
    let mut left = emitted.iter().peekable();
    for (key, came) in &arrived {
        while left.next_if(|item| item.0 < *key).is_some() {}
        if let Some((_, sent)) = left.next_if(|item| item.0 == *key) {
            sequence.push(sent.start.wrapping_sub(came.start));
            acknowledgement.push(sent.acknowledgement.wrapping_sub(came.acknowledgement));
        }
    }
    let joined = sequence.len();
    if joined < fewest {
        return None;
    }
    let (sequence, sequence_share) = most_common(&sequence);
    let (acknowledgement, acknowledgement_share) = most_common(&acknowledgement);
    Some(Shift { sequence, acknowledgement, joined, share: sequence_share.min(acknowledgement_share) })
}

/// How many fields agree between segments of the same extent, as the offsets now lie. Where a capture lacks packets,
/// those that look alike may lay the streams wrongly over each other; then segments that meet agree in little else.
pub fn fields_in_common(emitted: &[Segment], arrived: &[Segment]) -> usize {
    let extent = |segment: &Segment| (segment.start, segment.length);
    let mut known: Vec<&Segment> = emitted.iter().collect();
    known.sort_by_key(|segment| extent(segment));
    let mut agreeing = 0;
    for came in arrived {
        let place = known.partition_point(|segment| extent(segment) < extent(came));
        let Some(left) = known.get(place).filter(|left| extent(left) == extent(came)) else {
            continue;
        };
        let stamped = left.has_timestamps && came.has_timestamps;
        agreeing += usize::from(stamped && (left.tsval, left.tsecr) == (came.tsval, came.tsecr))
            + usize::from(left.ip_id == came.ip_id)
            + usize::from(left.push == came.push)
            + usize::from(left.window == came.window);
    }
    agreeing
}

//! The scoreboard against the definitions of RFC 6675 taken literally, segment by segment.

use super::{DeliveryStamp, Flight, Released};
use proptest::prelude::*;

const SEGMENT: u64 = 100;

#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    start: u64,
    is_sacked: bool,
    is_lost: bool,
    is_resent: bool,
}

/// IsLost and SetPipe as section 4 words them.
#[derive(Debug, Default)]
struct Definition {
    segments: Vec<Plain>,
}

impl Definition {
    fn detect(&mut self) {
        for index in 0..self.segments.len() {
            let above = &self.segments[index + 1..];
            let bytes = above.iter().filter(|segment| segment.is_sacked).count() as u64 * SEGMENT;
            let stretches = (0..above.len())
                .filter(|place| above[*place].is_sacked && (*place == 0 || !above[place - 1].is_sacked));
            if !self.segments[index].is_sacked && (stretches.count() >= 3 || bytes > 2 * SEGMENT) {
                self.segments[index].is_lost = true;
            }
        }
    }

    fn pipe(&self) -> u64 {
        let each = |segment: &Plain| {
            if segment.is_sacked {
                0
            } else {
                u64::from(!segment.is_lost) + u64::from(segment.is_resent)
            }
        };
        self.segments.iter().map(each).sum::<u64>() * SEGMENT
    }

    /// Rule 1 of NextSeg.
    fn next(&self) -> Option<u64> {
        let waits = |segment: &&Plain| segment.is_lost && !segment.is_sacked && !segment.is_resent;
        self.segments.iter().find(waits).map(|segment| segment.start)
    }
}

proptest! {
    #[test]
    fn the_scoreboard_keeps_to_the_definitions(
        operations in prop::collection::vec((0u8..10, 0usize..40, 1usize..6), 1..150),
    ) {
        let mut flight = Flight::new(1, false);
        let mut definition = Definition::default();
        for (operation, place, count) in operations {
            match operation {
                0..=3 => {
                    for _ in 0..count {
                        definition.segments.push(Plain { start: flight.next(), ..Plain::default() });
                        flight.push(SEGMENT as u32, false, 0, DeliveryStamp::default());
                    }
                }
                4..=6 => {
                    // The oldest segment is never reported: it would be acknowledged.
                    let first = place.max(1).min(definition.segments.len());
                    let last = (first + count).min(definition.segments.len());
                    let mut released = Released::default();
                    let fresh = definition.segments[first..last].iter().filter(|segment| !segment.is_sacked).count();
                    if first < last {
                        let left = definition.segments[first].start;
                        flight.report(left, left + (last - first) as u64 * SEGMENT, &mut released);
                    }
                    definition.segments[first..last].iter_mut().for_each(|segment| segment.is_sacked = true);
                    prop_assert_eq!(released.newly_delivered_bytes, fresh as u64 * SEGMENT);
                    flight.detect_losses(SEGMENT);
                    definition.detect();
                }
                7 | 8 => {
                    let pending = flight.first_pending();
                    prop_assert_eq!(pending.map(|(_, sent)| sent.start), definition.next());
                    prop_assert_eq!(flight.has_pending(), pending.is_some());
                    if let Some((place, _)) = pending {
                        flight.resend(place, 0, DeliveryStamp::default());
                        definition.segments[place - flight.first_place()].is_resent = true;
                    }
                }
                _ if place == 39 => {
                    flight.declare_all_lost();
                    for segment in definition.segments.iter_mut().filter(|segment| !segment.is_sacked) {
                        (segment.is_lost, segment.is_resent) = (true, false);
                    }
                }
                _ => {
                    let mut released = (place / 8).min(definition.segments.len());
                    // What follows the new edge was not reported, or the edge would lie beyond it.
                    while definition.segments.get(released).is_some_and(|segment| segment.is_sacked) {
                        released += 1;
                    }
                    let fresh = definition.segments.drain(..released).filter(|segment| !segment.is_sacked).count();
                    let edge = flight.unacknowledged() + released as u64 * SEGMENT;
                    prop_assert_eq!(flight.advance(edge).newly_delivered_bytes, fresh as u64 * SEGMENT);
                }
            }
            prop_assert_eq!(flight.pipe_bytes(), definition.pipe());
            prop_assert_eq!(flight.outstanding_bytes(), definition.segments.len() as u64 * SEGMENT);
        }
    }
}

#[test]
fn an_acknowledgement_inside_a_segment_leaves_the_rest_of_it() {
    let mut flight = Flight::new(1, false);
    flight.push(100, false, 5, DeliveryStamp::default());
    let released = flight.advance(41);
    assert_eq!((released.bytes, flight.outstanding_bytes(), flight.pipe_bytes()), (40, 60, 60));
    flight.declare_first_lost();
    assert_eq!(flight.first_pending().map(|(_, sent)| (sent.start, sent.length)), Some((41, 60)));
}

#[test]
fn a_peer_that_takes_its_reports_back_is_sent_everything() {
    let mut flight = Flight::new(1, false);
    for _ in 0..3 {
        flight.push(100, false, 0, DeliveryStamp::default());
    }
    flight.report(101, 301, &mut Released::default());
    flight.advance(101);
    flight.declare_all_lost();
    assert_eq!((flight.sacked_bytes(), flight.pipe_bytes()), (0, 0));
    assert_eq!(flight.first_pending().map(|(_, sent)| sent.start), Some(101));
}

#[test]
fn no_round_trip_is_taken_from_a_segment_sent_twice() {
    let mut flight = Flight::new(1, false);
    for time in 0..3 {
        flight.push(100, false, time, DeliveryStamp::default());
    }
    flight.declare_first_lost();
    let (place, _) = flight.first_pending().unwrap();
    flight.resend(place, 9, DeliveryStamp::default());
    assert_eq!(flight.advance(201).newest_sent_at, None);
    assert_eq!(flight.advance(301).newest_sent_at, Some(2));
}

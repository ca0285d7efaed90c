//! Segments that arrived as they left, one after the other: counted without looking for partners.
//!
//! Where no two emitted segments can be taken for each other, an arrived one has one candidate. If that is the same in
//! all fields but the hop limit, whose difference is one for all, comparing finds no shift, no scale and no other maker.

use crate::distinct::distinct_count;
use crate::segments::agreement::{varies, Agreement};
use crate::segments::columns::Segment;

/// What `DataComparison` counts over all that arrived; None where it must look for partners.
pub(super) fn unchanged_data(emitted: &[Segment], arrived: &[Segment]) -> Option<Agreement> {
    let are_apart = emitted.windows(2).all(|two| two[0].end() <= two[1].start);
    if !are_apart || !emitted.iter().all(|segment| segment.first_copy && segment.start < segment.end()) {
        return None;
    }
    let left = counterparts(emitted, arrived, |segment| segment.start)?;
    let pushed = left.iter().filter(|segment| segment.push).count();
    Some(Agreement {
        push_clear: left.len(),
        push_equal: left.len(),
        push_set: pushed,
        carried: distinct_count(left.iter().map(|segment| segment.acknowledgement)),
        boundaries_equal: left.len(),
        held_whole: left.len(),
        longest: emitted.iter().map(|segment| segment.length).max().unwrap_or(0),
        ..common(emitted, left, arrived)
    })
}

/// What `AcknowledgementComparison` counts; None where it must look for partners.
pub(super) fn unchanged_acknowledgements(emitted: &[Segment], arrived: &[Segment]) -> Option<Agreement> {
    let numbers = |segment: &Segment| (segment.acknowledgement, segment.start);
    if !emitted.windows(2).all(|two| numbers(&two[0]) < numbers(&two[1])) {
        return None;
    }
    Some(common(emitted, counterparts(emitted, arrived, numbers)?, arrived))
}

/// The emitted segments that arrived, where all between the first and the last of these did, unchanged.
fn counterparts<'a, T: PartialEq>(
    emitted: &'a [Segment],
    arrived: &[Segment],
    number: impl Fn(&Segment) -> T,
) -> Option<&'a [Segment]> {
    let first = arrived.first()?;
    let begin = emitted.iter().position(|segment| number(segment) == number(first))?;
    let left = emitted.get(begin..begin + arrived.len())?;
    let hops = left[0].ttl - first.ttl;
    let is_same = |(left, came): (&Segment, &Segment)| *left == Segment { ttl: came.ttl + hops, ..*came };
    left.iter().zip(arrived).all(is_same).then_some(left)
}

/// Counts of the fields that data and acknowledgements share.
fn common(emitted: &[Segment], left: &[Segment], arrived: &[Segment]) -> Agreement {
    let ip_ids = |segments: &[Segment]| varies(segments.iter().map(|segment| segment.ip_id));
    let stamps = left.iter().filter(|segment| segment.has_timestamps).map(Segment::stamp_number);
    let stamped = stamps.clone().count();
    Agreement {
        arrived: left.len(),
        partners: left.len(),
        stamped,
        stamps_equal: stamped,
        stamps_distinct: distinct_count(stamps),
        stamps_known: left.iter().filter(|segment| segment.stamps_captured).count(),
        ip_ids_vary: ip_ids(emitted) && ip_ids(arrived),
        whole: left.len(),
        ip_ids_equal: left.len(),
        windows_equal: left.len(),
        windows_shrink: left.windows(2).filter(|two| two[1].window < two[0].window).count(),
        windows_distinct: distinct_count(left.iter().map(|segment| segment.window)),
        hops: left[0].ttl - arrived[0].ttl,
        ..Agreement::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::agreement::{AcknowledgementComparison, DataComparison};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Steps of a stream and numbers of few values, so that equal ones stand beside each other.
    type Steps = Vec<((i64, i64), (i64, i64, i64, i64), (bool, bool, bool))>;

    fn steps() -> impl Strategy<Value = Steps> {
        vec(((0_i64..3, 1_i64..3), (0_i64..3, 0_i64..2, 0_i64..3, 0_i64..3), any::<(bool, bool, bool)>()), 1..20)
    }

    fn segments(steps: &Steps, has_data: bool) -> Vec<Segment> {
        let (mut start, mut acknowledgement) = (0, 0);
        let segment = |&((gap, length), (acknowledged, tsval, window, ip_id), (push, first_copy, stamped))| {
            start += gap;
            acknowledgement += acknowledged;
            let length = if has_data { length } else { 0 };
            let (tsval, stamps_captured) = (if stamped { 7 + tsval } else { 0 }, stamped || push);
            let own = Segment { start, length, acknowledgement, window, tsval, ip_id, push, ..Segment::default() };
            start += length;
            // Mostly first copies, so that early answers are given.
            Segment { ttl: 64, first_copy: first_copy || push, has_timestamps: stamped, stamps_captured, ..own }
        };
        steps.iter().map(segment).collect()
    }

    /// Those from one place to another, `hops` farther, one of them perhaps with another window.
    fn arriving(segments: &[Segment], from: usize, count: usize, hops: i64, changed: usize) -> Vec<Segment> {
        let mut arrived: Vec<Segment> =
            segments.iter().skip(from).take(count).map(|one| Segment { ttl: one.ttl - hops, ..*one }).collect();
        if let Some(one) = arrived.get_mut(changed) {
            one.window += 1;
        }
        arrived
    }

    proptest! {
        #[test]
        fn early_answers_are_those_of_looking_for_partners(
            steps in steps(), from in 0_usize..3, count in 1_usize..20, hops in 0_i64..3, changed in 0_usize..40,
        ) {
            let emitted = segments(&steps, true);
            let arrived = arriving(&emitted, from, count, hops, changed);
            if let Some(found) = unchanged_data(&emitted, &arrived) {
                prop_assert_eq!(found, DataComparison::new(&emitted, &arrived, 8).compare(0..arrived.len(), 0.5));
            }
            let emitted = segments(&steps, false);
            let arrived = arriving(&emitted, from, count, hops, changed);
            if let Some(found) = unchanged_acknowledgements(&emitted, &arrived) {
                prop_assert_eq!(found, AcknowledgementComparison::new(&emitted).compare_partners(&arrived, 0.5));
            }
        }
    }

    #[test]
    fn only_what_cannot_be_another_is_answered_early() {
        let emitted: Vec<Segment> = (0..4)
            .map(|place| Segment { start: 10 * place, length: 10, first_copy: true, ..Segment::default() })
            .collect();
        let is_answered = |emitted: &[Segment], arrived: &[Segment]| unchanged_data(emitted, arrived).is_some();
        assert!(is_answered(&emitted, &emitted) && is_answered(&emitted, &emitted[1..3]));
        assert!(!is_answered(&emitted[..2], &emitted) && !is_answered(&emitted, &[]));
        let mut repeated = emitted.clone();
        repeated[3].first_copy = false;
        assert!(!is_answered(&repeated, &repeated));
        let pure: Vec<Segment> =
            (0..4).map(|place| Segment { acknowledgement: place / 2, start: place, ..Segment::default() }).collect();
        assert!(unchanged_acknowledgements(&pure, &pure).is_some());
        let again: Vec<Segment> = pure.iter().map(|one| Segment { start: 0, ..*one }).collect();
        assert!(unchanged_acknowledgements(&again, &again).is_none());
    }
}

//! Acknowledgements that arrive and run ahead of the host in whose name they were sent, by that host's own clock.

use crate::distinct::distinct;
use crate::segments::columns::{Flow, Segment};

/// No window is as large (RFC 7323, section 2.3). Where a capture lacks half of all sequence numbers, its offsets from
/// then on are by multiples of 2^32 too low.
const TOO_FAR: i64 = 1 << 31;

/// At how many places these pure acknowledgements acknowledge more than their host did with a later timestamp: copies of
/// one count once.
///
/// A host's TSval never falls, and what it acknowledges never does (RFC 7323, section 5.4; RFC 9293, section 3.10.7.4).
/// So one that stamped a lower number later did not send them, whatever its capture lacks. Nothing is known of a host
/// whose own segments contradict that: its clock was set back, is drawn anew for each packet, or went half of its way
/// round. `shift` is what the way adds to the timestamps.
pub fn acknowledged_ahead(emitted: &Flow, arrived: &[Segment], shift: i64) -> usize {
    let Some(sent) = Sent::of(emitted) else { return 0 };
    if sent.contradicts_itself {
        return 0;
    }
    let ahead = arrived.iter().filter(|segment| sent.precedes(segment, shift));
    // Those with an IP ID of their host's are the host's own: what agrees but for timestamps had these rewritten.
    let ids = |segment: &Segment| (segment.acknowledgement, segment.ip_id);
    let mut own: Vec<(i64, i64)> = emitted.acknowledgements.iter().filter(|one| one.ip_id != 0).map(ids).collect();
    own.sort_unstable();
    let others = ahead.filter(|segment| own.binary_search(&ids(segment)).is_err());
    distinct(others.map(|segment| segment.acknowledgement).collect()).len()
}

/// What a host acknowledged, by its timestamps.
struct Sent {
    first_tsval: i64,
    /// Ticks from the first segment on, ascending, and the least that was acknowledged from then on.
    least: Vec<(i32, i64)>,
    /// Whether less was acknowledged with a later timestamp.
    contradicts_itself: bool,
}

impl Sent {
    /// None of a host without timestamps.
    fn of(emitted: &Flow) -> Option<Self> {
        let stamped = || emitted.all().filter(|segment| segment.has_timestamps);
        let first_tsval = stamped().next()?.tsval;
        let mut sent = Self { first_tsval, least: Vec::new(), contradicts_itself: false };
        sent.least = stamped().map(|segment| (sent.ticks(segment.tsval), segment.acknowledgement)).collect();
        // Data and acknowledgements in the order of their ticks, mostly, which a stable sort merges.
        sent.least.sort();
        // The least of later ticks, none at first, and of the own one as well.
        let (mut later, mut least, mut tick) = (None, i64::MAX, None);
        for (own_tick, acknowledged) in sent.least.iter_mut().rev() {
            if tick != Some(*own_tick) {
                later = tick.map(|_| least);
                tick = Some(*own_tick);
            }
            sent.contradicts_itself |= later.is_some_and(|later| is_less(later, *acknowledged));
            least = least.min(*acknowledged);
            *acknowledged = least;
        }
        Some(sent)
    }

    /// Timestamps count modulo 2^32; later is what less than half of that lies behind.
    fn ticks(&self, tsval: i64) -> i32 {
        tsval.wrapping_sub(self.first_tsval) as u32 as i32
    }

    /// Whether the host acknowledged less than this segment does, with a later timestamp.
    fn precedes(&self, segment: &Segment, shift: i64) -> bool {
        let stamp = self.ticks(segment.tsval.wrapping_sub(shift));
        let later = self.least.partition_point(|&(tick, _)| tick <= stamp);
        let least = self.least.get(later).map(|&(_, least)| least);
        segment.has_timestamps && least.is_some_and(|least| is_less(least, segment.acknowledgement))
    }
}

/// Whether one number lies before another one, and not too far.
fn is_less(one: i64, other: i64) -> bool {
    (1..TOO_FAR).contains(&other.wrapping_sub(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_host_contradicts_itself_where_one_of_its_segments_precedes_another(
            stamps in proptest::collection::vec((0_i64..6, prop_oneof![0_i64..4, Just(1_i64 << 32)]), 1..12),
        ) {
            let emitted = flow(&stamps);
            let sent = Sent::of(&emitted).ok_or_else(|| TestCaseError::fail("all have timestamps"))?;
            prop_assert_eq!(sent.contradicts_itself, emitted.all().any(|segment| sent.precedes(segment, 0)));
        }
    }

    fn acknowledgement(tsval: i64, acknowledgement: i64) -> Segment {
        Segment { tsval, acknowledgement, has_timestamps: true, ..Segment::default() }
    }

    fn flow(stamps: &[(i64, i64)]) -> Flow {
        let acknowledgements = stamps.iter().map(|&(tsval, number)| acknowledgement(tsval, number)).collect();
        Flow { acknowledgements, ..Flow::default() }
    }

    #[test]
    fn what_a_host_acknowledges_later_it_has_not_acknowledged_before() {
        let sent = flow(&[(107, 112), (116, 1560), (117, 3008)]);
        for (tsval, number, ahead) in [(107, 3112, 1), (107, 1560, 0), (107, 112, 0), (116, 3008, 0), (117, 3112, 0)] {
            assert_eq!(acknowledged_ahead(&sent, &[acknowledgement(tsval, number)], 0), ahead, "{tsval}, {number}");
        }
    }

    #[test]
    fn one_that_arrives_twice_counts_once() {
        let sent = flow(&[(107, 112), (116, 1560)]);
        let came = [acknowledgement(107, 3112), acknowledgement(107, 3112), acknowledgement(108, 3200)];
        assert_eq!(acknowledged_ahead(&sent, &came, 0), 2);
    }

    #[test]
    fn data_acknowledge_as_well_in_whatever_order_they_were_captured() {
        let data = vec![Segment { length: 10, ..acknowledgement(9, 500) }];
        let sent = Flow { data, ..flow(&[(11, 900), (8, 300)]) };
        assert_eq!(acknowledged_ahead(&sent, &[acknowledgement(8, 600), acknowledgement(10, 600)], 0), 1);
    }

    #[test]
    fn timestamps_wrap_and_are_shifted() {
        let sent = flow(&[(0xffff_fff0, 100), (5, 200)]);
        assert_eq!(acknowledged_ahead(&sent, &[acknowledgement(0xffff_fff5, 300)], 0), 1);
        assert_eq!(acknowledged_ahead(&sent, &[acknowledgement(0xffff_fff5 + 7, 300)], 7), 1);
        assert_eq!(acknowledged_ahead(&sent, &[acknowledgement(6, 300)], 0), 0);
    }

    #[test]
    fn a_clock_that_contradicts_itself_says_nothing() {
        let came = [acknowledgement(107, 3112), acknowledgement(108, 3200)];
        assert_eq!(acknowledged_ahead(&flow(&[(107, 112), (116, 1560), (117, 3008)]), &came, 0), 2);
        for (tsval, number) in [(90, 4456), (106, 113), (0x9000_0000, 4456)] {
            let sent = flow(&[(107, 112), (116, 1560), (117, 3008), (tsval, number)]);
            assert_eq!(acknowledged_ahead(&sent, &came, 0), 0, "{tsval}, {number}");
        }
    }

    #[test]
    fn what_has_an_ip_id_of_its_host_was_stamped_anew() {
        let numbered = |ip_id, tsval, number| Segment { ip_id, ..acknowledgement(tsval, number) };
        let acknowledgements = vec![numbered(7, 107, 112), numbered(8, 116, 1560), numbered(9, 117, 3008)];
        let sent = Flow { acknowledgements, ..Flow::default() };
        let came = [numbered(8, 16, 1560), numbered(9, 17, 3008), numbered(9, 17, 3009), numbered(0, 16, 1560)];
        assert_eq!(acknowledged_ahead(&sent, &came, 0), 2);
    }

    #[test]
    fn what_no_window_allows_is_a_gap_of_the_capture() {
        let sent = flow(&[(107, 112), (116, 1560)]);
        let behind_gap = |number: i64| acknowledgement(108, number.wrapping_add(1 << 32));
        assert_eq!(acknowledged_ahead(&sent, &[behind_gap(1400), behind_gap(1560), behind_gap(i64::MAX)], 0), 0);
    }

    #[test]
    fn without_timestamps_nothing_is_known() {
        let bare = Segment { has_timestamps: false, ..acknowledgement(0, 9) };
        assert_eq!(acknowledged_ahead(&flow(&[(3, 1)]), &[bare], 0), 0);
        let sent = Flow { acknowledgements: vec![bare], ..Flow::default() };
        assert_eq!(acknowledged_ahead(&sent, &[acknowledgement(1, 10)], 0), 0);
    }
}

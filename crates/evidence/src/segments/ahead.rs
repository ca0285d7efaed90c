//! Acknowledgements that arrive and run ahead of the host in whose name they were sent, by that host's own clock.

use crate::distinct::distinct;
use crate::segments::columns::{Flow, Segment};

/// At how many places these pure acknowledgements acknowledge more than their host did with a later timestamp: copies of
/// one count once.
///
/// A host's TSval never falls, and what it acknowledges never does (RFC 7323, section 5.4; RFC 9293, section 3.10.7.4).
/// So one that stamped a lower number later did not send them, whatever its capture lacks. `shift` is what the way adds
/// to the timestamps.
pub fn acknowledged_ahead(emitted: &Flow, arrived: &[Segment], shift: i64) -> usize {
    let Some(first) = emitted.all().find(|segment| segment.has_timestamps) else {
        return 0;
    };
    // Timestamps count modulo 2^32; later is what less than half of that lies behind.
    let ticks = |tsval: i64| tsval.wrapping_sub(first.tsval) as u32 as i32;
    let stamped = emitted.all().filter(|segment| segment.has_timestamps);
    let mut sent: Vec<(i32, i64)> = stamped.map(|segment| (ticks(segment.tsval), segment.acknowledgement)).collect();
    sent.sort_unstable();
    // From each one on the least that was acknowledged.
    let mut least = i64::MAX;
    for (_, acknowledged) in sent.iter_mut().rev() {
        least = least.min(*acknowledged);
        *acknowledged = least;
    }
    let is_ahead = |segment: &&Segment| {
        let stamp = ticks(segment.tsval.wrapping_sub(shift));
        let later = sent.partition_point(|&(tick, _)| tick <= stamp);
        segment.has_timestamps && sent.get(later).is_some_and(|&(_, least)| least < segment.acknowledgement)
    };
    distinct(arrived.iter().filter(is_ahead).map(|segment| segment.acknowledgement).collect()).len()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn without_timestamps_nothing_is_known() {
        let bare = Segment { has_timestamps: false, ..acknowledgement(0, 9) };
        assert_eq!(acknowledged_ahead(&flow(&[(3, 1)]), &[bare], 0), 0);
        let sent = Flow { acknowledgements: vec![bare], ..Flow::default() };
        assert_eq!(acknowledged_ahead(&sent, &[acknowledgement(1, 10)], 0), 0);
    }
}

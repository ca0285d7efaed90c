//! Properties of the comparison of emitted and arrived segments.

use pepscope_evidence::segments::agreement::{AcknowledgementComparison, Agreement, DataComparison};
use pepscope_evidence::segments::columns::Segment;
use proptest::collection::vec;
use proptest::prelude::*;

const WRAP: i64 = 1 << 32;

/// Back-to-back segments with these lengths, pushes and steps of the clock; `length` 0 makes acknowledgements.
fn emitted(segments: &[(i64, bool, i64)]) -> Vec<Segment> {
    let (mut start, mut tick) = (0, WRAP - 40);
    let segment = |(number, &(length, push, step)): (i64, &(i64, bool, i64))| {
        tick = (tick + step) % WRAP;
        start += length;
        Segment {
            start: start - length,
            length,
            acknowledgement: if length == 0 { number * 1448 } else { number / 3 },
            window: 1 << (8 + number % 5),
            tsval: tick,
            tsecr: number / 2,
            ip_id: 7 * number % (1 << 16),
            ttl: 64,
            push,
            first_copy: true,
            has_timestamps: true,
            stamps_captured: true,
        }
    };
    (0_i64..).zip(segments).map(segment).collect()
}

/// What a firewall, a capture without the SYN and routers make of the segments.
fn rewritten(segments: &[Segment], shift: (i64, i64), scale: u32, hops: i64) -> Vec<Segment> {
    let segment = |segment: &Segment| Segment {
        tsval: (segment.tsval + shift.0) % WRAP,
        tsecr: (segment.tsecr + shift.1) % WRAP,
        window: segment.window >> scale,
        ttl: segment.ttl - hops,
        ..*segment
    };
    segments.iter().map(segment).collect()
}

fn segments(length: std::ops::Range<i64>) -> impl Strategy<Value = Vec<(i64, bool, i64)>> {
    vec((length, any::<bool>(), 0_i64..4), 4..60)
}

fn all_agree(found: &Agreement, count: usize) -> bool {
    [found.arrived, found.partners, found.stamps_equal, found.ip_ids_equal, found.whole, found.windows_equal]
        == [count; 6]
}

proptest! {
    #[test]
    fn the_same_data_agree_whatever_is_shifted(
        made in segments(1..1449),
        shift in (0..WRAP, 0..WRAP),
        scale in 0_u32..9,
        hops in 0_i64..30,
    ) {
        let emitted = emitted(&made);
        let arrived = rewritten(&emitted, shift, scale, hops);
        let count = made.len();
        let found = DataComparison::new(&emitted, &arrived, 8).compare(0..count, 0.5);
        prop_assert!(all_agree(&found, count), "{:?}", found);
        prop_assert_eq!((found.tsval_shift, found.tsecr_shift), shift);
        prop_assert_eq!((found.window_scale_shift, found.hops), (i64::from(scale), hops));
        let alike = [found.push_clear, found.push_equal, found.boundaries_equal];
        prop_assert_eq!(alike, [count; 3]);
        prop_assert_eq!(found.push_set, made.iter().filter(|segment| segment.1).count());
        prop_assert_eq!(found.carried_elsewhere, 0);
    }

    #[test]
    fn the_same_acknowledgements_agree(made in segments(0..1), shift in (0..WRAP, 0..WRAP), hops in 0_i64..30) {
        let emitted = emitted(&made);
        let arrived = rewritten(&emitted, shift, 0, hops);
        let found = AcknowledgementComparison::new(&emitted).compare(&arrived, 0.5);
        prop_assert!(all_agree(&found, made.len()), "{:?}", found);
        prop_assert_eq!((found.tsval_shift, found.tsecr_shift, found.hops), (shift.0, shift.1, hops));
    }

    #[test]
    fn duplicates_within_a_tick_are_told_apart_by_ip_ids(
        ticks in vec(0_i64..2, 3..60),
        kept in vec(any::<bool>(), 60),
    ) {
        let made: Vec<_> = ticks.iter().map(|&step| (0, false, step)).collect();
        let mut emitted = emitted(&made);
        for segment in &mut emitted {
            (segment.acknowledgement, segment.window, segment.tsecr) = (1448, 256, 9);
        }
        let arrived: Vec<Segment> = rewritten(&emitted, (0, 0), 0, 3)
            .into_iter()
            .zip(kept)
            .filter_map(|(segment, is_kept)| is_kept.then_some(segment))
            .collect();
        // Of a single one nobody knows whether its IP ID counts.
        prop_assume!(arrived.len() > 1);
        let found = AcknowledgementComparison::new(&emitted).compare(&arrived, 0.5);
        prop_assert_eq!((found.partners, found.ip_ids_equal), (arrived.len(), arrived.len()), "{:?}", found);
    }

    #[test]
    fn parts_add_up(made in segments(1..1449), cut in 0_usize..60) {
        let emitted = emitted(&made);
        let count = made.len();
        let cut = cut.min(count);
        let data = DataComparison::new(&emitted, &emitted, 8);
        let (early, late) = (data.compare(0..cut, 0.5), data.compare(cut..count, 0.5));
        prop_assert_eq!(early.partners + late.partners, count);
        prop_assert_eq!(early.boundaries_equal + late.boundaries_equal, count);
    }
}

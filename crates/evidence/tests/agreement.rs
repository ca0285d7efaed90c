//! Properties of the comparison of emitted and arrived segments.

use pepscope_evidence::agreement::{compare_acknowledgements, Agreement, DataComparison};
use pepscope_evidence::segments::Segments;
use proptest::collection::vec;
use proptest::prelude::*;

const WRAP: i64 = 1 << 32;

/// Columns that own their values.
#[derive(Clone, Debug, Default)]
struct Owned {
    start: Vec<i64>,
    length: Vec<i64>,
    acknowledgement: Vec<i64>,
    window: Vec<i64>,
    push: Vec<bool>,
    set: Vec<bool>,
    tsval: Vec<i64>,
    tsecr: Vec<i64>,
    ip_id: Vec<i64>,
    ttl: Vec<i64>,
}

impl Owned {
    /// Back-to-back segments with these lengths, pushes and steps of the clock; `length` 0 makes acknowledgements.
    fn new(segments: &[(i64, bool, i64)]) -> Self {
        let mut made = Self::default();
        let (mut start, mut tick) = (0, WRAP - 40);
        for (number, &(length, push, step)) in (0_i64..).zip(segments) {
            tick = (tick + step) % WRAP;
            made.start.push(start);
            made.length.push(length);
            made.acknowledgement.push(if length == 0 { number * 1448 } else { number / 3 });
            made.window.push(1 << (8 + number % 5));
            made.push.push(push);
            made.set.push(true);
            made.tsval.push(tick);
            made.tsecr.push(number / 2);
            made.ip_id.push(7 * number % (1 << 16));
            made.ttl.push(64);
            start += length;
        }
        made
    }

    fn columns(&self) -> Segments<'_> {
        Segments {
            start: &self.start,
            length: &self.length,
            acknowledgement: &self.acknowledgement,
            window: &self.window,
            push: &self.push,
            first_copy: &self.set,
            has_timestamps: &self.set,
            stamps_captured: &self.set,
            tsval: &self.tsval,
            tsecr: &self.tsecr,
            ip_id: &self.ip_id,
            ttl: &self.ttl,
        }
    }

    /// What a firewall, a capture without the SYN and routers make of the segments.
    fn rewritten(&self, shift: (i64, i64), scale: u32, hops: i64) -> Self {
        let mut made = self.clone();
        made.tsval.iter_mut().for_each(|stamp| *stamp = (*stamp + shift.0) % WRAP);
        made.tsecr.iter_mut().for_each(|stamp| *stamp = (*stamp + shift.1) % WRAP);
        made.window.iter_mut().for_each(|window| *window >>= scale);
        made.ttl.iter_mut().for_each(|ttl| *ttl -= hops);
        made
    }
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
        let emitted = Owned::new(&made);
        let arrived = emitted.rewritten(shift, scale, hops);
        let count = made.len();
        let found = DataComparison::new(emitted.columns(), arrived.columns(), 8).compare(0..count, 0.5);
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
        let emitted = Owned::new(&made);
        let arrived = emitted.rewritten(shift, 0, hops);
        let found = compare_acknowledgements(emitted.columns(), arrived.columns(), 0.5);
        prop_assert!(all_agree(&found, made.len()), "{:?}", found);
        prop_assert_eq!((found.tsval_shift, found.tsecr_shift, found.hops), (shift.0, shift.1, hops));
    }

    #[test]
    fn parts_add_up(made in segments(1..1449), cut in 0_usize..60) {
        let emitted = Owned::new(&made);
        let count = made.len();
        let cut = cut.min(count);
        let data = DataComparison::new(emitted.columns(), emitted.columns(), 8);
        let (early, late) = (data.compare(0..cut, 0.5), data.compare(cut..count, 0.5));
        prop_assert_eq!(early.partners + late.partners, count);
        prop_assert_eq!(early.boundaries_equal + late.boundaries_equal, count);
    }
}

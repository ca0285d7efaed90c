//! What was packed is unpacked, bit by bit, whatever it is.

use pepscope_text::packed::{pack_floats, pack_integers, pack_truths, unpack, NotPacked, Numbers};
use proptest::prelude::*;

fn packed(columns: &[Numbers]) -> Vec<u8> {
    let mut out = Vec::new();
    for column in columns {
        match column {
            Numbers::Floats(values) => pack_floats(&mut out, values),
            Numbers::Integers(values) => pack_integers(&mut out, values),
            Numbers::Truths(values) => pack_truths(&mut out, values),
        }
    }
    out
}

/// As bits: NaN equals no number.
fn bits(column: &Numbers) -> (u8, Vec<u64>) {
    match column {
        Numbers::Floats(values) => (0, values.iter().map(|value| value.to_bits()).collect()),
        Numbers::Integers(values) => (1, values.iter().map(|&value| value as u64).collect()),
        Numbers::Truths(values) => (2, values.iter().map(|&value| u64::from(value)).collect()),
    }
}

/// Numbers of a few, of a narrow range, or of any.
fn column() -> impl Strategy<Value = Numbers> {
    let few = |most: i64| prop::collection::vec(0..most, 0..600);
    prop_oneof![
        few(3).prop_map(Numbers::Integers),
        few(70_000).prop_map(Numbers::Integers),
        prop::collection::vec(any::<i64>(), 0..600).prop_map(Numbers::Integers),
        few(20).prop_map(|values| Numbers::Floats(values.into_iter().map(|value| value as f64 / 7.0).collect())),
        prop::collection::vec(any::<f64>(), 0..600).prop_map(Numbers::Floats),
        prop::collection::vec(any::<bool>(), 0..600).prop_map(Numbers::Truths),
    ]
}

proptest! {
    #[test]
    fn columns_are_unpacked_as_they_were(columns in prop::collection::vec(column(), 0..6)) {
        let unpacked = unpack(&packed(&columns)).unwrap();
        prop_assert_eq!(unpacked.iter().map(bits).collect::<Vec<_>>(), columns.iter().map(bits).collect::<Vec<_>>());
    }

    #[test]
    fn bytes_that_are_cut_are_refused(columns in prop::collection::vec(column(), 1..3), cut in any::<prop::sample::Index>()) {
        let whole = packed(&columns);
        let kept = cut.index(whole.len());
        // Where a column ends the rest is that of fewer columns.
        prop_assert!(unpack(&whole[..kept]).map_or(true, |fewer| fewer.len() < columns.len()));
    }
}

#[test]
fn a_constant_takes_no_more_bytes_in_more_rows() {
    let of = |rows: usize| packed(&[Numbers::Floats(vec![f64::NAN; rows])]).len();
    assert_eq!(of(1), of(1000));
}

#[test]
fn other_bytes_are_refused() {
    assert_eq!(unpack(&[7; 40]), Err(NotPacked));
}

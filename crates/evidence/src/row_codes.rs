//! Numbers for the rows of columns, equal for equal rows.

/// A column of numbers.
#[derive(Clone, Copy)]
pub enum NumberColumn<'a> {
    Integers(&'a [i64]),
    Unsigned(&'a [u64]),
    /// NaN equals NaN and comes last; both zeros are one.
    Floats(&'a [f64]),
}

/// A number for each row, and of each of these numbers the first row that has it.
///
/// The numbers count the distinct rows from 0, in the order of the first column, in that of the second among rows that
/// are equal in it, and so on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowCodes {
    pub codes: Vec<i64>,
    pub first: Vec<i64>,
}

/// Values that span no more than so many times their number are marked in a table instead of sorted.
const SPARSE: u64 = 4;
/// Fewer values are always marked.
const SMALL_SPAN: u64 = 1 << 12;

/// The numbers of rows; `None` where columns differ in length.
pub fn row_codes(columns: &[NumberColumn<'_>]) -> Option<RowCodes> {
    let rows = columns.first().map_or(0, NumberColumn::len);
    if columns.iter().any(|column| column.len() != rows) {
        return None;
    }
    let mut codes = vec![0; rows];
    let mut count = 1;
    for column in columns {
        let mut values = column.ordered();
        let mut span = from_zero(&mut values);
        if count > u64::MAX / span.max(1) {
            span = ranked(&mut values, span);
        }
        if count > u64::MAX / span.max(1) {
            count = ranked(&mut codes, count);
        }
        // As many codes as rows, and as many values, fit together.
        for (code, value) in codes.iter_mut().zip(&values) {
            *code = code.saturating_mul(span).saturating_add(*value);
        }
        count = count.saturating_mul(span);
    }
    let count = ranked(&mut codes, count);
    let mut first = vec![0; usize::try_from(count).ok()?];
    let codes: Vec<i64> = codes.into_iter().map(|code| code as i64).collect();
    for (row, &code) in codes.iter().enumerate().rev() {
        *first.get_mut(usize::try_from(code).ok()?)? = row as i64;
    }
    Some(RowCodes { codes, first })
}

impl NumberColumn<'_> {
    fn len(&self) -> usize {
        match self {
            NumberColumn::Integers(values) => values.len(),
            NumberColumn::Unsigned(values) => values.len(),
            NumberColumn::Floats(values) => values.len(),
        }
    }

    /// The values as whole numbers in the same order.
    fn ordered(&self) -> Vec<u64> {
        const SIGN: u64 = 1 << 63;
        match self {
            NumberColumn::Integers(values) => values.iter().map(|&value| value as u64 ^ SIGN).collect(),
            NumberColumn::Unsigned(values) => values.to_vec(),
            NumberColumn::Floats(values) => values
                .iter()
                .map(|&value| {
                    let bits = (value + 0.0).to_bits();
                    match value {
                        value if value.is_nan() => u64::MAX,
                        _ if bits & SIGN == 0 => bits | SIGN,
                        _ => !bits,
                    }
                })
                .collect(),
        }
    }
}

/// Count the values from the least; returns what bounds them, 0 for none and where that is more than 64 bits hold.
fn from_zero(values: &mut [u64]) -> u64 {
    let least = values.iter().copied().min().unwrap_or(0);
    let mut most = 0;
    for value in values.iter_mut() {
        *value -= least;
        most = most.max(*value);
    }
    if most == u64::MAX {
        return ranked(values, u64::MAX);
    }
    most + 1
}

/// Replace values below `span` by how many different ones are less; returns how many there are.
fn ranked(values: &mut [u64], span: u64) -> u64 {
    if span <= SMALL_SPAN.max(SPARSE * values.len() as u64) {
        let mut rank_of = vec![0; span as usize];
        for &value in &*values {
            rank_of[value as usize] = 1;
        }
        let mut count = 0;
        for rank in &mut rank_of {
            let is_there = *rank;
            *rank = count;
            count += is_there;
        }
        for value in values.iter_mut() {
            *value = rank_of[*value as usize];
        }
        return count;
    }
    let mut distinct = values.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    for value in values.iter_mut() {
        *value = distinct.partition_point(|&other| other < *value) as u64;
    }
    distinct.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    /// As `row_codes` describes them.
    fn expected(rows: &[(i64, u64, f64)]) -> RowCodes {
        let compare = |one: &(i64, u64, f64), other: &(i64, u64, f64)| {
            let floats = one.2.partial_cmp(&other.2).unwrap_or_else(|| one.2.is_nan().cmp(&other.2.is_nan()));
            (one.0, one.1).cmp(&(other.0, other.1)).then(floats)
        };
        let mut distinct = rows.to_vec();
        distinct.sort_by(compare);
        distinct.dedup_by(|one, other| compare(one, other) == Ordering::Equal);
        let code_of =
            |row| distinct.iter().position(|other| compare(row, other) == Ordering::Equal).unwrap_or(0) as i64;
        let codes: Vec<i64> = rows.iter().map(code_of).collect();
        let first =
            (0..distinct.len() as i64).map(|code| codes.iter().position(|&own| own == code).unwrap_or(0) as i64);
        RowCodes { first: first.collect(), codes }
    }

    fn integers() -> impl Strategy<Value = i64> {
        prop_oneof![6 => -3_i64..4, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
    }

    fn floats() -> impl Strategy<Value = f64> {
        prop_oneof![6 => (-3_i32..4).prop_map(f64::from), 1 => any::<f64>(), 1 => Just(f64::NAN), 1 => Just(-0.0)]
    }

    proptest! {
        #[test]
        fn rows_are_counted_in_their_order(
            rows in vec((integers(), integers().prop_map(|value| value as u64), floats()), 0..60),
        ) {
            let first: Vec<i64> = rows.iter().map(|row| row.0).collect();
            let second: Vec<u64> = rows.iter().map(|row| row.1).collect();
            let third: Vec<f64> = rows.iter().map(|row| row.2).collect();
            let columns =
                [NumberColumn::Integers(&first), NumberColumn::Unsigned(&second), NumberColumn::Floats(&third)];
            prop_assert_eq!(row_codes(&columns), Some(expected(&rows)));
        }

        #[test]
        fn values_far_apart_are_sorted(values in vec(prop_oneof![0_i64..9, 1_000_000_i64..1_000_020], 1..40)) {
            let mut distinct = values.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let found = row_codes(&[NumberColumn::Integers(&values)]).unwrap_or_default();
            let back: Vec<i64> = found.codes.iter().map(|&code| distinct[code as usize]).collect();
            prop_assert_eq!(back, values);
        }
    }

    #[test]
    fn columns_that_do_not_fit_give_nothing() {
        assert_eq!(row_codes(&[NumberColumn::Integers(&[1]), NumberColumn::Unsigned(&[])]), None);
        assert_eq!(row_codes(&[]), Some(RowCodes::default()));
    }
}

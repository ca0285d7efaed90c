//! Quantiles of very many values by whose they are.

/// The value with rank `(count - 1) * share`, rounded down, of the known values of each member; NaN of none.
///
/// `owners` has the member of each value, below `members`; a negative one stands for a value that counts for none, and
/// so does NaN. `None` where the columns differ in length, or an owner is none of the members.
pub fn member_quantiles(values: &[f64], owners: &[i64], members: usize, share: f64) -> Option<Vec<f64>> {
    if values.len() != owners.len() {
        return None;
    }
    let mut ends = vec![0; members];
    let counted = || values.iter().zip(owners).filter(|&(value, &owner)| !value.is_nan() && owner >= 0);
    for (_, &owner) in counted() {
        *ends.get_mut(usize::try_from(owner).ok()?)? += 1;
    }
    let mut begin = 0;
    for end in &mut ends {
        begin += std::mem::replace(end, begin);
    }
    let mut sorted = vec![0.0; begin];
    for (&value, &owner) in counted() {
        let end = ends.get_mut(usize::try_from(owner).ok()?)?;
        *sorted.get_mut(*end)? = value;
        *end += 1;
    }
    let mut begin = 0;
    let quantile = |end: usize| {
        let own = sorted.get_mut(std::mem::replace(&mut begin, end)..end).unwrap_or_default();
        let rank = (own.len().saturating_sub(1) as f64 * share) as usize;
        if rank < own.len() {
            *own.select_nth_unstable_by(rank, f64::total_cmp).1
        } else {
            f64::NAN
        }
    };
    Some(ends.into_iter().map(quantile).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_is_that_of_the_sorted_values(
            rows in prop::collection::vec((prop_oneof![3 => 0.0..9.0_f64, 1 => Just(f64::NAN)], -1_i64..6), 0..80),
            share in 0.0..=1.0_f64,
        ) {
            let (values, owners): (Vec<f64>, Vec<i64>) = rows.iter().copied().unzip();
            let found = member_quantiles(&values, &owners, 6, share).unwrap_or_default();
            prop_assert_eq!(found.len(), 6);
            for (member, quantile) in found.into_iter().enumerate() {
                let mut own: Vec<f64> =
                    rows.iter().filter(|row| row.1 == member as i64 && !row.0.is_nan()).map(|row| row.0).collect();
                own.sort_by(f64::total_cmp);
                match own.len() {
                    0 => prop_assert!(quantile.is_nan()),
                    count => prop_assert_eq!(quantile, own[((count - 1) as f64 * share) as usize]),
                }
            }
        }
    }

    #[test]
    fn columns_that_do_not_fit_give_nothing() {
        assert_eq!(member_quantiles(&[1.0], &[], 1, 0.5), None);
        assert_eq!(member_quantiles(&[1.0], &[1], 1, 0.5), None);
        assert_eq!(member_quantiles(&[1.0], &[-1], 0, 0.5), Some(Vec::new()));
    }
}

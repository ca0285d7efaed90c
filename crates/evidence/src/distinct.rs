//! Distinct values and the most common one. Equal values mostly stand side by side: runs of them are taken first.

/// The values that occur, ascending, each once.
pub(crate) fn distinct(mut values: Vec<i64>) -> Vec<i64> {
    values.dedup();
    // A few ascending runs, as of two lists behind each other, are merged by a stable sort.
    values.sort();
    values.dedup();
    values
}

/// How many values occur. Ascending ones are counted as they come.
pub(crate) fn distinct_count(values: impl Iterator<Item = i64> + Clone) -> usize {
    if !values.clone().is_sorted() {
        return distinct(values.collect()).len();
    }
    let mut last = None;
    values.filter(|&value| last.replace(value) != Some(value)).count()
}

/// So many values are counted as they come; runs of others are sorted.
const COUNTED: usize = 12;

/// The most common value and its share, of equally common ones the least; (0, 0) of nothing.
pub(crate) fn most_common(values: &[i64]) -> (i64, f64) {
    let mut runs: Vec<(i64, usize)> = Vec::with_capacity(COUNTED);
    for run in values.chunk_by(i64::eq) {
        let counted = COUNTED.min(runs.len());
        match runs[..counted].iter_mut().find(|(value, _)| *value == run[0]) {
            Some((_, count)) => *count += run.len(),
            None => runs.push((run[0], run.len())),
        }
    }
    runs.sort_unstable();
    let mut best = (0, 0);
    for equal in runs.chunk_by(|one, next| one.0 == next.0) {
        let count = equal.iter().map(|run| run.1).sum();
        if count > best.1 {
            best = (equal[0].0, count);
        }
    }
    (best.0, if values.is_empty() { 0.0 } else { best.1 as f64 / values.len() as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn of_equally_common_values_the_least_is_named() {
        assert_eq!(most_common(&[5, 3, 3, 5, 9]), (3, 0.4));
        assert_eq!(most_common(&[]), (0, 0.0));
    }

    proptest! {
        #[test]
        fn no_value_is_more_common_than_the_most_common(
            values in prop_oneof![vec(-3_i64..4, 1..60), vec(0_i64..20, 1..90)],
        ) {
            let times = |value: i64| values.iter().filter(|&&other| other == value).count();
            let (value, share) = most_common(&values);
            prop_assert_eq!(share, times(value) as f64 / values.len() as f64);
            let every = distinct(values.clone());
            prop_assert!(every.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(distinct_count(values.iter().copied()), every.len());
            let mut ascending = values.clone();
            ascending.sort();
            prop_assert_eq!(distinct_count(ascending.into_iter()), every.len());
            prop_assert_eq!(every.iter().map(|&one| times(one)).sum::<usize>(), values.len());
            prop_assert!(every.iter().all(|&one| times(one) < times(value) + usize::from(one >= value)));
        }
    }
}

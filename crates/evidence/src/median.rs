//! Medians.

/// The median, of an even number of values the mean of the middle two; `None` of none.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    median_of(&mut values)
}

/// The same of values whose order does not matter.
pub(crate) fn median_of(values: &mut [f64]) -> Option<f64> {
    let half = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len() % 2 == 0;
    let (below, &mut middle, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let before = below.iter().copied().max_by(f64::total_cmp);
    Some(before.filter(|_| even).map_or(middle, |before| (before + middle) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![7.0]), Some(7.0));
        assert_eq!(median(vec![9.0, 1.0]), Some(5.0));
        assert_eq!(median(vec![9.0, -1.0, 3.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 9.0, -1.0, 3.0]), Some(3.5));
    }
}

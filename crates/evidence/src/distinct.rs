//! Distinct values and the most common one.

/// The values that occur, ascending, each once.
pub(crate) fn distinct(mut values: Vec<i64>) -> Vec<i64> {
    values.sort_unstable();
    values.dedup();
    values
}

/// The most common value and its share, of equally common ones the least; (0, 0) of nothing.
pub(crate) fn most_common(mut values: Vec<i64>) -> (i64, f64) {
    let total = values.len();
    values.sort_unstable();
    let mut best = (0, 0);
    for run in values.chunk_by(i64::eq) {
        if run.len() > best.1 {
            best = (run[0], run.len());
        }
    }
    (best.0, if total == 0 { 0.0 } else { best.1 as f64 / total as f64 })
}

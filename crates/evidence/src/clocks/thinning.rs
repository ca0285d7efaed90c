//! The most binding points of a cloud in each of many stretches of time.

/// Places, ascending, of the `kept` lowest (or `highest`) points in each of `bins` equal stretches of time.
///
/// Of equally high points the earlier in the columns stays. `None` where the columns, of one length, hold no more than
/// would be kept anyway.
pub fn most_binding(x_ns: &[f64], y_ns: &[f64], kept: usize, bins: usize, highest: bool) -> Option<Vec<usize>> {
    if bins == 0 || x_ns.len() <= kept.saturating_mul(bins) {
        return None;
    }
    let first = x_ns.iter().copied().fold(f64::INFINITY, f64::min);
    let last = x_ns.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = (last - first).max(1.0) / bins as f64;
    let bin = |x: f64| (((x - first) / width) as usize).min(bins - 1);
    let mut ends = vec![0; bins];
    x_ns.iter().for_each(|&x| ends[bin(x)] += 1);
    let mut total = 0;
    for end in &mut ends {
        total += *end;
        *end = total;
    }
    // From the last point on, so that `ends` become starts.
    let mut starts = ends;
    let mut by_bin = vec![0; x_ns.len()];
    for (place, &x) in x_ns.iter().enumerate().rev() {
        let start = &mut starts[bin(x)];
        *start -= 1;
        by_bin[*start] = place;
    }
    let sign = if highest { -1.0 } else { 1.0 };
    let mut chosen = Vec::with_capacity(kept.saturating_mul(bins).min(x_ns.len()));
    let mut rest = by_bin.as_mut_slice();
    let mut before = 0;
    for end in starts.iter().skip(1).copied().chain([x_ns.len()]) {
        let (members, others) = rest.split_at_mut(end - before);
        (rest, before) = (others, end);
        if members.len() > kept {
            members
                .select_nth_unstable_by(kept, |&a, &b| (sign * y_ns[a]).total_cmp(&(sign * y_ns[b])).then(a.cmp(&b)));
        }
        chosen.extend(members.iter().take(kept));
    }
    chosen.sort_unstable();
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_each_stretch_stay_and_the_earlier_of_equal_ones() {
        let x = [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0];
        let y = [5.0, 4.0, 4.0, 9.0, 1.0, 1.0, 0.0, 1.0];
        assert_eq!(most_binding(&x, &y, 2, 2, false), Some(vec![1, 2, 4, 6]));
        assert_eq!(most_binding(&x, &y, 1, 2, true), Some(vec![3, 4]));
        assert_eq!(most_binding(&x, &y, 4, 2, false), None);
    }
}

//! Times that a tool kept from falling: they stand still where the clock was set back.

/// The most turns (packets of one direction, then of the other) in a row that have one time or equal steps of at most
/// `quickest_ns` between them; 0 where the clock ticks coarsely, so that packets of one tick have one time.
pub fn standing_turns(time_ns: &[i64], direction: &[u8], quickest_ns: i64) -> usize {
    let steps = || time_ns.iter().zip(time_ns.iter().skip(1)).map(|(before, after)| after.wrapping_sub(*before));
    let turns = direction.iter().zip(direction.iter().skip(1)).map(|(before, after)| before != after);
    let (mut most, mut row, mut before_ns) = (0, 0, None);
    for (step_ns, is_turn) in steps().zip(turns) {
        let is_equal = step_ns.saturating_abs() <= quickest_ns && before_ns.is_none_or(|ns| ns == step_ns);
        row = if is_equal { row + usize::from(is_turn) } else { 0 };
        most = most.max(row);
        before_ns = Some(step_ns);
    }
    if most > 0 && ticks_coarsely(steps, quickest_ns) {
        0
    } else {
        most
    }
}

/// Whether all steps are whole ticks, each longer than `quickest_ns`.
fn ticks_coarsely<Steps: Iterator<Item = i64>>(steps: impl Fn() -> Steps, quickest_ns: i64) -> bool {
    let Some(tick_ns) = steps().filter(|&step_ns| step_ns > 0).min() else { return false };
    tick_ns > quickest_ns
        && steps().filter(|&step_ns| step_ns > 0).all(|step_ns| {
            let over_ns = step_ns % tick_ns;
            over_ns.min(tick_ns - over_ns) <= quickest_ns
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURNS: [u8; 6] = [0, 1, 0, 1, 0, 1];

    #[test]
    fn turns_without_time_between_stand_still() {
        assert_eq!(standing_turns(&[0, 5_000_001, 5_000_001, 5_000_001, 5_000_001, 9_000_007], &TURNS, 10), 2);
        assert_eq!(standing_turns(&[0, 1, 2, 3, 4, 5], &TURNS, 10), 5);
        assert_eq!(standing_turns(&[0, 100, 200, 300, 400, 500], &TURNS, 10), 0);
        assert_eq!(standing_turns(&[7, 7, 7], &[0; 3], 10), 0);
        assert_eq!(standing_turns(&[7], &[0], 10), 0);
    }

    #[test]
    fn packets_of_one_tick_do_not() {
        let ticked = [0, 0, 0, 1_000, 1_000, 3_000];
        assert_eq!(standing_turns(&ticked, &TURNS, 10), 0);
        assert_eq!(standing_turns(&[0, 0, 0, 1_000, 1_000, 3_400], &TURNS, 10), 2);
    }
}

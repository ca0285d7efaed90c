//! How finely the clock of a capture ticks, by its timestamps.

/// Steps between successive timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampSteps {
    pub count: usize,
    /// Steps of no time.
    pub equal: usize,
    /// The least step forward; `None` where there is none.
    pub least_ns: Option<i64>,
}

impl TimestampSteps {
    pub fn of(time_ns: &[i64]) -> Self {
        let mut steps = TimestampSteps::default();
        for (before, after) in time_ns.iter().zip(time_ns.iter().skip(1)) {
            let step_ns = after.wrapping_sub(*before);
            steps.count += 1;
            steps.equal += usize::from(step_ns == 0);
            if step_ns > 0 {
                steps.least_ns = Some(steps.least_ns.map_or(step_ns, |least_ns| least_ns.min(step_ns)));
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_forward_can_be_the_tick() {
        let found = TimestampSteps::of(&[5, 5, 25, 15, 20]);
        assert_eq!(found, TimestampSteps { count: 4, equal: 1, least_ns: Some(5) });
        assert_eq!(TimestampSteps::of(&[7]), TimestampSteps::default());
    }
}

//! What a capture's timestamps say of its clock: how finely it ticks, where it was set back, how long it shows nothing.

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

/// How many steps there are between successive timestamps, if all have one length; 0 where they differ.
pub fn even_steps(time_ns: &[i64]) -> usize {
    let mut steps = time_ns.iter().zip(time_ns.iter().skip(1)).map(|(before, after)| after.wrapping_sub(*before));
    let count = steps.len();
    let Some(first_ns) = steps.next() else { return 0 };
    if steps.all(|step_ns| step_ns == first_ns) {
        count
    } else {
        0
    }
}

/// Places in capture order before which the clock fell by more than `least_ns`. One packet that stands too late in its
/// file makes no fall: the next one is back where time had got to.
pub fn falls(time_ns: &[i64], least_ns: i64) -> Vec<usize> {
    let mut steps = time_ns.iter().zip(time_ns.iter().skip(1));
    // Nearly no capture has any.
    if steps.all(|(before, &after)| after.wrapping_sub(*before) >= least_ns.saturating_neg()) {
        return Vec::new();
    }
    let later = time_ns.iter().skip(2).map(Some).chain([None]);
    let rows = time_ns.iter().zip(time_ns.iter().skip(1)).zip(later);
    let fallen = rows.enumerate().filter(|(_, ((&before, &after), next))| {
        after.wrapping_sub(before) < least_ns.saturating_neg() && !next.is_some_and(|&next| next >= before)
    });
    fallen.map(|(place, _)| place + 1).collect()
}

/// The longest time between two successive packets of which one lies in a stretch of time; `None` where none does.
pub fn longest_pause_ns(time_ns: &[i64], start_ns: f64, end_ns: f64) -> Option<i64> {
    let inside = |time_ns: i64| start_ns <= time_ns as f64 && time_ns as f64 <= end_ns;
    let pairs = time_ns.iter().zip(time_ns.iter().skip(1));
    let touching = pairs.filter(|&(&before, &after)| inside(before) || inside(after));
    touching.map(|(&before, &after)| after.wrapping_sub(before).wrapping_abs()).max()
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

    #[test]
    fn even_steps_are_all_alike() {
        assert_eq!(even_steps(&[3, 5, 7, 9]), 3);
        assert_eq!(even_steps(&[7, 7, 7]), 2);
        assert_eq!(even_steps(&[3, 5, 7, 10]), 0);
        assert_eq!(even_steps(&[3]), 0);
    }

    #[test]
    fn a_pause_may_begin_before_the_stretch_and_end_behind_it() {
        let time_ns = [0, 10, 40, 50, 150];
        assert_eq!(longest_pause_ns(&time_ns, 20.0, 45.0), Some(30));
        assert_eq!(longest_pause_ns(&time_ns, 20.0, f64::INFINITY), Some(100));
        assert_eq!(longest_pause_ns(&time_ns, 160.0, 170.0), None);
    }

    #[test]
    fn a_packet_that_stands_late_in_its_file_is_no_fall() {
        assert_eq!(falls(&[0, 30, 10, 40, 50], 5), [0; 0]);
        assert_eq!(falls(&[0, 30, 10, 20, 40], 5), [2]);
        assert_eq!(falls(&[0, 30, 10, 20, 40], 20), [0; 0]);
        assert_eq!(falls(&[30, 10], 5), [1]);
        assert_eq!(falls(&[], 5), [0; 0]);
    }
}

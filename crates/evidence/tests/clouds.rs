//! Properties of separating lines, order statistics and the step search on generated clouds.

use pepscope_evidence::clocks::order_statistics::order_statistics;
use pepscope_evidence::clocks::point::{Ceiling, Point};
use pepscope_evidence::clocks::separation::{separate, separate_most, Separation, Spared};
use pepscope_evidence::clocks::steps::StepSearch;
use pepscope_evidence::clocks::thinning::most_binding;
use proptest::collection::vec;
use proptest::prelude::*;

const LIMIT: f64 = 5e-4;

/// Times within 100 s, heights of steep and of flat clouds, with equal ones among them.
fn columns() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let height = prop_oneof![-100_000_000_i64..100_000_000, -1000_i64..1000, -3_i64..3];
    vec((0_i64..100_000_000_000, height), 0..120)
        .prop_map(|points| points.into_iter().map(|(x, y)| (x as f64, y as f64)).unzip())
}

fn upper((x_ns, y_ns): &(Vec<f64>, Vec<f64>)) -> Ceiling {
    Ceiling::of_upper(x_ns, y_ns)
}

fn lower((x_ns, y_ns): &(Vec<f64>, Vec<f64>)) -> Ceiling {
    Ceiling::of_lower(x_ns, y_ns)
}

fn grid(steps: usize) -> Vec<f64> {
    (0..steps).map(|place| LIMIT * (2.0 * place as f64 / (steps - 1) as f64 - 1.0)).collect()
}

fn ranked(points: &[Point], rank: usize, slope: f64) -> f64 {
    let mut offsets: Vec<f64> = points.iter().map(|point| point.offset_ns(slope)).collect();
    offsets.sort_by(f64::total_cmp);
    offsets[rank]
}

fn whole_test(search: &StepSearch, lower: &[Point], upper: &[Point]) -> Separation {
    let exact = separate(lower, upper, search.drift_limit);
    separate_most(lower, upper, search.drift_limit, search.spared, search.drift_steps, exact)
}

fn within(points: &[Point], start_ns: f64, end_ns: f64) -> Vec<Point> {
    points.iter().copied().filter(|point| point.x_ns >= start_ns && point.x_ns < end_ns).collect()
}

proptest! {
    #[test]
    fn order_statistics_are_those_of_sorting(cloud in columns(), rank in 0_usize..8, steps in 2_usize..60) {
        let ceiling = upper(&cloud);
        let found = order_statistics(ceiling.points(), rank, &grid(steps));
        for (found, slope) in found.iter().zip(grid(steps)) {
            if rank < ceiling.points().len() {
                prop_assert_eq!(*found, ranked(ceiling.points(), rank, slope));
            } else {
                prop_assert_eq!(*found, f64::INFINITY);
            }
        }
    }

    #[test]
    fn no_admissible_line_leaves_more_room(below in columns(), above in columns()) {
        let (floor, ceiling) = (lower(&below), upper(&above));
        prop_assume!(!floor.points().is_empty() && !ceiling.points().is_empty());
        let found = separate(floor.points(), ceiling.points(), LIMIT);
        prop_assert!(found.drift.abs() <= LIMIT);
        prop_assert_eq!(found.high_ns - found.low_ns, found.slack_ns);
        for slope in grid(101) {
            let gap_ns = ranked(ceiling.points(), 0, slope) + ranked(floor.points(), 0, -slope);
            prop_assert!(found.slack_ns >= gap_ns - 1e-3);
        }
    }

    #[test]
    fn a_negative_slack_is_a_proof(below in columns(), above in columns(), few in 0_usize..4, more in 0_usize..4) {
        let (floor, ceiling) = (lower(&below), upper(&above));
        prop_assume!(floor.points().len() > few && ceiling.points().len() > more);
        let exact = separate(floor.points(), ceiling.points(), LIMIT);
        let spared = Spared { lower: few, upper: more };
        let found = separate_most(floor.points(), ceiling.points(), LIMIT, spared, 21, exact);
        prop_assert!(found.slack_ns >= exact.slack_ns - 1e-3);
        if found.slack_ns < 0.0 {
            for slope in grid(77) {
                let gap_ns = ranked(ceiling.points(), more, slope) + ranked(floor.points(), few, -slope);
                prop_assert!(gap_ns <= found.slack_ns + 1e-3);
            }
        }
    }

    /// The short cuts of the step search change nothing.
    #[test]
    fn stretches_are_those_of_whole_tests(
        below in columns(),
        above in columns(),
        few in 0_usize..3,
        more in 0_usize..3,
        needed_ns in -1e5..1e8_f64,
    ) {
        let spared = Spared { lower: few, upper: more };
        let search = StepSearch { drift_limit: LIMIT, spared, drift_steps: 11, needed_ns, most_steps: 300 };
        let (floor, ceiling) = (lower(&below), upper(&above));
        let mut times: Vec<f64> = below.0.iter().chain(&above.0).copied().collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let found = search.run(&floor, &ceiling).unwrap_or_default();
        let mut first = 0;
        for stretch in found {
            let test = |last: usize| {
                let (start_ns, end_ns) = (times[first], times[last] + 1.0);
                let window = |ceiling: &Ceiling| within(ceiling.points(), start_ns, end_ns);
                whole_test(&search, &window(&floor), &window(&ceiling))
            };
            let (mut good, mut bad) = (first, times.len());
            while bad - good > 1 {
                let middle = (good + bad) / 2;
                if test(middle).slack_ns >= needed_ns { good = middle } else { bad = middle }
            }
            prop_assert_eq!(stretch.start_ns, times[first]);
            prop_assert_eq!(stretch.end_ns, times[good] + 1.0);
            prop_assert_eq!(stretch.separation, test(good));
            first = good + 1;
        }
        prop_assert_eq!(first, times.len());
    }

    #[test]
    fn each_stretch_of_time_keeps_its_lowest(cloud in columns(), kept in 1_usize..4, bins in 1_usize..9) {
        let Some(places) = most_binding(&cloud.0, &cloud.1, kept, bins, false) else {
            prop_assert!(cloud.0.len() <= kept * bins);
            return Ok(());
        };
        prop_assert!(places.is_sorted() && places.len() <= kept * bins);
        let lowest = (0..cloud.1.len()).min_by(|&a, &b| cloud.1[a].total_cmp(&cloud.1[b])).unwrap_or(0);
        prop_assert!(places.contains(&lowest));
    }
}

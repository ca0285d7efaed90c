//! The bounds that data and acknowledgements of both flows set to the difference of the two clocks, as two clouds.

use crate::clocks::point::{Ceiling, Point};
use crate::clocks::separation::{separate, separate_most, Separation, Spared};
use crate::clocks::steps::{StepSearch, Stretch};
use crate::clocks::thinning::most_binding;
use crate::flows::times::{Difference, FlowTimes};
use crate::median::median;

/// Points of one cloud relative to the constraints' reference, in the order in which they were gathered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cloud {
    pub x_ns: Vec<f64>,
    pub y_ns: Vec<f64>,
}

/// Lower and upper bounds on the server's clock minus the client's, relative to a time and a difference.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    pub reference_ns: i64,
    pub base_ns: i64,
    pub spared: Spared,
    pub lower: Cloud,
    pub upper: Cloud,
    /// The same in order of time, the lower ones mirrored.
    floor: Ceiling,
    ceiling: Ceiling,
}

impl Cloud {
    /// The `kept` most binding points of each of `bins` stretches of time; None where these are all.
    fn thinned(&self, kept: usize, bins: usize, highest: bool) -> Option<Cloud> {
        let places = most_binding(&self.x_ns, &self.y_ns, kept, bins, highest)?;
        let taken = |column: &[f64]| places.iter().map(|&place| column[place]).collect();
        Some(Cloud { x_ns: taken(&self.x_ns), y_ns: taken(&self.y_ns) })
    }

    /// The points of lower bounds in order of time, mirrored.
    fn floor(&self) -> Ceiling {
        Ceiling::of_lower(&self.x_ns, &self.y_ns)
    }

    /// The points of upper bounds in order of time.
    fn ceiling(&self) -> Ceiling {
        Ceiling::of_upper(&self.x_ns, &self.y_ns)
    }

    pub fn len(&self) -> usize {
        self.x_ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.x_ns.is_empty()
    }
}

impl Constraints {
    /// Clouds of columns of one length each.
    pub fn new(lower: Cloud, upper: Cloud, reference_ns: i64, base_ns: i64, spared: Spared) -> Self {
        let (floor, ceiling) = (lower.floor(), upper.ceiling());
        Self { reference_ns, base_ns, spared, lower, upper, floor, ceiling }
    }

    /// What data and acknowledgements say: of each of `bins` stretches of time as many points as bind once those to be
    /// spared are left out. Times are the client's, or the server's.
    pub fn of_flows(flows: &[&FlowTimes], server_clock: bool, spared: Spared, bins: usize) -> Self {
        // Data of the client and acknowledgements to the server bound from above.
        let (mut upper, mut lower) = (Gathered::default(), Gathered::default());
        for flow in flows {
            let (of_data, of_acks) = if flow.is_up { (&mut upper, &mut lower) } else { (&mut lower, &mut upper) };
            of_data.add(flow.data_differences(server_clock), flow.data.len());
            of_acks.add(flow.ack_differences(server_clock), flow.acks.len());
        }
        let base_ns = upper.middle().or_else(|| lower.middle()).unwrap_or(0);
        let (upper, lower) = (upper.points, lower.points);
        let reference_ns = lower.iter().chain(&upper).map(|&(time_ns, _)| time_ns).min().unwrap_or(0);
        let thinned = |points, kept: usize, highest| {
            let cloud = relative(points, reference_ns, base_ns);
            cloud.thinned(kept.saturating_add(1), bins, highest).unwrap_or(cloud)
        };
        let (lower, upper) = (thinned(lower, spared.lower, true), thinned(upper, spared.upper, false));
        Self::new(lower, upper, reference_ns, base_ns, spared)
    }

    /// What data alone say, relative to the same time and difference.
    pub fn of_data(flows: &[&FlowTimes], reference_ns: i64, base_ns: i64, bins: usize) -> Self {
        let cloud = |is_up: bool| {
            let mut gathered = Gathered::default();
            for flow in flows.iter().filter(|flow| flow.is_up == is_up) {
                gathered.add(flow.data_differences(false), flow.data.len());
            }
            let cloud = relative(gathered.points, reference_ns, base_ns);
            cloud.thinned(1, bins, !is_up).unwrap_or(cloud)
        };
        Self::new(cloud(false), cloud(true), reference_ns, base_ns, Spared::default())
    }

    /// The most binding points of each of fewer stretches of time.
    pub fn thinned(&self, bins: usize) -> Self {
        let lower = self.lower.thinned(self.spared.lower.saturating_add(1), bins, true);
        let upper = self.upper.thinned(self.spared.upper.saturating_add(1), bins, false);
        Self {
            floor: lower.as_ref().map_or_else(|| self.floor.clone(), Cloud::floor),
            ceiling: upper.as_ref().map_or_else(|| self.ceiling.clone(), Cloud::ceiling),
            lower: lower.unwrap_or_else(|| self.lower.clone()),
            upper: upper.unwrap_or_else(|| self.upper.clone()),
            ..*self
        }
    }

    /// The first and the last time relative to the reference; `None` without points.
    pub fn span_ns(&self) -> Option<(f64, f64)> {
        let times = || self.floor.points().iter().chain(self.ceiling.points()).map(|point| point.x_ns);
        let first_ns = times().reduce(f64::min)?;
        Some((first_ns, times().reduce(f64::max)?))
    }

    pub fn separate(&self, drift_limit: f64) -> Separation {
        separate(self.floor.points(), self.ceiling.points(), drift_limit)
    }

    /// `exact` is what `separate` gave for this limit.
    pub fn separate_most(&self, drift_limit: f64, drift_steps: usize, exact: Separation) -> Separation {
        separate_most(self.floor.points(), self.ceiling.points(), drift_limit, self.spared, drift_steps, exact)
    }

    /// The greatest lower and the least upper bound at no drift that are not spared; infinite where all are.
    pub fn unspared_bounds_ns(&self) -> (f64, f64) {
        let low_ns = -ranked(self.floor.points(), self.spared.lower);
        (low_ns, ranked(self.ceiling.points(), self.spared.upper))
    }

    /// The longest stretches of time, one after another, in which one line leaves `needed_ns` between the clouds.
    pub fn separable_stretches(
        &self,
        drift_limit: f64,
        drift_steps: usize,
        needed_ns: f64,
        most_steps: usize,
    ) -> Option<Vec<Stretch>> {
        let search = StepSearch { drift_limit, spared: self.spared, drift_steps, needed_ns, most_steps };
        search.run(&self.floor, &self.ceiling)
    }
}

/// Points of several flows, one behind the other.
#[derive(Default)]
struct Gathered {
    points: Vec<Difference>,
    /// How many are of the first flow that has any.
    first: usize,
}

impl Gathered {
    /// Adds those of one more flow, at most so many.
    fn add(&mut self, points: impl Iterator<Item = Difference>, most: usize) {
        self.points.reserve(most);
        self.points.extend(points);
        if self.first == 0 {
            self.first = self.points.len();
        }
    }

    /// Median difference of the first flow that has points, in whole nanoseconds.
    fn middle(&self) -> Option<i64> {
        let differences = self.points[..self.first].iter().map(|point| point.1 as f64);
        median(differences.collect()).map(|difference_ns| difference_ns as i64)
    }
}

fn relative(points: Vec<Difference>, reference_ns: i64, base_ns: i64) -> Cloud {
    let columns = points.into_iter().map(|(time_ns, difference_ns)| {
        (time_ns.wrapping_sub(reference_ns) as f64, difference_ns.wrapping_sub(base_ns) as f64)
    });
    let (x_ns, y_ns) = columns.unzip();
    Cloud { x_ns, y_ns }
}

fn ranked(points: &[Point], rank: usize) -> f64 {
    let mut heights: Vec<f64> = points.iter().map(|point| point.y_ns).collect();
    if rank < heights.len() {
        *heights.select_nth_unstable_by(rank, f64::total_cmp).1
    } else {
        f64::INFINITY
    }
}

//! Constraints on the difference of two clocks as points in time.

/// A bound on the clock difference: `y_ns` at time `x_ns`, both relative to some reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x_ns: f64,
    pub y_ns: f64,
}

impl Point {
    /// Where the line of this slope through the point stands at time 0.
    pub fn offset_ns(self, slope: f64) -> f64 {
        self.y_ns - slope * self.x_ns
    }
}

/// Upper bounds on the clock difference, in order of time; the lowest bind.
///
/// Lower bounds are kept mirrored (`y` negated), so that one set of functions serves both: the greatest `y - slope * x`
/// of lower bounds is minus the least offset of the mirrored ones at the slope `-slope`.
#[derive(Clone, Debug, Default)]
pub struct Ceiling(Vec<Point>);

impl Ceiling {
    /// From columns of one length.
    pub fn of_upper(x_ns: &[f64], y_ns: &[f64]) -> Self {
        Self::sorted(x_ns.iter().zip(y_ns).map(|(&x_ns, &y_ns)| Point { x_ns, y_ns }).collect())
    }

    /// From columns of one length, mirrored.
    pub fn of_lower(x_ns: &[f64], y_ns: &[f64]) -> Self {
        Self::sorted(x_ns.iter().zip(y_ns).map(|(&x_ns, &y_ns)| Point { x_ns, y_ns: -y_ns }).collect())
    }

    fn sorted(mut points: Vec<Point>) -> Self {
        // Columns are a few runs in order of time, which a stable sort merges.
        points.sort_by(|a, b| a.x_ns.total_cmp(&b.x_ns).then(a.y_ns.total_cmp(&b.y_ns)));
        Self(points)
    }

    pub fn points(&self) -> &[Point] {
        &self.0
    }
}

/// Time from the first to the last of two sets of points, each in order of time.
pub(crate) fn span_ns(one: &[Point], other: &[Point]) -> f64 {
    let first = [one.first(), other.first()].into_iter().flatten().map(|point| point.x_ns);
    let last = [one.last(), other.last()].into_iter().flatten().map(|point| point.x_ns);
    last.fold(f64::NEG_INFINITY, f64::max) - first.fold(f64::INFINITY, f64::min)
}

/// By how much two offsets that are equal may differ as computed, for slopes within `slope_limit`.
///
/// A product and a difference round by half a unit in the last place each; two offsets are compared at two slopes.
pub(crate) fn rounding_ns(points: &[Point], slope_limit: f64) -> f64 {
    let greatest = points.iter().map(|point| point.y_ns.abs() + slope_limit * point.x_ns.abs()).fold(0.0, f64::max);
    8.0 * f64::EPSILON * greatest
}

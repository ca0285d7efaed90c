//! The lower convex hull of a cloud, as far as a line of bounded slope can touch it.

use crate::clocks::point::Point;

/// Vertices of the lower hull that some line with |slope| <= `slope_limit` can touch, in order of time.
///
/// A point on or above the cone `y + slope_limit * |x - x0|` of another one never binds: two running minima find those.
pub(crate) fn envelope(points: &[Point], slope_limit: f64) -> Vec<Point> {
    let risen = below_all_before(points.iter(), slope_limit);
    let mut open = below_all_before(risen.iter().rev(), -slope_limit);
    open.reverse();
    let mut hull: Vec<Point> = Vec::new();
    for point in open {
        while let [.., before, last] = hull.as_slice() {
            if lies_below_chord(*before, *last, point) {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The points whose line of this slope stands lower than those of all points before.
fn below_all_before<'a>(points: impl Iterator<Item = &'a Point>, slope: f64) -> Vec<Point> {
    let mut least_ns = f64::INFINITY;
    let mut kept = Vec::new();
    for &point in points {
        let offset_ns = point.offset_ns(slope);
        if offset_ns < least_ns || kept.is_empty() {
            least_ns = offset_ns;
            kept.push(point);
        }
    }
    kept
}

/// Whether the middle one of three points in order of time lies below the chord of the others.
fn lies_below_chord(first: Point, middle: Point, last: Point) -> bool {
    (middle.y_ns - first.y_ns) * (last.x_ns - first.x_ns) < (last.y_ns - first.y_ns) * (middle.x_ns - first.x_ns)
}

/// The least offset of a line with this slope through one of the points.
pub(crate) fn least_offset_ns(points: &[Point], slope: f64) -> f64 {
    points.iter().map(|point| point.offset_ns(slope)).fold(f64::INFINITY, f64::min)
}

/// Slopes of the edges between neighbours.
pub(crate) fn edge_slopes(hull: &[Point]) -> impl Iterator<Item = f64> + '_ {
    hull.iter().zip(hull.iter().skip(1)).filter_map(|(a, b)| {
        let run_ns = b.x_ns - a.x_ns;
        (run_ns > 0.0).then(|| (b.y_ns - a.y_ns) / run_ns)
    })
}

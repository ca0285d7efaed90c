//! The lower convex hull of a cloud, as far as a line of bounded slope can touch it.

use crate::clocks::point::Point;

/// Vertices of the lower hull that some line with |slope| <= `slope_limit` can touch, in order of time.
///
/// A point on or above the cone `y + slope_limit * |x - x0|` of another one never binds: two running minima find those.
pub(crate) fn envelope(points: &[Point], slope_limit: f64) -> Vec<Point> {
    let mut hull: Vec<Point> = points.iter().copied().filter(below_all_before(slope_limit)).collect();
    hull.reverse();
    hull.retain(below_all_before(-slope_limit));
    hull.reverse();
    // The vertices take the places of points that were looked at.
    let mut kept = 0;
    for place in 0..hull.len() {
        let point = hull[place];
        while kept > 1 && !lies_below_chord(hull[kept - 2], hull[kept - 1], point) {
            kept -= 1;
        }
        hull[kept] = point;
        kept += 1;
    }
    hull.truncate(kept);
    hull
}

/// Whether the line of this slope through a point stands lower than those through all points asked about before.
fn below_all_before(slope: f64) -> impl FnMut(&Point) -> bool {
    let mut least_ns = None;
    move |point| {
        let offset_ns = point.offset_ns(slope);
        let is_below = least_ns.is_none_or(|least_ns| offset_ns < least_ns);
        if is_below {
            least_ns = Some(offset_ns);
        }
        is_below
    }
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

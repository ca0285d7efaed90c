//! The widest gap between upper and lower bounds over all lines of bounded slope.
//!
//! `detector/clocks/separation.py` has the maths: the gap is a concave, piecewise linear function of the slope, with its
//! breakpoints at slopes of edges of the two hulls.

use crate::clocks::envelope::{edge_slopes, envelope, least_offset_ns};
use crate::clocks::order_statistics::order_statistics;
use crate::clocks::point::{span_ns, Point};

/// The best line between two clouds, in the middle of their gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Separation {
    /// Room between the clouds along the line; negative where they overlap, infinite where one has no points.
    pub slack_ns: f64,
    pub offset_ns: f64,
    pub drift: f64,
    /// The least and the greatest offset that this drift allows at time 0.
    pub low_ns: f64,
    pub high_ns: f64,
}

impl Separation {
    fn between(low_ns: f64, high_ns: f64, slack_ns: f64, drift: f64) -> Self {
        Self { slack_ns, offset_ns: (high_ns + low_ns) / 2.0, drift, low_ns, high_ns }
    }
}

/// How many points of each cloud may be ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spared {
    pub lower: usize,
    pub upper: usize,
}

/// The widest gap over all lines with |drift| <= `drift_limit`, exactly.
///
/// `lower` holds mirrored points; both are in order of time.
pub fn separate(lower: &[Point], upper: &[Point], drift_limit: f64) -> Separation {
    if lower.is_empty() || upper.is_empty() {
        return one_sided(lower, upper);
    }
    let floor = envelope(lower, drift_limit);
    let ceiling = envelope(upper, drift_limit);
    let mut best: Option<Separation> = None;
    for drift in breakpoints(&floor, &ceiling, drift_limit) {
        let high_ns = least_offset_ns(&ceiling, drift);
        let low_ns = -least_offset_ns(&floor, -drift);
        let gap_ns = high_ns - low_ns;
        // Among equally good drifts the smallest is the plainest.
        let better = best
            .is_none_or(|best| gap_ns > best.slack_ns || (gap_ns == best.slack_ns && drift.abs() < best.drift.abs()));
        if better {
            best = Some(Separation::between(low_ns, high_ns, gap_ns, drift));
        }
    }
    best.unwrap_or_else(|| one_sided(lower, upper))
}

/// The widest gap where as many points may be ignored as `spared` says.
///
/// For a drift it is a pair of order statistics, over drifts a grid of `drift_steps` (at least two). A negative slack is
/// raised by the most that can lie between two of them, so that it is a proof. Where the clouds are separable as they
/// are, that is the answer: `exact`, which `separate` gave for them.
pub fn separate_most(
    lower: &[Point],
    upper: &[Point],
    drift_limit: f64,
    spared: Spared,
    drift_steps: usize,
    exact: Separation,
) -> Separation {
    if exact.slack_ns >= 0.0 || spared == Spared::default() {
        return exact;
    }
    if lower.len() <= spared.lower || upper.len() <= spared.upper {
        let (low_ns, high_ns) = (f64::NEG_INFINITY, f64::INFINITY);
        return Separation { slack_ns: f64::INFINITY, low_ns, high_ns, ..exact };
    }
    let drifts = drift_grid(drift_limit, drift_steps);
    let mirrored: Vec<f64> = drifts.iter().rev().map(|drift| -drift).collect();
    let high = order_statistics(upper, spared.upper, &drifts);
    let low = order_statistics(lower, spared.lower, &mirrored);
    let mut best = exact;
    best.slack_ns = f64::NEG_INFINITY;
    for ((&drift, &high_ns), &mirrored_ns) in drifts.iter().zip(&high).zip(low.iter().rev()) {
        let gap_ns = high_ns + mirrored_ns;
        if gap_ns > best.slack_ns {
            best = Separation::between(-mirrored_ns, high_ns, gap_ns, drift);
        }
    }
    if best.slack_ns < 0.0 {
        let between_ns = span_ns(lower, upper) * drift_limit / intervals(drift_steps) as f64;
        best.slack_ns = (best.slack_ns + between_ns).min(0.0);
    }
    best
}

/// `drift_steps` drifts from one limit to the other, or the one there is.
fn drift_grid(drift_limit: f64, drift_steps: usize) -> Vec<f64> {
    if drift_limit <= 0.0 {
        return vec![0.0];
    }
    let step = 2.0 * drift_limit / intervals(drift_steps) as f64;
    (0..intervals(drift_steps)).map(|place| place as f64 * step - drift_limit).chain([drift_limit]).collect()
}

fn intervals(drift_steps: usize) -> usize {
    drift_steps.max(2) - 1
}

/// Drifts at which the gap may be widest, ascending.
fn breakpoints(floor: &[Point], ceiling: &[Point], drift_limit: f64) -> Vec<f64> {
    let edges = edge_slopes(ceiling).chain(edge_slopes(floor).map(|slope| -slope));
    let mut drifts: Vec<f64> = [-drift_limit, 0.0, drift_limit]
        .into_iter()
        .chain(edges)
        .filter(|drift| drift.abs() <= drift_limit)
        .map(|drift| drift + 0.0) // no negative zero
        .collect();
    drifts.sort_unstable_by(f64::total_cmp);
    drifts.dedup();
    drifts
}

fn one_sided(lower: &[Point], upper: &[Point]) -> Separation {
    let low_ns = lower.iter().map(|point| -point.y_ns).fold(f64::NEG_INFINITY, f64::max);
    let high_ns = upper.iter().map(|point| point.y_ns).fold(f64::INFINITY, f64::min);
    let offset_ns = [low_ns, high_ns].into_iter().find(|bound| bound.is_finite()).unwrap_or(0.0);
    Separation { slack_ns: f64::INFINITY, offset_ns, drift: 0.0, low_ns, high_ns }
}

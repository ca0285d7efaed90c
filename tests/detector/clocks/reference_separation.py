"""`detector.clocks.separation` in NumPy, step by step as its maths has it: what the compiled one is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from detector.clocks.separation import DRIFT_STEPS, Separation
from pepscope import _core
from pepscope.results.verdicts import FloatArray

#: So few points go through the hull's loop as they are.
FEW_POINTS = 64


@dataclass(frozen=True, slots=True)
class Cloud:
    """Constraint points: x in ns from a reference, y in ns."""

    x_ns: FloatArray
    y_ns: FloatArray

    def __len__(self) -> int:
        return len(self.x_ns)


def constraints(lower: Cloud, upper: Cloud, lower_spared: int = 0, upper_spared: int = 0) -> _core.Constraints:
    """Two clouds for the compiled separation."""
    columns = (lower.x_ns, lower.y_ns), (upper.x_ns, upper.y_ns)
    return _core.Constraints(*columns, 1_700_000_000 * 10**9, 7, lower_spared, upper_spared)


def between(cloud: Cloud, start_ns: float, end_ns: float) -> Cloud:
    """Points with start <= x < end."""
    inside = (cloud.x_ns >= start_ns) & (cloud.x_ns < end_ns)
    return Cloud(cloud.x_ns[inside], cloud.y_ns[inside])


def separate(lower: Cloud, upper: Cloud, drift_limit: float) -> Separation:
    """Widest gap between the clouds over all lines with |drift| <= drift_limit (exact)."""
    if len(lower) == 0 or len(upper) == 0:
        return _one_sided(lower, upper)
    floor = _envelope(Cloud(lower.x_ns, -lower.y_ns), drift_limit)  # mirrored, so that both are lower hulls
    ceiling = _envelope(upper, drift_limit)
    slopes = np.concatenate([[-drift_limit, 0.0, drift_limit], _edge_slopes(ceiling), -_edge_slopes(floor)])
    slopes = np.unique(slopes[np.abs(slopes) <= drift_limit])
    high = np.array([(ceiling.y_ns - slope * ceiling.x_ns).min() for slope in slopes])
    low = np.array([(-floor.y_ns - slope * floor.x_ns).max() for slope in slopes])
    gap = high - low
    # Among equally good drifts the smallest is the plainest.
    best = max(range(len(slopes)), key=lambda k: (gap[k], -abs(slopes[k])))
    return Separation(
        float(gap[best]), float(high[best] + low[best]) / 2, float(slopes[best]), float(low[best]), float(high[best])
    )


def separate_most(
    lower: Cloud,
    upper: Cloud,
    drift_limit: float,
    lower_spared: int,
    upper_spared: int,
    drift_steps: int = DRIFT_STEPS,
    exact: Separation | None = None,
) -> Separation:
    """Widest gap when up to `lower_spared` and `upper_spared` points of each cloud may be ignored.

    `exact` is what `separate` gave for the same clouds, where that is known already.
    For a fixed drift this is an exact pair of order statistics. Over drifts a grid is used, and a negative slack is
    raised by the most that can lie between two grid lines, so that it is a proof.
    """
    exact = separate(lower, upper, drift_limit) if exact is None else exact
    if exact.slack_ns >= 0 or (lower_spared == 0 and upper_spared == 0):
        return exact
    if len(lower) <= lower_spared or len(upper) <= upper_spared:
        return Separation(math.inf, exact.offset_ns, exact.drift, -math.inf, math.inf)
    slopes = np.linspace(-drift_limit, drift_limit, drift_steps) if drift_limit > 0 else np.zeros(1)
    low = np.array([-_order_statistic(-lower.y_ns + slope * lower.x_ns, lower_spared) for slope in slopes])
    high = np.array([_order_statistic(upper.y_ns - slope * upper.x_ns, upper_spared) for slope in slopes])
    gap = high - low
    best = int(np.argmax(gap))
    slack = float(gap[best])
    if slack < 0:
        x = np.concatenate([lower.x_ns, upper.x_ns])
        slack = min(0.0, slack + float(x.max() - x.min()) * drift_limit / (drift_steps - 1))
    return Separation(
        slack, float(high[best] + low[best]) / 2, float(slopes[best]), float(low[best]), float(high[best])
    )


def thin(cloud: Cloud, kept: int, bins: int, *, highest: bool) -> Cloud:
    """Keep the `kept` most binding points of each of `bins` time bins (lowest, or `highest`).

    A line of slope b changes by b * bin width within a bin, so slacks move by no more than that: 12 us for 100 s,
    500 ppm and 4096 bins.
    """
    if len(cloud) <= kept * bins:
        return cloud
    first, last = float(cloud.x_ns.min()), float(cloud.x_ns.max())
    width = max(last - first, 1.0) / bins
    place = np.minimum(((cloud.x_ns - first) / width).astype(np.int16), np.int16(bins - 1))
    by_value = np.argsort(-cloud.y_ns if highest else cloud.y_ns, kind="stable")
    order = by_value[np.argsort(place[by_value], kind="stable")]  # 16-bit keys sort by radix
    counts = np.bincount(place, minlength=bins)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = np.sort(order[rank < kept])
    return Cloud(cloud.x_ns[chosen], cloud.y_ns[chosen])


def _one_sided(lower: Cloud, upper: Cloud) -> Separation:
    if len(lower):
        low = float(lower.y_ns.max())
        return Separation(math.inf, low, 0.0, low, math.inf)
    if len(upper):
        high = float(upper.y_ns.min())
        return Separation(math.inf, high, 0.0, -math.inf, high)
    return Separation(math.inf, 0.0, 0.0, -math.inf, math.inf)


def _envelope(cloud: Cloud, drift_limit: float) -> Cloud:
    """Vertices of the lower hull that some line of allowed slope can touch.

    A point above the cone y + limit * |x - x0| of another point never binds: two running minima find those. Few points
    are left for the hull's own loop.
    """
    order = np.lexsort((cloud.y_ns, cloud.x_ns))
    x, y = cloud.x_ns[order], cloud.y_ns[order]
    keep = np.ones(len(x), np.bool_)
    rising, falling = y - drift_limit * x, y + drift_limit * x
    keep[1:] &= rising[1:] < np.minimum.accumulate(rising)[:-1]
    x, y, falling = x[keep], y[keep], falling[keep]
    keep = np.ones(len(x), np.bool_)
    keep[:-1] &= falling[:-1] < np.minimum.accumulate(falling[::-1])[::-1][1:]
    x, y = _between_chords(x[keep], y[keep])
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) >= 2 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return Cloud(np.array([p[0] for p in hull]), np.array([p[1] for p in hull]))


def _between_chords(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out points on or above the chord of their neighbours, none of which is a vertex, while that pays."""
    while len(x) > FEW_POINTS:
        keep = np.ones(len(x), np.bool_)
        run, rise = x[2:] - x[:-2], y[2:] - y[:-2]
        keep[1:-1] = (y[1:-1] - y[:-2]) * run < rise * (x[1:-1] - x[:-2])
        if 4 * np.count_nonzero(keep) > 3 * len(x):
            break
        x, y = x[keep], y[keep]
    return x, y


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def _edge_slopes(hull: Cloud) -> FloatArray:
    run = np.diff(hull.x_ns)
    rise = np.diff(hull.y_ns)
    return rise[run > 0] / run[run > 0]


def _order_statistic(values: FloatArray, rank: int) -> float:
    return float(np.partition(values, rank)[rank])

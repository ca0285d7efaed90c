"""Separating two clouds of clock constraints by a line of bounded slope, exactly.

Lower points say "the clock difference was at least y at time x", upper points "at most y". A line
offset + drift * x with |drift| <= limit satisfies all of them iff

    g(drift) = min_j (u_j - drift * x_j) - max_i (l_i - drift * x_i)

is non-negative somewhere in |drift| <= limit. g is concave and piecewise linear; its breakpoints are slopes of edges of
the lower hull of the upper points and of the upper hull of the lower points (Moon, Skelly and Towsley 1999; Zhang, Liu
and Xia 2002), so its maximum, the slack, is found by evaluating it there. Times enter as nanoseconds relative to a
reference near the data, in float64: exact up to 2**53 ns (104 days), and no cross product overflows.

A point above the cone y + limit * |x - x0| of another upper point never binds, so two running minima leave few points
for the hull. Where k points of a cloud may be ignored, the line stands at the first that may not: at an order statistic
of y - drift * x for each drift of a grid. `crates/evidence` does the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pepscope import _core

FloatArray = npt.NDArray[np.float64]

#: Lines tried when constraints may be left out; a negative slack is corrected for what lies between two neighbours.
DRIFT_STEPS = 201


@dataclass(frozen=True, slots=True)
class Cloud:
    """Constraint points: x in ns from a reference, y in ns."""

    x_ns: FloatArray
    y_ns: FloatArray

    def __len__(self) -> int:
        return len(self.x_ns)

    @property
    def columns(self) -> tuple[FloatArray, FloatArray]:
        """x and y."""
        return self.x_ns, self.y_ns


@dataclass(frozen=True, slots=True)
class Separation:
    """Best line between two clouds.

    `slack_ns` > 0 is the room between them (the vertical gap along the line), < 0 by how much they overlap at the
    least; infinite where one cloud is empty. The line runs in the middle of the gap.
    """

    slack_ns: float
    offset_ns: float
    drift: float
    low_ns: float  # lowest and highest offset that this drift allows at x = 0
    high_ns: float


def separate(lower: Cloud, upper: Cloud, drift_limit: float) -> Separation:
    """Widest gap between the clouds over all lines with |drift| <= drift_limit (exact).

    Among equally good drifts the smallest is taken.
    """
    return Separation(*_core.separate(lower.columns, upper.columns, drift_limit))


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
    known = None if exact is None else (exact.slack_ns, exact.offset_ns, exact.drift, exact.low_ns, exact.high_ns)
    found = _core.separate_most(
        lower.columns, upper.columns, drift_limit, lower_spared, upper_spared, drift_steps, known
    )
    return Separation(*found)


def thin(cloud: Cloud, kept: int, bins: int, *, highest: bool) -> Cloud:
    """Keep the `kept` most binding points of each of `bins` time bins (lowest, or `highest`).

    A line of slope b changes by b * bin width within a bin, so slacks move by no more than that: 12 us for 100 s,
    500 ppm and 4096 bins. Of equally high points the earlier ones of the cloud are kept.
    """
    thinned = _core.thin(cloud.columns, kept, bins, highest)
    return cloud if thinned is None else Cloud(*thinned)

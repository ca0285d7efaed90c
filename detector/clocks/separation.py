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

from msgspec import Struct

#: Lines tried when constraints may be left out; a negative slack is corrected for what lies between two neighbours.
DRIFT_STEPS = 201


class Separation(Struct, frozen=True):
    """Best line between two clouds.

    `slack_ns` > 0 is the room between them (the vertical gap along the line), < 0 by how much they overlap at the
    least; infinite where one cloud is empty. The line runs in the middle of the gap.
    """

    slack_ns: float
    offset_ns: float
    drift: float
    low_ns: float  # lowest and highest offset that this drift allows at x = 0
    high_ns: float

"""The separation of two clouds by the compiled core, alone, as its tests ask for it."""

from __future__ import annotations

from detector.clocks.separation import DRIFT_STEPS, Separation
from pepscope import _core


def separate(constraints: _core.Constraints, drift_limit: float) -> Separation:
    """Widest gap between the clouds over all lines with |drift| <= drift_limit (exact).

    Among equally good drifts the smallest is taken.
    """
    return Separation(*constraints.separate(drift_limit))


def separate_most(
    constraints: _core.Constraints, drift_limit: float, exact: Separation, drift_steps: int = DRIFT_STEPS
) -> Separation:
    """Widest gap when as many points of each cloud may be ignored as the constraints say.

    `exact` is what `separate` gave. For a fixed drift this is an exact pair of order statistics. Over drifts a grid is
    used, and a negative slack is raised by the most that can lie between two grid lines, so that it is a proof.
    """
    line = exact.slack_ns, exact.offset_ns, exact.drift, exact.low_ns, exact.high_ns
    return Separation(*constraints.separate_most(drift_limit, drift_steps, line))

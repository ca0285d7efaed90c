"""`detector.clocks.steps` in NumPy, with a test of the clouds at every place that it asks about."""

from __future__ import annotations

import itertools
import math

import numpy as np

from detector.clocks.separation import Separation
from detector.clocks.steps import (
    STEP_BINS,
    STEP_DRIFTS,
    STEP_INTERVAL_S,
    STEPS_IN_SUCCESSION,
    ClockPiece,
    as_piece,
)
from pepscope import _core
from tests.detector.clocks.reference_separation import Cloud, between, separate_most, thin


def stepped(constraints: _core.Constraints, limit: float, needed_ns: float) -> tuple[ClockPiece, ...] | None:
    """Cut into the fewest pieces that each leave `needed_ns` of slack; None where too many are needed."""
    lower = thin(Cloud(*constraints.lower), constraints.lower_spared + 1, STEP_BINS, highest=True)
    upper = thin(Cloud(*constraints.upper), constraints.upper_spared + 1, STEP_BINS, highest=False)
    times = np.unique(np.concatenate([lower.x_ns, upper.x_ns]))
    if len(times) == 0:
        return None
    most_steps = STEPS_IN_SUCCESSION + int((times[-1] - times[0]) / 1e9 / STEP_INTERVAL_S)

    def test(first: int, last: int) -> Separation:
        start, end = float(times[first]), float(times[last]) + 1.0
        return separate_most(
            between(lower, start, end),
            between(upper, start, end),
            limit,
            constraints.lower_spared,
            constraints.upper_spared,
            drift_steps=STEP_DRIFTS,
        )

    pieces: list[ClockPiece] = []
    first = 0
    while first < len(times):
        if len(pieces) > most_steps:
            return None
        good, bad = first, len(times)
        while bad - good > 1:
            middle = (good + bad) // 2
            if test(first, middle).slack_ns >= needed_ns:
                good = middle
            else:
                bad = middle
        made = test(first, good)
        start, end = float(times[first]), float(times[good]) + 1.0
        pieces.append(as_piece(made, constraints, (start, end)))
        first = good + 1
    for before, after in itertools.pairwise(pieces):
        # A smaller step would have left room for one line end to end. Pieces of few packets, as at the ends of a
        # connection, cannot be judged.
        judged = math.isfinite(before.slack_ns) and math.isfinite(after.slack_ns)
        if judged and abs(after.at_ns(after.start_ns) - before.at_ns(after.start_ns)) < needed_ns:
            return None
    return tuple(pieces)

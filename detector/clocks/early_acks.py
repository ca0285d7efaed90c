"""Acknowledgements that came too early: those that a clock which suits the data does not allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S
from detector.clocks.clouds import FlowClouds
from detector.clocks.relation_columns import ClockRelations
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array


def violations(flows: Sequence[FlowClouds], clocks: ClockRelations) -> Int64Array:
    """How many acknowledgements of each flow came too early, and how many could have (rows), under the offset that
    suits the data best.

    The drift is that of the best line; the offset of each piece is moved towards the acknowledgements until the flow's
    data forbid it.
    """
    times, lines = [flow.times for flow in flows], clocks.lines
    return _core.early_acks(times, lines, _spared(flows, clocks), TIMESTAMP_ERROR_S * 1e9)


def ahead_of_receiver(flows: Sequence[FlowClouds], clocks: ClockRelations) -> Int64Array:
    """How many acknowledgements came before the receiver had sent its own of the same bytes, and how many could have.

    Only values count of which the receiver's capture holds an acknowledgement. The first and the second half of the
    connection are tested apart, each with its own offset, and the one with the smaller share counts: a clock that was
    set once spoils one of them only. Where a step was found, the pieces before and after it are tested instead, since
    its place is known to some packets only.
    """
    times, lines = [flow.times for flow in flows], clocks.lines
    found = _core.early_own_acks(times, lines, _spared(flows, clocks), TIMESTAMP_ERROR_S * 1e9)
    least = [
        min((counts for counts in parts if counts[1]), key=lambda counts: counts[0] / counts[1], default=(0, 0))
        for parts in found
    ]
    return np.array(least, np.int64).reshape(-1, 2).T


def _spared(flows: Sequence[FlowClouds], clocks: ClockRelations) -> list[int]:
    """What the clock relations left out of the flows' data as lost records or as a step's edge bounds nothing here."""
    are_up = np.array([flow.direction is Direction.UP for flow in flows], np.bool_)
    spared: list[int] = np.where(are_up, clocks.numbers["upper_spared"], clocks.numbers["lower_spared"]).tolist()
    return spared

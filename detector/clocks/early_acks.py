"""Acknowledgements that came too early: those that a clock which suits the data does not allow."""

from __future__ import annotations

from detector.clocks.clouds import FlowClouds
from detector.clocks.relation import TIMESTAMP_ERROR_S, ClockRelation
from pepscope.captures.packets import Direction


def violations(flow: FlowClouds, clock: ClockRelation) -> tuple[int, int]:
    """How many acknowledgements came too early, and how many could have, under the offset that suits the data best.

    The drift is that of the best line; the offset of each piece is moved towards the acknowledgements until the flow's
    data forbid it.
    """
    return flow.times.early_acks(clock.lines, _spared(flow, clock), TIMESTAMP_ERROR_S * 1e9)


def ahead_of_receiver(flow: FlowClouds, clock: ClockRelation) -> tuple[int, int]:
    """How many acknowledgements came before the receiver had sent its own of the same bytes, and how many could have.

    Only values count of which the receiver's capture holds an acknowledgement. The first and the second half of the
    connection are tested apart, each with its own offset, and the one with the smaller share counts: a clock that was
    set once spoils one of them only. Where a step was found, the pieces before and after it are tested instead, since
    its place is known to some packets only.
    """
    parts = flow.times.early_own_acks(clock.lines, _spared(flow, clock), TIMESTAMP_ERROR_S * 1e9)
    compared = (counts for counts in parts if counts[1])
    return min(compared, key=lambda counts: counts[0] / counts[1], default=(0, 0))


def _spared(flow: FlowClouds, clock: ClockRelation) -> int:
    """What the clock relation left out of the flow's data as lost records or as a step's edge bounds nothing here."""
    return clock.lower_spared if flow.direction is Direction.DOWN else clock.upper_spared

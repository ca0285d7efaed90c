"""Acknowledgements that came too early: those that a clock which suits the data does not allow."""

from __future__ import annotations

import numpy as np

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S
from detector.clocks.relation_columns import ClockRelations, LargerFlows
from pepscope import _core
from pepscope.captures.packets import Int64Array


def violations(flows: LargerFlows, clocks: ClockRelations) -> Int64Array:
    """How many acknowledgements of each flow came too early, and how many could have (rows), under the offset that
    suits the data best.

    The drift is that of the best line; the offset of each piece is moved towards the acknowledgements until the flow's
    data forbid it.
    """
    return _core.early_acks(flows.times, clocks.lines, _spared(flows, clocks), TIMESTAMP_ERROR_S * 1e9)


def ahead_of_receiver(flows: LargerFlows, clocks: ClockRelations) -> Int64Array:
    """How many acknowledgements came before the receiver had sent its own of the same bytes, and how many could have.

    Only values count of which the receiver's capture holds an acknowledgement. The first and the second half of the
    connection are tested apart, each with its own offset, and the one with the smaller share counts: a clock that was
    set once spoils one of them only. Where a step was found, the pieces before and after it are tested instead, since
    its place is known to some packets only.
    """
    return _core.early_own_acks(flows.times, clocks.lines, _spared(flows, clocks), TIMESTAMP_ERROR_S * 1e9)


def _spared(flows: LargerFlows, clocks: ClockRelations) -> list[int]:
    """What the clock relations left out of the flows' data as lost records or as a step's edge bounds nothing here."""
    spared: list[int] = np.where(flows.is_up, clocks.numbers["upper_spared"], clocks.numbers["lower_spared"]).tolist()
    return spared

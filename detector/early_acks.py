"""Acknowledgements that came too early: those that a clock which suits the data does not allow."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from detector.clock import TIMESTAMP_ERROR_S, ClockRelation
from detector.clouds import FlowClouds, ack_points, data_points
from pepscope.packets import Direction, Int64Array
from pepscope.results import FloatArray


def violations(flow: FlowClouds, clock: ClockRelation) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which acknowledgements came too early even under the offset, per piece, that suits the flow's data best.

    The drift is that of the best line; the offset is moved towards the acknowledgements until the data forbid it.
    """
    return _too_early(ack_points(flow, as_sent=False), data_points(flow), flow.direction, clock, _spans(clock))


def ahead_of_receiver(flow: FlowClouds, clock: ClockRelation) -> tuple[int, int]:
    """How many acknowledgements came before the receiver had sent its own of the same bytes, and how many could have.

    Only values count of which the receiver's capture holds an acknowledgement. The first and the second half of the
    connection are tested apart, each with its own offset, and the half with the smaller share counts: a clock that was
    set once spoils one of them only.
    """
    acks, data = ack_points(_own(flow), as_sent=True), data_points(flow)
    if len(acks[0]) == 0:
        return 0, 0
    middle = float(np.median(acks[0]))
    halves = [(-math.inf, middle), (middle, math.inf)]
    found = []
    for half in halves:
        early = _too_early(acks, data, flow.direction, clock, [half])
        inside = (acks[0] >= half[0]) & (acks[0] < half[1])
        found.append((int(early.sum()), int(inside.sum())))
    return min(found, key=lambda counts: counts[0] / max(counts[1], 1))


def _too_early(
    acks: tuple[Int64Array, Int64Array],
    data: tuple[Int64Array, Int64Array],
    direction: Direction,
    clock: ClockRelation,
    spans: list[tuple[float, float]],
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    (ack_x, ack_y), (data_x, data_y) = acks, data
    sign = 1.0 if direction is Direction.DOWN else -1.0
    ack_rest, data_rest = (sign * _rest(clock, x, y) for x, y in ((ack_x, ack_y), (data_x, data_y)))
    result = np.zeros(len(ack_x), np.bool_)
    for start, end in spans:
        inside = (ack_x >= start) & (ack_x < end)
        bounds = data_rest[(data_x >= start) & (data_x < end)]
        if len(bounds):
            result |= inside & (ack_rest < bounds.max() - TIMESTAMP_ERROR_S * 1e9)
    return result


def _own(flow: FlowClouds) -> FlowClouds:
    """The flow with only those acknowledgements whose value the receiver's capture holds."""
    kept = flow.own_ack
    return replace(
        flow,
        ack_value=flow.ack_value[kept],
        ack_seen_ns=flow.ack_seen_ns[kept],
        ack_sent_ns=flow.ack_sent_ns[kept],
        arrival_ns=flow.arrival_ns[kept],
        own_ack=kept[kept],
        round_trip_ns=flow.round_trip_ns[kept],
    )


def _rest(clock: ClockRelation, x: Int64Array, y: Int64Array) -> FloatArray:
    return np.asarray(y - clock.server_minus_client_ns(x), np.float64)


def _spans(clock: ClockRelation) -> list[tuple[float, float]]:
    starts = [-math.inf, *(float(piece.start_ns) for piece in clock.pieces[1:]), math.inf]
    return list(itertools.pairwise(starts))

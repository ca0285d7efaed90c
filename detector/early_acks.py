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


def violations(
    flow: FlowClouds, clock: ClockRelation, *, as_sent: bool = False
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which acknowledgements came too early even under the offset, per piece, that suits the flow's data best.

    The drift is that of the best line; the offset is moved towards the acknowledgements until the data forbid it. Too
    early is before the last byte arrived, or, with `as_sent`, before the receiver itself acknowledged as much; then
    only values count of which the receiver's capture holds an acknowledgement of its own.
    """
    ack_x, ack_y = ack_points(_own(flow) if as_sent else flow, as_sent=as_sent)
    data_x, data_y = data_points(flow)
    sign = 1.0 if flow.direction is Direction.DOWN else -1.0
    ack_rest, data_rest = (sign * _rest(clock, x, y) for x, y in ((ack_x, ack_y), (data_x, data_y)))
    result = np.zeros(len(ack_x), np.bool_)
    for piece_start, piece_end in _spans(clock):
        inside = (ack_x >= piece_start) & (ack_x < piece_end)
        bounds = data_rest[(data_x >= piece_start) & (data_x < piece_end)]
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

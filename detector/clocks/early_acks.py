"""Acknowledgements that came too early: those that a clock which suits the data does not allow."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from detector.clocks.clouds import FlowClouds, ack_points, data_points
from detector.clocks.relation import TIMESTAMP_ERROR_S, ClockRelation
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.verdicts import FloatArray

#: Bounds of every time. Spans are whole numbers: a floating-point number of nanoseconds since 1970 is off by 100 ns,
#: and a packet at the start of a piece of the clock would be taken into the piece before.
_FIRST_NS, _LAST_NS = (int(bound) for bound in (np.iinfo(np.int64).min, np.iinfo(np.int64).max))


def violations(flow: FlowClouds, clock: ClockRelation) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which acknowledgements came too early even under the offset, per piece, that suits the flow's data best.

    The drift is that of the best line; the offset is moved towards the acknowledgements until the data forbid it.
    """
    return _too_early(ack_points(flow, as_sent=False), data_points(flow), flow.direction, clock, _spans(clock))


def ahead_of_receiver(flow: FlowClouds, clock: ClockRelation) -> tuple[int, int]:
    """How many acknowledgements came before the receiver had sent its own of the same bytes, and how many could have.

    Only values count of which the receiver's capture holds an acknowledgement. The first and the second half of the
    connection are tested apart, each with its own offset, and the one with the smaller share counts: a clock that was
    set once spoils one of them only. Where a step was found, the pieces before and after it are tested instead, since
    its place is known to some packets only.
    """
    acks, data = ack_points(_own(flow), as_sent=True), data_points(flow)
    if len(acks[0]) == 0:
        return 0, 0
    middle = int(np.median(acks[0]))
    parts = _spans(clock) if len(clock.pieces) > 1 else [(_FIRST_NS, middle), (middle, _LAST_NS)]
    found = []
    for part in parts:
        early = _too_early(acks, data, flow.direction, clock, [part])
        inside = (acks[0] >= part[0]) & (acks[0] < part[1])
        found.append((int(early.sum()), int(inside.sum())))
    return min((counts for counts in found if counts[1]), key=lambda counts: counts[0] / counts[1])


def _too_early(
    acks: tuple[Int64Array, Int64Array],
    data: tuple[Int64Array, Int64Array],
    direction: Direction,
    clock: ClockRelation,
    spans: list[tuple[int, int]],
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    (ack_x, ack_y), (data_x, data_y) = acks, data
    sign = 1.0 if direction is Direction.DOWN else -1.0
    # What the clock relation left out as lost records or as a step's edge bounds nothing here either.
    spared = clock.lower_spared if direction is Direction.DOWN else clock.upper_spared
    ack_rest, data_rest = (sign * _rest(clock, x, y) for x, y in ((ack_x, ack_y), (data_x, data_y)))
    result = np.zeros(len(ack_x), np.bool_)
    for start, end in spans:
        inside = (ack_x >= start) & (ack_x < end)
        bounds = np.sort(data_rest[(data_x >= start) & (data_x < end)])
        if len(bounds) > spared:
            result |= inside & (ack_rest < bounds[-1 - spared] - TIMESTAMP_ERROR_S * 1e9)
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


def _spans(clock: ClockRelation) -> list[tuple[int, int]]:
    starts = [_FIRST_NS, *(piece.start_ns for piece in clock.pieces[1:]), _LAST_NS]
    return list(itertools.pairwise(starts))

"""Early acknowledgements in NumPy: what the compiled counts are compared with."""

from __future__ import annotations

import itertools

import numpy as np

from detector.streams.curves import NEVER
from pepscope.captures.packets import BoolArray, Direction, Int64Array
from pepscope.results.verdicts import FloatArray
from tests.detector.clocks.reference_clouds import FlowTimes, Points, ack_points, data_points

#: Start, reference, offset and drift of each piece.
Lines = list[tuple[int, int, float, float]]
FIRST_NS, LAST_NS = (int(bound) for bound in (np.iinfo(np.int64).min, np.iinfo(np.int64).max))


def early_acks(flow: FlowTimes, lines: Lines, spared: int, error_ns: float) -> tuple[int, int]:
    early = _too_early(ack_points(flow, as_sent=False), flow, lines, spared, error_ns, _spans(lines))
    return int(early.sum()), len(early)


def early_own_acks(flow: FlowTimes, lines: Lines, spared: int, error_ns: float) -> list[tuple[int, int]]:
    acks = ack_points(flow, as_sent=True)
    if len(acks[0]) == 0:
        return []
    middle = int(np.median(acks[0]))
    parts = _spans(lines) if len(lines) > 1 else [(FIRST_NS, middle), (middle, LAST_NS)]
    found = []
    for part in parts:
        early = _too_early(acks, flow, lines, spared, error_ns, [part])
        inside = (acks[0] >= part[0]) & (acks[0] < part[1])
        found.append((int(early.sum()), int(inside.sum())))
    return found


def published(flow: FlowTimes, theta_ns: int, error_s: float) -> tuple[int, int, float] | None:
    known = flow.ack_sent_ns != NEVER
    if not known.any():
        return None
    margin = (flow.ack_seen_ns[known] - flow.ack_sent_ns[known] + theta_ns) / 1e9
    return int(known.sum()), int((margin < -error_s).sum()), float(margin.min())


def _too_early(
    acks: Points, flow: FlowTimes, lines: Lines, spared: int, error_ns: float, spans: list[tuple[int, int]]
) -> BoolArray:
    (ack_x, ack_y), (data_x, data_y) = acks, data_points(flow)
    sign = 1.0 if flow.direction is Direction.DOWN else -1.0
    ack_rest, data_rest = (
        sign * (y - _server_minus_client_ns(lines, x)) for x, y in ((ack_x, ack_y), (data_x, data_y))
    )
    result = np.zeros(len(ack_x), np.bool_)
    for start, end in spans:
        inside = (ack_x >= start) & (ack_x < end)
        bounds = np.sort(data_rest[(data_x >= start) & (data_x < end)])
        if len(bounds) > spared:
            result |= inside & (ack_rest < bounds[-1 - spared] - error_ns)
    return result


def _server_minus_client_ns(lines: Lines, client_ns: Int64Array) -> FloatArray:
    result = np.zeros(len(client_ns), np.float64)
    for number, (start, reference, offset, drift) in enumerate(lines):
        inside = client_ns >= start if number else np.ones(len(client_ns), np.bool_)
        result[inside] = offset + drift * (client_ns[inside] - reference)
    return result


def _spans(lines: Lines) -> list[tuple[int, int]]:
    starts = [FIRST_NS, *(start for start, *_ in lines[1:]), LAST_NS]
    return list(itertools.pairwise(starts))

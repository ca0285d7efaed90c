"""Connections of two captures held against each other by when they began, under an unknown clock offset."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pepscope.captures.connections import Connection

#: Starts of one connection at two places differ by the clocks' offset, give or take this much.
START_SPREAD_NS = 100_000_000

#: Of a group with more connections each is held against so many of the other capture's, those that began nearest.
NEAREST = 16


def start_nats(gap_ns: int) -> float:
    """Log-likelihood of a start difference (after the clocks' offset) against none at all, never positive.

    A Cauchy distribution of width `START_SPREAD_NS`: a SYN that had to be sent again (after a second, RFC 6298 section
    2) is unusual, not impossible.
    """
    return -math.log1p((gap_ns / START_SPREAD_NS) ** 2)


def near_in_time(
    ones: list[Connection], twos: list[Connection], offset: int
) -> Iterable[tuple[Connection, Connection]]:
    """All pairs of two groups, or of large groups for each connection those that began nearest."""
    if max(len(ones), len(twos)) <= NEAREST:
        return [(one, two) for one in ones for two in twos]
    left, right = (sorted(group, key=lambda connection: connection.first_time_ns) for group in (ones, twos))
    starts = np.array([connection.first_time_ns for connection in left], np.int64) + offset
    others = np.array([connection.first_time_ns for connection in right], np.int64)
    pairs = {(i, j) for i, places in enumerate(_nearest(starts, others)) for j in places}
    pairs |= {(i, j) for j, places in enumerate(_nearest(others, starts)) for i in places}
    # Groups of equal size pair in order whatever the offset.
    if len(left) == len(right):
        pairs |= {(i, i) for i in range(len(left))}
    return [(left[i], right[j]) for i, j in sorted(pairs)]


def _nearest(starts: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> Iterable[range]:
    middle = np.searchsorted(others, starts)
    low = np.clip(middle - NEAREST // 2, 0, max(0, len(others) - NEAREST))
    return [range(place, min(place + NEAREST, len(others))) for place in low.tolist()]

"""Connections of two captures held against each other by when they began, under an unknown clock offset."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pepscope.connections import Connection


def common_offset(candidates: list[tuple[int, int]]) -> int:
    """The start difference that most candidates share within half a second; the smallest among equals."""
    if not candidates:
        return 0
    differences = np.sort(np.array([two - one for one, two in candidates[:4096]], np.int64))
    half = 500_000_000
    near = np.searchsorted(differences, differences + half, side="right")
    near -= np.searchsorted(differences, differences - half, side="left")
    best = differences[near == near.max()]
    return int(best[np.abs(best).argmin()])


def in_time_order(
    ones: list[Connection], twos: list[Connection], offset: int
) -> Iterable[tuple[Connection, Connection]]:
    """Pair a group: in order where both captures hold equally many, else nearest starts first."""
    ones = sorted(ones, key=lambda connection: connection.first_time_ns)
    twos = sorted(twos, key=lambda connection: connection.first_time_ns)
    if len(ones) == len(twos):
        return list(zip(ones, twos, strict=True))
    few, many = (ones, twos) if len(ones) < len(twos) else (twos, ones)
    sign = 1 if few is ones else -1
    starts = np.array([connection.first_time_ns for connection in many], np.int64)
    used: set[int] = set()
    made = []
    for connection in few:
        gaps = np.abs(starts - (connection.first_time_ns + sign * offset))
        place = next(int(index) for index in np.argsort(gaps, kind="stable")[: len(used) + 1] if int(index) not in used)
        used.add(place)
        made.append((connection, many[place]) if few is ones else (many[place], connection))
    return made

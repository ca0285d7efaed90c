"""What the clock of a capturing machine does to its times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.metamorphic.records import Records


def shifted(records: Records, by_s: float) -> Records:
    """Off by a constant."""
    return replace(records, time_ns=records.time_ns + round(by_s * 1e9))


def drifting(records: Records, parts_per_million: float) -> Records:
    """Fast by a constant share of the time since the first record."""
    if len(records) == 0:
        return records
    since = records.time_ns - records.time_ns.min()
    return replace(records, time_ns=records.time_ns + np.rint(since * (parts_per_million * 1e-6)).astype(np.int64))


def stepping(records: Records, steps: Sequence[tuple[float, float]]) -> Records:
    """Set by some seconds at places of the capture's duration (0 to 1): (place, seconds)."""
    if len(records) == 0:
        return records
    first, last = int(records.time_ns.min()), int(records.time_ns.max())
    time_ns = records.time_ns.copy()
    for place, by_s in steps:
        time_ns[records.time_ns > first + place * (last - first)] += round(by_s * 1e9)
    return replace(records, time_ns=time_ns)


def kept_from_falling(records: Records, least_step_ns: int) -> Records:
    """Times that would fall stand still, or go on in steps of `least_step_ns`, until the clock has caught up."""
    times_ns = records.time_ns.tolist()
    for row in range(1, len(times_ns)):
        if times_ns[row] < times_ns[row - 1]:
            times_ns[row] = times_ns[row - 1] + least_step_ns
    return replace(records, time_ns=np.array(times_ns, np.int64))


def coarse(records: Records, unit_ns: int) -> Records:
    """Times rounded down to whole units."""
    return replace(records, time_ns=records.time_ns // unit_ns * unit_ns)


def in_batches(records: Records, every_ns: int) -> Records:
    """Stamped when a card that collects packets raises its next interrupt."""
    return replace(records, time_ns=-(-records.time_ns // every_ns) * every_ns)


def two_clocks(records: Records, by_s: float) -> Records:
    """What the openers sent is timed by a clock of its own; records stand in the order of their times."""
    moved = replace(records, time_ns=records.time_ns + np.where(records.is_up, round(by_s * 1e9), 0))
    return moved.take(np.argsort(moved.time_ns, kind="stable"))

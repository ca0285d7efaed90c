"""The offset between the clocks of two captures, from when the same connections began by each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: Start differences this near to each other may have one cause.
_HALF_WINDOW_NS = 500_000_000

#: Start differences looked at to find the offset.
_MOST_DIFFERENCES = 4096


def common_offset(candidates: Sequence[tuple[int, int]]) -> int:
    """The start difference (ns) that most candidates share within half a second; the smallest among equals."""
    if not candidates:
        return 0
    differences = np.sort(np.array([two - one for one, two in candidates], np.int64))
    if len(differences) > _MOST_DIFFERENCES:
        differences = differences[np.linspace(0, len(differences) - 1, _MOST_DIFFERENCES).astype(np.int64)]
    near = np.searchsorted(differences, differences + _HALF_WINDOW_NS, side="right")
    near -= np.searchsorted(differences, differences - _HALF_WINDOW_NS, side="left")
    best = differences[near == near.max()]
    centre = best[np.abs(best).argmin()]
    return int(np.median(differences[np.abs(differences - centre) <= _HALF_WINDOW_NS]))


def agreed_offset(candidates: Sequence[tuple[int, int]]) -> int | None:
    """The start difference (ns) that at least two candidates share; None where there is none."""
    offset = common_offset(candidates)
    near = sum(abs(two - one - offset) <= _HALF_WINDOW_NS for one, two in candidates)
    return offset if near >= 2 else None

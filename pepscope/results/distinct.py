"""Distinct numbers of columns, and which of them are among others, without the masked arrays of NumPy.

`np.unique` without indices or counts, and `np.isin` by it, import these, which takes a tenth of a small pair's time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def distinct(numbers: npt.NDArray[np.integer]) -> list[int]:
    """The numbers that occur, ascending; columns hold few different ones."""
    return sorted(set(numbers.tolist()))


def renumbered(codes: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The codes that occur, ascending, and of each of `codes` its place among these; codes are natural numbers below a
    few thousand."""
    occur = np.bincount(codes) > 0
    places = np.cumsum(occur) - 1
    return np.flatnonzero(occur), places[codes]


def are_among(numbers: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Which of the numbers are among the others."""
    if not len(others):
        return np.zeros(len(numbers), np.bool_)
    ordered = np.sort(others)
    found: npt.NDArray[np.bool_] = ordered[np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)] == numbers
    return found

"""Decimation: fewer points that draw the same picture. Each bucket keeps its extremes, and named points are kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]


def envelope_indices(value: FloatArray, limit: int, keep: IndexArray | None = None) -> IndexArray:
    """Choose at most `limit` points of a series that keep its outline, plus those in `keep`.

    The series is cut, in its order, into buckets of equal count. Every bucket gives its first, its lowest and its
    highest point (ties: the earliest), and the series gives its last point, so no extreme is lost at any scale that
    `limit` points can show.

    Args:
        value: heights, shape (n,), in drawing order; NaN counts as absent.
        limit: most points to choose, at least 4.
        keep: indices that must survive, in any order; they come on top of `limit`.

    Returns:
        Sorted distinct indices into `value`, int64; all of them where n <= limit.
    """
    count = len(value)
    if count <= limit:
        return np.arange(count, dtype=np.int64)
    buckets = max(1, (limit - 1) // 3)
    size = -(-count // buckets)
    rows = -(-count // size)
    padded = np.full(rows * size, np.nan)
    padded[:count] = value
    table = padded.reshape(rows, size)
    starts = np.arange(rows, dtype=np.int64) * size
    low = starts + np.argmin(np.where(np.isnan(table), np.inf, table), axis=1)
    high = starts + np.argmax(np.where(np.isnan(table), -np.inf, table), axis=1)
    chosen = [starts, low, high, np.array([count - 1], dtype=np.int64)]
    if keep is not None:
        chosen.append(np.asarray(keep, dtype=np.int64))
    return np.unique(np.concatenate(chosen))


def step_indices(value: FloatArray, limit: int) -> IndexArray:
    """Like `envelope_indices` for a curve that holds its value between points: only points where it changes matter."""
    count = len(value)
    if count <= 2:
        return np.arange(count, dtype=np.int64)
    corner = np.ones(count, dtype=np.bool_)
    corner[1:-1] = value[1:-1] != value[:-2]
    corners = np.flatnonzero(corner).astype(np.int64)
    return corners[envelope_indices(value[corners], limit)]


def lowest(value: FloatArray, count: int) -> IndexArray:
    """Indices of the `count` lowest values, in any order; NaN never counts as low."""
    present = np.where(np.isnan(value), np.inf, value)
    if len(present) <= count:
        return np.arange(len(present), dtype=np.int64)
    return np.argpartition(present, count)[:count].astype(np.int64)

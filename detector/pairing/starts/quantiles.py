"""Quantiles of times as `np.percentile` has them, without the masked arrays of NumPy that it imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def quantiles(
    values: npt.NDArray[np.integer | np.floating] | Sequence[int], shares: Sequence[float]
) -> npt.NDArray[np.float64]:
    """The value below which each share of `values` lies, for each of their columns (first axis: one row a share).

    Between two values the quantile is linear (Hyndman and Fan 1996, definition 7); there must be one value at least.
    """
    ordered = np.sort(np.asarray(values), axis=0)
    places = np.asarray(shares) * (len(ordered) - 1)
    below = places.astype(np.int64)
    above = np.minimum(below + 1, len(ordered) - 1)
    beyond = (places - below).reshape(-1, *(1,) * (ordered.ndim - 1))
    found: npt.NDArray[np.float64] = ordered[below] + beyond * (ordered[above] - ordered[below])
    return found

"""Means over repeats, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pepscope.extras import needed

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the half width of its confidence interval; `half_width` is None for fewer than two values."""

    mean: float
    half_width: float | None
    count: int


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Student's interval of the mean of independent values. Raises ValueError for none."""
    count = len(values)
    if count == 0:
        raise ValueError("a mean must be of at least one value")
    mean = math.fsum(values) / count
    if count == 1:
        return Interval(mean, None, 1)
    with needed("simulate"):
        from scipy.special import stdtrit

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    quantile = float(stdtrit(count - 1, (1.0 + confidence) / 2.0))
    return Interval(mean, quantile * math.sqrt(variance / count), count)

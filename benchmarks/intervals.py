"""The interval of a share that was counted in so many cases."""

from __future__ import annotations

import math

_Z = 1.96  # 95 % of a normal distribution


def wilson(count: int, of: int) -> tuple[float, float]:
    """The interval that holds a share with 95 % (Wilson 1927)."""
    if of == 0:
        return 0.0, 1.0
    share, square = count / of, _Z * _Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return max(0.0, middle - half), min(1.0, middle + half)

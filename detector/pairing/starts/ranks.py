"""Correlation of two series by ranks, which no outlier can make, and how many independent values it rests on.

Values may follow each other by a rule: a cycle of a timetable that is finer than its intervals, clocks that are
rounded, hosts that are busy for a while. Two such series agree by more luck, and agree as well where one is shifted
against the other. The shifts show how many independent values would vary so: no more than 1 plus the reciprocal of
their mean square correlation, and no more than have a largest one as they have (Bartlett 1946, "On the theoretical
specification and sampling properties of autocorrelated time-series", J. R. Stat. Soc. Suppl. 8).
"""

from __future__ import annotations

import math

import numpy as np

from pepscope.captures.packets import Int64Array
from pepscope.results.verdicts import FloatArray

#: Correlations are never taken for higher.
SUREST = 1 - 1e-9
#: Squares of correlations are never taken for lower.
_LEAST = 1e-9


def _ranks(values: Int64Array) -> FloatArray:
    """Ranks about their mean; equal values share one."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - (counts + 1) / 2)[places]
    ranks -= ranks.mean()
    return ranks


def rank_correlation(columns: Int64Array) -> tuple[float, float]:
    """Correlation of the ranks of two columns, and of how many independent values that is."""
    ones, twos = map(_ranks, columns.T)
    norm = math.sqrt(float((ones @ ones) * (twos @ twos)))
    if not norm:
        return 0.0, 0.0
    shifted = np.fft.irfft(np.fft.rfft(ones).conj() * np.fft.rfft(twos), len(ones)) / norm
    squares = np.maximum(shifted[1:] ** 2, _LEAST)
    alike = min(1 + 1 / float(squares.mean()), 1 + 2 * math.log(len(ones)) / float(squares.max()))
    return float(shifted[0]), min(float(len(ones)), alike)

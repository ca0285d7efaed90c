"""Columns of numbers of many connections, of which not all are known."""

from __future__ import annotations

import numpy as np

from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray

#: Stands for a whole number that is not known, here and in the columns of `pepscope._core`.
UNKNOWN = np.iinfo(np.int64).min


def are_known(*columns: Int64Array) -> BoolArray:
    """Where all of these are known."""
    known: BoolArray = np.logical_and.reduce([each != UNKNOWN for each in columns])
    return known


def least_known(*columns: Int64Array) -> Int64Array:
    """The least of the known numbers, `UNKNOWN` where there is none."""
    most = np.iinfo(np.int64).max
    least = np.minimum.reduce([np.where(each == UNKNOWN, most, each) for each in columns])
    return np.where(least == most, UNKNOWN, least)


def seconds(time_ns: Int64Array) -> FloatArray:
    """Times in seconds, NaN where they are not known."""
    return np.where(time_ns == UNKNOWN, np.nan, time_ns / 1e9)

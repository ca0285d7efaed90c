"""Numbers of connections as those of members."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.members import most_frequent, quantiles, seconds, shares


def test_numbers_by_member() -> None:
    member = np.asarray([1, 1, -1, 1, 0])
    values = np.asarray([3.0, 1.0, 9.0, np.nan, np.nan])
    assert np.nan_to_num(quantiles(values, member, 3, 0.5), nan=-1).tolist() == [-1, 1, -1]
    assert np.nan_to_num(quantiles(values, member, 3, 1.0), nan=-1).tolist() == [-1, 3, -1]
    happens, known = np.asarray([True, False, True, True, True]), np.asarray([True, True, True, False, True])
    assert np.nan_to_num(shares(happens, known, member, 3), nan=-1).tolist() == [1, 0.5, -1]
    assert most_frequent(np.asarray([7, 5, 9, -1, -1]), member, 3).tolist() == [-1, 5, -1]
    assert most_frequent(np.asarray([7, 5, 9, 7, 2]), member, 3).tolist() == [2, 7, -1]
    assert most_frequent(np.asarray([-1]), np.asarray([0]), 1).tolist() == [-1]
    assert np.isnan(seconds(np.asarray([-1]))).all()


@given(st.lists(st.tuples(st.floats(-1e3, 1e3) | st.just(math.nan), st.integers(-1, 3))), st.floats(0, 1))
def test_quantiles_are_those_of_each_member(rows: list[tuple[float, int]], share: float) -> None:
    values, group = np.asarray([row[0] for row in rows]), np.asarray([row[1] for row in rows], np.int64)
    found = quantiles(values, group, 4, share)
    for number in range(4):
        known = sorted(value for value, of in rows if of == number and not math.isnan(value))
        np.testing.assert_equal(found[number], known[int((len(known) - 1) * share)] if known else math.nan)

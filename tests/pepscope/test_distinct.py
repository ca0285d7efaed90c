"""Distinct numbers are those that NumPy finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pepscope.results.distinct import distinct


@given(st.lists(st.integers(-(2**62), 2**62)))
def test_distinct_numbers_are_those_of_numpy(numbers: list[int]) -> None:
    column = np.array(numbers, np.int64)
    assert distinct(column) == np.unique(column).tolist()

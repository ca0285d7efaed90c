"""Distinct numbers, and those that are among others, are those that NumPy finds, which imports masked arrays for it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pepscope.results.distinct import are_among, distinct, renumbered

NUMBERS = st.lists(st.integers(-(2**62), 2**62) | st.integers(-3, 3))

#: Many numbers of a wide range, of which a table would be large.
PROGRAM = """
import sys
import numpy as np
are_there = "numpy.ma" in sys.modules  # NumPy brings them with it before release 2
from pepscope.results.distinct import are_among, distinct
numbers = np.arange(1000) * 2**40
assert are_among(numbers, numbers).all() and len(distinct(numbers)) == 1000
print("numpy.ma" in sys.modules and not are_there)
"""


@given(NUMBERS)
def test_distinct_numbers_are_those_of_numpy(numbers: list[int]) -> None:
    column = np.array(numbers, np.int64)
    assert distinct(column) == np.unique(column).tolist()


@given(NUMBERS, NUMBERS)
def test_those_among_others_are_those_of_numpy(numbers: list[int], others: list[int]) -> None:
    columns = np.array(numbers, np.int64), np.array(others, np.int64)
    assert are_among(*columns).tolist() == np.isin(*columns).tolist()


@given(st.lists(st.integers(0, 40)))
def test_codes_are_numbered_as_numpy_does(numbers: list[int]) -> None:
    codes = np.array(numbers, np.uint32)
    wanted = np.unique(codes, return_inverse=True)
    assert [each.tolist() for each in renumbered(codes)] == [each.tolist() for each in wanted]


def test_masked_arrays_are_not_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, check=True, text=True)
    assert done.stdout.strip() == "False"

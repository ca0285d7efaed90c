"""Quantiles beside NumPy's own, and what they leave out of a process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from detector.pairing.starts.quantiles import quantiles

SHAPES = st.tuples(st.integers(1, 40)) | st.tuples(st.integers(1, 40), st.just(2))
TIMES_NS = arrays.arrays(np.int64, SHAPES, elements=st.integers(-(10**12), 10**12))
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=3)


@given(TIMES_NS, SHARES)
def test_they_are_those_of_numpy(times_ns: npt.NDArray[np.int64], shares: list[float]) -> None:
    expected = np.percentile(times_ns, [100 * share for share in shares], axis=0)
    np.testing.assert_allclose(quantiles(times_ns, shares), expected, rtol=1e-9, atol=1e-2)


def test_a_place_between_two_values_is_linear() -> None:
    assert quantiles([0, 10, 40], [0.0, 0.25, 0.75, 1.0]).tolist() == pytest.approx([0, 5, 25, 40])


def test_no_masked_arrays_are_imported() -> None:
    program = (
        "import sys, numpy\n"
        "bring = 'numpy.ma' in sys.modules  # NumPy brings them with it before release 2\n"
        "from detector.pairing.starts.quantiles import quantiles\n"
        "quantiles([1, 2, 3], [0.05, 0.95])\n"
        "print('numpy.ma' in sys.modules and not bring)"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, text=True)
    assert done.stdout.strip() == "False"

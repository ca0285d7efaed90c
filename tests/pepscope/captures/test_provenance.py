"""Times as results write them, beside NumPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pepscope.captures.provenance import time_text


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_times_are_those_of_numpy(time_ns: int) -> None:
    assert time_text(time_ns) == f"{np.datetime64(time_ns, 'ns')}Z"


def test_an_unknown_time_is_none() -> None:
    assert time_text(None) is None

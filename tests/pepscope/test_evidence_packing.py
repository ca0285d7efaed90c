"""What is kept of evidence comes back as it was."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pepscope import _core
from pepscope.results.evidence.packing import Kept, packed, unpacked


def test_parts_are_unpacked_as_they_were_packed() -> None:
    floats = np.array([0.25, math.nan, -math.inf])
    parts = [
        Kept(np.array([0, 2, 5]), [floats, np.array([1, 2**62, -7]), ["up", "down", "up"]], 2),
        Kept(np.array([1]), [["a sentence"], np.array([True])], 2),
        Kept(np.array([], np.int64), [], 0),
    ]
    for wanted, found in zip(parts, unpacked(packed(parts)), strict=True):
        assert (found.rows.tolist(), found.figures) == (wanted.rows.tolist(), wanted.figures)
        for one, other in zip(found.columns, wanted.columns, strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other)


def test_figures_that_are_not_known_are_none_and_others_nan() -> None:
    unknown = np.array([math.nan])
    one, other = Kept(np.array([0]), [unknown, unknown], 1).listed()
    assert one == [None]
    assert math.isnan(other[0])


def test_bytes_that_are_no_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="packed columns"):
        _core.unpacked_columns(b"\x07" * 20)

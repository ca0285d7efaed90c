"""What is kept of evidence comes back as it was."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope import _core
from pepscope.results.evidence.growing import Coded
from pepscope.results.evidence.packing import Kept, packed, unpacked


def test_parts_are_unpacked_as_they_were_packed() -> None:
    floats = np.array([0.25, math.nan, -math.inf])
    parts = [
        Kept(np.array([0, 2, 5]), [floats, np.array([1, 2**62, -7]), ["up", "down", "up"]], 2),
        Kept(np.array([1]), [["a sentence", 0.5], np.array([True])], 2),
        Kept(np.array([], np.int64), [], 0),
    ]
    for wanted, found in zip(parts, unpacked(packed(parts)), strict=True):
        assert (found.rows.tolist(), found.figures) == (wanted.rows.tolist(), wanted.figures)
        for one, other in zip(found.columns, wanted.columns, strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other)


@given(
    st.lists(
        st.one_of(st.sampled_from(["", "up", "1"]), st.none(), st.integers(-1, 2**64 - 1), st.floats(), st.booleans())
    ),
    st.integers(1, 9),
)
def test_values_of_a_list_are_unpacked_as_they_are(values: list[str | float | None], times: int) -> None:
    for column in (values * times, values[:1] * times, [value for value in values * times if isinstance(value, str)]):
        (found,) = unpacked(packed([Kept(np.arange(len(column)), [column], 1)]))
        assert list(map(repr, found.listed()[0])) == list(map(repr, column))


def test_texts_that_repeat_are_places_in_a_list() -> None:
    (found,) = unpacked(packed([Kept(np.arange(8), [["up"] * 8, ["up", "down"] * 4], 2)]))
    assert [(column.codes.tolist(), column.values) for column in found.columns if isinstance(column, Coded)] == [
        ([0] * 8, ["up"]),
        ([0, 1] * 4, ["up", "down"]),
    ]


def test_figures_that_are_not_known_are_none_and_others_nan() -> None:
    unknown = np.array([math.nan])
    one, other = Kept(np.array([0]), [unknown, unknown], 1).listed()
    assert one == [None]
    assert math.isnan(other[0])


def test_bytes_that_are_no_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="packed columns"):
        _core.unpacked_columns(b"\x07" * 20)

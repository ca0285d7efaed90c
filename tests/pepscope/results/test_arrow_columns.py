"""Arrays made of bytes are those that Arrow makes of values."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.captures.tables.arrow_bits import flag_array
from pepscope.captures.tables.texts import KnownTexts, SlicedTexts
from pepscope.results.arrow import number_array, text_array
from pepscope.results.evidence.growing import Coded


@given(st.lists(st.none() | st.text()))
def test_texts_are_those_that_arrow_makes(texts: list[str | None]) -> None:
    made = text_array(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, pa.string()))
    known = SlicedTexts.of([text or "" for text in texts]), np.array([text is not None for text in texts], np.bool_)
    for column in (np.array(texts, object), KnownTexts(*known), Coded.of(texts)):
        assert text_array(column).equals(made)
    backwards = known[0].at(np.arange(len(texts))[::-1])
    assert text_array(backwards).equals(pa.array([*backwards], pa.string()))


@given(st.lists(st.none() | st.floats()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_those_that_arrow_makes(reals: list[float | None], whole: list[int | None]) -> None:
    for numbers, kind in ((reals, pa.float64()), (whole, pa.int64())):
        made = number_array(numbers, kind)
        made.validate(full=True)
        assert made.equals(pa.array(numbers, kind, from_pandas=True))
    known = np.array([each for each in reals if each is not None and not math.isnan(each)], np.float64)
    assert number_array(known, pa.float64()).equals(pa.array(known))


@given(st.lists(st.booleans()))
def test_flags_are_those_that_arrow_makes(flags: list[bool]) -> None:
    made = flag_array(flags)
    made.validate(full=True)
    assert made.equals(pa.array(flags, pa.bool_()))


def test_what_is_no_unicode_is_no_text_of_arrow() -> None:
    with pytest.raises(UnicodeError):
        text_array(["\udc80"])

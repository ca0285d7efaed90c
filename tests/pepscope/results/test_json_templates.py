"""Documents filled in from columns are what an encoder writes of each; texts of columns are those of each value."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pepscope.captures.tables.texts import SlicedTexts, durations, times
from pepscope.results.encoding.templates import VALUE, Column, Layout, Template, encoded, filled, listed

TEXTS = st.text(st.characters(codec=None))  # surrogates among them
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.lists(st.integers(), max_size=3),
    st.floats().map(np.float64), st.integers(-9, 9).map(np.int64),
)  # fmt: skip
ROWS = st.integers(0, 6).flatmap(
    lambda count: st.tuples(
        st.lists(VALUES, min_size=count, max_size=count),
        st.lists(st.floats(), min_size=count, max_size=count),
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=count, max_size=count),
        st.lists(st.integers(0, 2), min_size=count, max_size=count),
    )
)


@pytest.mark.parametrize("indent", [None, 2])
@given(rows=ROWS)
def test_documents_are_those_of_an_encoder(indent: int | None, rows: tuple[list[Any], ...]) -> None:
    values, floats, integers, codes = rows
    coded = np.asarray(codes, np.uint32), ["100 %", None, b'["ready"]']
    written = coded[0], SlicedTexts.of(['"100 %"', "null", '["ready"]'])
    layout = Layout(indent)
    template = Template(dict.fromkeys(("%a", "b", "c", "d", "e"), VALUE), layout)
    columns: list[Column] = [values, np.asarray(floats, np.float64), np.asarray(integers, np.int64), coded, written]
    texts = template.filled(columns, len(values))
    ready = ["100 %", None, ["ready"]]
    expected = [
        {"%a": value, "b": real, "c": whole, "d": ready[code], "e": ready[code]}
        for value, real, whole, code in zip(values, floats, integers, codes, strict=True)
    ]
    # Lists that stand in a gap keep the layout that they came with.
    assert [msgspec.json.format(text, indent=0) for text in texts] == [
        msgspec.json.format(encoded(each), indent=0) for each in expected
    ]
    assert all(text.startswith(b"{" + layout.line(1) + b'"%a"' + layout.after_name) for text in texts)
    assert [[*listed(column)] for column in columns][2:4] == [integers, [coded[1][code] for code in codes]]


def test_templates_take_turns_and_ends_are_told() -> None:
    one, other = Template.of_text(b"<", b">"), Template.of_text(b"-")
    order = np.asarray([0, 1, 0, 1, 1], np.uint32)
    text, ends = filled(order, np.asarray([2, 2, 5]), [(one, [["a", 1]]), (other, [])])
    assert (bytes(text), ends.tolist()) == (b'<"a">-<1>--', [6, 6, 11])


@pytest.mark.parametrize("columns", [[["a"]], []])
def test_a_column_that_is_too_short_is_refused(columns: list[list[str]]) -> None:
    with pytest.raises(IndexError):
        Template.of_text(b"<", b">").filled(columns, 2)


def test_ends_beyond_the_order_are_refused() -> None:
    with pytest.raises(ValueError, match="ends"):
        filled(np.zeros(1, np.uint32), np.asarray([2]), [(Template.of_text(b""), [])])


def duration(seconds: float) -> str:
    if math.isnan(seconds):
        return "an unknown time"
    size = abs(seconds)
    value, unit = (seconds, "s") if size >= 1 else (seconds * 1e3, "ms") if size >= 1e-4 else (seconds * 1e6, "us")
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f} {unit}"


@given(st.lists(st.floats() | st.floats(-5, 5) | st.integers(-9999, 9999).map(lambda eighths: eighths / 8)))
@example([0.125, 2.5, 100.5, 101.5, -0.0, 0.0001, math.inf, -math.inf])
def test_durations_are_rounded_as_python_rounds(seconds: list[float]) -> None:
    assert [*durations(np.asarray(seconds, np.float64))] == [duration(each) for each in seconds]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_times_are_those_of_the_calendar(times_ns: list[int]) -> None:
    def text(time_ns: int) -> str:
        seconds, rest_ns = divmod(time_ns, 10**9)
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest_ns:09d}Z"

    assert [*times(np.asarray(times_ns, np.int64))] == [text(each) for each in times_ns]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_as_they_were(value: float) -> None:
    (text,) = Template.of_text(b"", b"").filled([[value]], 1)
    assert json.loads(text) == value
    assert text == msgspec.json.encode(value)

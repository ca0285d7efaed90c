"""JSON text made by the core: that of the encoder which knows every type, for each value."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope import _core
from pepscope.captures.files.named_packets import connection_filter
from pepscope.results.encoding.templates import VALUE, Layout, Template, json_texts

VALUES = st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text() | st.lists(st.integers())
END_POINTS = st.from_regex(r"\A(10\.0\.\d\.\d|\[fd00::\d\]):[1-9]\d?\Z")


@given(st.lists(VALUES.filter(lambda value: not isinstance(value, int) or -(2**63) <= value < 2**64)))
def test_values_are_written_as_the_encoder_writes_them(values: list[object]) -> None:
    texts = json_texts(values)
    assert [texts[place] for place in range(len(texts))] == [msgspec.json.encode(value) for value in values]


def test_scalars_of_numpy_and_paths_that_are_no_unicode_have_a_text() -> None:
    texts = json_texts([np.float64(0.5), np.float64("nan"), np.int64(3), np.bool_(True), "\udcff"])
    assert [texts[place] for place in range(5)] == [b"0.5", b"null", b"3", b"true", b'"\xed\xb3\xbf"']
    with pytest.raises(TypeError, match="a figure must be a number"):
        json_texts([object()])


@given(st.lists(st.tuples(END_POINTS, END_POINTS, st.sampled_from(["tcp", "udp"]), st.none() | st.just((3, 12)))))
def test_filters_are_those_of_single_connections(
    connections: list[tuple[str, str, str, tuple[int, int] | None]],
) -> None:
    made = _core.JsonTexts.connection_filters(connections)
    expected = [msgspec.json.encode(connection_filter(*each)) for each in connections]
    assert [made[place] for place in range(len(made))] == expected


@given(st.lists(st.tuples(st.integers(-9, 9), st.text())))
def test_a_template_gives_the_documents(values: list[tuple[int, str]]) -> None:
    template = Template({"100%": VALUE, "b": {"c": VALUE}, "d": "\n"}, Layout(2))
    columns = [json_texts([each[place] for each in values]) for place in (0, 1)]
    filled = template.filled(columns, len(values))
    expected = [Layout(2).text({"100%": number, "b": {"c": text}, "d": "\n"}) for number, text in values]
    assert [filled[place] for place in range(len(filled))] == expected
    with pytest.raises(ValueError, match="gaps"):
        template.filled(columns[:1], len(values))


def test_documents_that_are_not_there_are_refused() -> None:
    listed = _core.ListedTexts(
        np.array([0, 1]), np.zeros(1, np.uint32), np.zeros(1, np.uint32), [_core.JsonTexts.of([b"x"])]
    )
    around = b"[", b",", b"]", b"[]"
    assert listed.joined([0, 0], [b"a", b"b"], [None, [b"?"]], b"!", around, b"\n") == b"a[x!]\nb[x?]"
    for documents, endings in (([1], [None]), ([0], [[b"?", b"?"]])):
        with pytest.raises(IndexError, match="no such document"):
            listed.joined(documents, [b""], endings, b"", around, b"")

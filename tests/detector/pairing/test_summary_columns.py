"""Pairs that sequence numbers settle are found in columns, as they would be one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detector.pairing.summary_columns import SummaryColumns, same_sequence_numbers
from pepscope.captures.capture import open_capture

CORPUS = Path(__file__).parents[2] / "corpus"
NUMBERS = st.lists(st.tuples(*[st.none() | st.sampled_from([0, 1, 7, 2**32 - 1])] * 2), max_size=8)


def columns_of(numbers: list[tuple[int | None, int | None]]) -> SummaryColumns:
    connections = [
        SimpleNamespace(
            first_time_ns=place, last_time_ns=place + 5, side_guessed=False,
            up=SimpleNamespace(syn_count=1, initial_sequence_number=up),
            down=SimpleNamespace(initial_sequence_number=down),
        )
        for place, (up, down) in enumerate(numbers)
    ]  # fmt: skip
    return SummaryColumns.of(SimpleNamespace(connections=connections))


@given(NUMBERS, NUMBERS)
def test_only_numbers_that_one_connection_of_each_capture_has_settle(
    left: list[tuple[int | None, int | None]], right: list[tuple[int | None, int | None]]
) -> None:
    counts = [Counter(numbers) for numbers in (left, right)]
    expected = [
        (place, right.index(key))
        for place, key in enumerate(left)
        if None not in key and all(count[key] == 1 for count in counts)
    ]
    one, two = same_sequence_numbers(columns_of(left), columns_of(right))
    assert list(zip(one.tolist(), two.tolist(), strict=True)) == expected


@pytest.mark.parametrize("file", ["prx_ngx_par6.mob.pcap.gz", "reg_ul_slowreader_srv__midone.srv.pcap.gz"])
def test_a_captures_own_columns_are_those_of_its_connections(file: str) -> None:
    capture = open_capture(str(CORPUS / file))
    own = SummaryColumns.of(capture)
    made = SummaryColumns.of(SimpleNamespace(connections=list(capture.connections)))
    assert len(own.first_time_ns) == len(capture.connections) > 0
    for name in SummaryColumns.__struct_fields__:
        assert np.array_equal(getattr(own, name), getattr(made, name)), name
    assert own.span_ns == made.span_ns >= 0


def test_a_capture_without_connections_has_empty_columns() -> None:
    assert columns_of([]).span_ns == 0
    changed = replace(columns_of([(1, 2)]), last_time_ns=np.array([9], np.int64))
    assert changed.span_ns == 9

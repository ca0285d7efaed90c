"""Columns that grow hold what was put in, whichever way; evidence kept as arrays reads as evidence in words."""

from __future__ import annotations

import copy
import math
import pickle
import time
from array import array
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.results.evidence.columns import EvidenceColumns, Form, Words
from pepscope.results.evidence.growing import Coded, CodedColumn, Repeated, TextColumn, row_numbers
from pepscope.results.evidence.table import EvidenceTable
from pepscope.results.verdicts import Evidence, Outcome
from tests.pepscope.results.test_json_templates import TEXTS

WORDS = st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=12)
WORDS_OR_NUMBERS = st.sampled_from(["a", "b", 1, 1.0, True, None])
FIGURES = st.lists(st.floats() | st.just(math.nan), max_size=8)


@given(st.lists(st.lists(TEXTS, max_size=4), max_size=4), st.data())
def test_texts_come_out_as_they_went_in(parts: list[list[str]], data: st.DataObject) -> None:
    column, texts = TextColumn(), [text for part in parts for text in part]
    for part in parts:
        column.append_all(part)
    assert [column[row] for row in range(len(column))] == texts
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1))) if texts else []
    assert [*column.sliced(np.asarray(rows, np.int64))] == [texts[row] for row in rows]


@given(WORDS, WORDS, st.data())
def test_values_are_kept_once_and_changed_row_by_row(first: list[str], more: list[str], data: st.DataObject) -> None:
    column: CodedColumn[str] = CodedColumn()
    column.append_each(first)
    for value in more:
        column.append(value)
    values = first + more
    assert column.values == list(dict.fromkeys(values))
    rows = sorted(data.draw(st.sets(st.integers(0, len(values) - 1)))) if values else []
    column.change(np.asarray(rows, np.int64), lambda value: f"{value}!")
    expected = [f"{value}!" if row in rows else value for row, value in enumerate(values)]
    assert column.of(range(len(values))) == expected
    assert column.code("never") == -1


@given(TEXTS, st.integers(0, 5), WORDS)
def test_a_repeated_value_is_so_many_rows(value: str, count: int, before: list[str]) -> None:
    coded, texts = CodedColumn[str](), TextColumn()
    coded.append_each(before)
    texts.append_all(before)
    repeated = Repeated(value, count)
    coded.append_each(repeated)
    texts.append_all(repeated)
    rows = [*before, *repeated]
    assert coded.of(range(len(rows))) == rows == [*before, *[value] * count]
    assert coded.values == list(dict.fromkeys(rows))
    assert [texts[row] for row in range(len(texts))] == rows
    assert [*repeated[1:]] == [value] * max(count - 1, 0)


def worded(numbers: Mapping[str, Any]) -> Words:
    return Words(f"It took {numbers['beside']:g}.")


def sentences(numbers: Mapping[str, Any]) -> tuple[list[str], Coded[tuple[str, ...]]]:
    each = [worded({"beside": value}) for value in np.asarray(numbers["beside"]).tolist()]
    return [words.summary for words in each], Coded.of([words.caveats for words in each])


FORM = Form("timing", Outcome.INTACT, "in-time", ("took_s", "count"), (), None, worded, ("beside",), sentences)


@given(FIGURES)
def test_evidence_in_arrays_reads_as_evidence(figures: list[float]) -> None:
    took_s, count = np.asarray(figures, np.float64), np.arange(len(figures))
    columns = EvidenceColumns(FORM, count, np.full(len(figures), 0.5), (took_s, count, took_s))
    table, others = EvidenceTable(), EvidenceTable()
    table.append_columns(len(figures), [columns])
    others.append([Evidence("other", Outcome.INTACT, "other", 0.1, "Words.")])
    others.extend(pickle.loads(pickle.dumps(table)))
    for row, value in enumerate(figures):
        numbers = {"took_s": None if math.isnan(value) else value, "count": row}
        expected = Evidence("timing", Outcome.INTACT, "in-time", 0.5, f"It took {value:g}.", numbers)
        assert table[row] == others[row + 1] == (expected,)
        assert columns.evidence(row) == expected
    summaries = table.summaries(count, np.zeros(len(figures), np.int64))
    assert [*summaries] == [f"It took {value:g}." for value in figures]
    assert [*table.summaries(count, np.where(count % 2, 0, -1))] == [
        text if row % 2 else "" for row, text in enumerate(summaries)
    ]
    if figures:
        _, (part,) = table.parts(0, as_arrays=True)
        assert [*part.form.said(len(figures), part.columns)[0]] == [*summaries]


def branching(numbers: Mapping[str, Any]) -> Words:
    if numbers["count"] % 3 == 0:
        return Words("Nothing.")
    which = "took_s" if numbers["count"] % 3 == 1 else "name"
    caveat = f"Of {len({*numbers})} figures one is {numbers.get('missing', 'missing')}."
    return Words(f"{which} is {numbers[which]}.", (caveat,))


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, -0.0, math.nan, 1.5]), WORDS_OR_NUMBERS)))
def test_words_of_many_are_those_of_each(rows: list[tuple[int, float, object]]) -> None:
    form = Form("timing", Outcome.INTACT, "in-time", ("count", "took_s"), (), None, branching, ("name",))
    count, took_s = np.asarray([row[0] for row in rows], np.int64), np.asarray([row[1] for row in rows], np.float64)
    values: tuple[Any, ...] = count, took_s, [row[2] for row in rows]
    kept = EvidenceColumns(form, np.arange(len(rows)), np.zeros(len(rows)), values)
    expected = [kept.words(place) for place in range(len(rows))]
    summaries, caveats = form.said(len(rows), values)
    assert [*zip(summaries, caveats, strict=True)] == expected


@given(FIGURES, st.integers(1, 4))
def test_evidence_in_blocks_reads_as_in_one(figures: list[float], together: int) -> None:
    took_s, rows = np.asarray(figures, np.float64), np.arange(len(figures))[::2]
    of_rows = took_s[rows]
    columns = EvidenceColumns(FORM, rows, of_rows, (of_rows, rows, of_rows))
    whole, blocks = EvidenceTable(), EvidenceTable()
    whole.append_columns(len(figures), [columns])
    for first in range(0, len(figures), together):
        last = min(first + together, len(figures))
        blocks.append_columns(last - first, [columns.between(first, last)])
    for row in range(len(figures)):
        one, other = whole[row], blocks[row]
        assert len(one) == len(other) == (row + 1) % 2
        assert repr(one) == repr(other)


@given(st.lists(st.tuples(st.sampled_from(["at once", "later", "single", "read"]), FIGURES), max_size=8), st.booleans())
def test_evidence_that_is_made_later_reads_as_if_it_stood_there(
    acts: list[tuple[str, list[float]]], is_pickled: bool
) -> None:
    at_once, later = EvidenceTable(), EvidenceTable()
    asked = list[int]()
    for number, (act, figures) in enumerate(acts):
        took_s, rows = np.asarray(figures, np.float64), np.arange(len(figures))
        columns = EvidenceColumns(FORM, rows, took_s, (took_s, rows, took_s))
        evidence = Evidence("other", Outcome.INTACT, "other", 0.1, f"Words {number}.")
        if act == "single":
            at_once.append([evidence])
            later.append([evidence])
        elif act == "read":
            assert later.blocks == at_once.blocks
        else:
            at_once.append_columns(len(figures), [columns])
            blocks = [(len(figures), [columns])]

            def found(blocks: Any = blocks, number: int = number) -> Any:
                asked.append(number)
                return blocks

            later.append_later(found) if act == "later" else later.append_columns(*blocks[0])
    if is_pickled:
        later = pickle.loads(pickle.dumps(later))
    count = sum(1 if act == "single" else 0 if act == "read" else len(figures) for act, figures in acts)
    assert [repr(later[row]) for row in range(count)] == [repr(at_once[row]) for row in range(count)]
    assert later.blocks == at_once.blocks
    assert asked == [number for number, (act, _) in enumerate(acts) if act == "later"]


def test_what_is_not_asked_for_is_not_made() -> None:
    table = EvidenceTable()
    table.append_later(lambda: pytest.fail("nothing was asked for"))
    joined = EvidenceTable()
    joined.append_later(lambda: [(1, [])])
    assert joined[0] == ()


def later(number: int) -> EvidenceColumns:
    """What is found on one connection."""
    figure = np.array([float(number)])
    return EvidenceColumns(FORM, np.zeros(1, np.int64), figure, (figure, np.array([number]), figure))


def test_what_could_not_be_made_is_asked_for_again() -> None:
    table, answers = EvidenceTable(), [MemoryError, None]

    def found() -> Any:
        if answer := answers.pop(0):
            raise answer
        return [(1, [later(0)])]

    table.append_later(found)
    table.append_later(lambda: [(1, [later(1)])])
    with pytest.raises(MemoryError):
        table.forms(1)
    assert [table[row][0].numbers["count"] for row in range(2)] == [0, 1]


def test_threads_that_ask_at_once_read_the_same() -> None:
    table, count = EvidenceTable(), 20

    def found(number: int) -> Any:
        time.sleep(0.001)  # others run meanwhile
        return [(1, [later(number)])]

    for number in range(count):
        table.append_later(partial(found, number))
    with ThreadPoolExecutor(4) as threads:
        read = [*threads.map(lambda row: table[row][0].numbers["count"], range(count - 1, -1, -1))]
    assert read == [*range(count - 1, -1, -1)]
    again = copy.deepcopy(table)
    assert [again[row] for row in range(count)] == [table[row] for row in range(count)]


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 3))
def test_rows_of_ranges_and_of_lists_are_the_same(start: int, stop: int, step: int) -> None:
    rows = range(start, stop, step)
    assert row_numbers(rows).tolist() == row_numbers([*rows]).tolist() == [*rows]
    assert row_numbers(rows).dtype == row_numbers(array("q", rows)).dtype == np.int64
